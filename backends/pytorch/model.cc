// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/model.h"

#include <filesystem>

#include "backend_kit/location.h"
#include "backend_kit/missing_file.h"
#include "pytorch_backend/completion.h"
#include "pytorch_backend/model_file.h"
#include "pytorch_backend/validate.h"

namespace nereid::pytorch {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

Result<std::unique_ptr<Backend>> Backend::Create(TRITONBACKEND_Backend*) {
  InitializeTorch([](const std::string& text) { backend::LogWarning(StrCat("PyTorch: ", text)); });
  return std::make_unique<Backend>();
}

namespace {

Result<std::string> ModelPath(const std::string& folder, const Settings& settings,
                              const std::string& model) {
  const std::filesystem::path path =
      std::filesystem::path(folder) /
      (settings.model_filename.empty() ? "model.pt" : settings.model_filename);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return Error::Unavailable(StrCat("unable to find '", path.string(), "' for model instance '",
                                     model, "'.", backend::FoundInstead(path)));
  }
  return path.string();
}

// Loads the model's file and finds a place for each input.
Result<std::shared_ptr<BoundProgram>> LoadProgram(const std::string& folder,
                                                  const Settings& settings,
                                                  const backend::Ports& ports,
                                                  const std::string& model) {
  if (settings.is_compiled) {
    return Error::Unsupported(
        StrCat("model '", model,
               "' has the platform torch_aoti, which is not supported yet; save it as TorchScript ",
               "(platform pytorch_libtorch)"));
  }
  NEREID_KIT_ASSIGN(const std::string path, ModelPath(folder, settings, model));
  if (Error error = CheckTorchScriptFile(path); !error.ok()) {
    return Error(error.code(), StrCat("failed to load model '", model, "': ", error.message()));
  }
  auto bound = std::make_shared<BoundProgram>();
  NEREID_KIT_ASSIGN(bound->program, LoadTorchScript(path, settings, model));
  const Signature& signature = bound->program->signature();
  NEREID_KIT_TRY(CheckInputsListed(ports, signature, model));
  NEREID_KIT_ASSIGN(bound->arguments, BindInputs(signature, InputNames(ports), model));
  NEREID_KIT_TRY(CheckKinds(ports, bound->arguments));
  return bound;
}

// Says, in Triton's words, how the model is run.
void LogSettings(const Settings& settings, const std::string& model) {
  const auto log = [&](const char* what, bool is_on) {
    backend::LogInfo(
        StrCat(what, is_on ? "enabled" : "disabled", " for model instance '", model, "'"));
  };
  log("Optimized execution is ", settings.optimized_execution);
  log("Inference Mode is ", settings.inference_mode);
}

// Adds outputs to a configuration that has none.
Error CompleteOutputs(const BoundProgram& bound, const backend::Ports& ports,
                      const std::string& model, ModelConfig* config) {
  auto found = FindOutputs(*bound.program, bound.arguments, ports, config->max_batch_size() > 0);
  if (!found.ok()) {
    const Error error = found.TakeError();
    return Error(error.code(),
                 StrCat("the configuration of model '", model,
                        "' has no outputs, and calling the model with zeros does not tell them: ",
                        error.message(), "; list them in config.pbtxt"));
  }
  for (const FoundOutput& output : found.value()) {
    config->AddTensor("output", output.name,
                      StrCat("TYPE_", output.datatype == TRITONSERVER_TYPE_BYTES
                                          ? "STRING"
                                          : TRITONSERVER_DataTypeString(output.datatype)),
                      output.dims);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle, Backend&) {
  NEREID_KIT_ASSIGN(backend::ModelLocation location, backend::Locate(handle));
  NEREID_KIT_ASSIGN(ModelConfig config, ModelConfig::Load(handle));
  NEREID_KIT_ASSIGN(Settings settings, Settings::FromConfig(config));
  NEREID_KIT_ASSIGN(backend::Ports ports, backend::Ports::FromConfig(config));
  NEREID_KIT_TRY(CheckPorts(ports, config.max_batch_size() > 0, location.name));
  LogSettings(settings, location.name);
  ApplyThreadCounts(settings);
  bool auto_complete = false;
  NEREID_KIT_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &auto_complete));
  if (auto_complete && config.tensors("output").Empty()) {
    NEREID_KIT_ASSIGN(const std::shared_ptr<BoundProgram> bound,
                      LoadProgram(location.version_folder, settings, ports, location.name));
    NEREID_KIT_TRY(CompleteOutputs(*bound, ports, location.name, &config));
    NEREID_KIT_TRY(config.Store(handle));
    NEREID_KIT_ASSIGN(config, ModelConfig::Load(handle));
    NEREID_KIT_ASSIGN(ports, backend::Ports::FromConfig(config));
  }
  return std::unique_ptr<Model>(new Model(std::move(location.name),
                                          std::move(location.version_folder), std::move(config),
                                          std::move(settings), std::move(ports)));
}

Result<std::shared_ptr<const BoundProgram>> Model::ProgramForInstance() {
  const backend::MutexLock lock(mutex_);
  if (shared_ != nullptr) {
    if (settings_.weight_sharing) {
      backend::LogInfo(StrCat("Reusing TorchScript model for instance '", name_, "'"));
    }
    return shared_;
  }
  NEREID_KIT_ASSIGN(std::shared_ptr<const BoundProgram> program, Load());
  if (settings_.weight_sharing.value_or(!program->program->signature().writes_attributes)) {
    shared_ = program;
  }
  return program;
}

Result<std::shared_ptr<const BoundProgram>> Model::Load() const {
  NEREID_KIT_ASSIGN(std::shared_ptr<BoundProgram> bound,
                    LoadProgram(folder_, settings_, ports_, name_));
  std::vector<std::string> outputs;
  for (const backend::OutputPort& output : ports_.outputs) {
    outputs.push_back(output.name);
  }
  NEREID_KIT_ASSIGN(bound->outputs, BindOutputs(bound->program->signature(), outputs));
  return std::shared_ptr<const BoundProgram>(std::move(bound));
}

}  // namespace nereid::pytorch
