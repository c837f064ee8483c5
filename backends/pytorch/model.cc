// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/model.h"

#include <filesystem>
#include <utility>

#include "backend_kit/location.h"
#include "backend_kit/missing_file.h"
#include "pytorch_backend/completion.h"
#include "pytorch_backend/model_file.h"
#include "pytorch_backend/validate.h"

namespace nereid::pytorch {

using backend::ConfiguredName;
using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

Result<std::unique_ptr<Backend>> Backend::Create(TRITONBACKEND_Backend*) {
  InitializeTorch([](const std::string& text) { backend::LogWarning(StrCat("PyTorch: ", text)); });
  GpuCount();  // before anything else asks PyTorch for its devices
  return std::make_unique<Backend>();
}

namespace {

Result<std::string> ModelPath(const std::string& folder, const Settings& settings,
                              const std::string& model) {
  const std::filesystem::path path =
      std::filesystem::path(folder) / (!settings.model_filename.empty() ? settings.model_filename
                                       : settings.is_compiled           ? "model.pt2"
                                                                        : "model.pt");
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return Error::Unavailable(StrCat("unable to find '", path.string(), "' for model instance '",
                                     model, "'.", backend::FoundInstead(path)));
  }
  return path.string();
}

Result<std::shared_ptr<const Program>> OpenProgram(const std::string& folder,
                                                   const Settings& settings, const Device& device,
                                                   const std::string& model) {
  NEREID_KIT_ASSIGN(const std::string path, ModelPath(folder, settings, model));
  if (settings.is_compiled) {
    NEREID_KIT_ASSIGN(std::unique_ptr<const Program> program,
                      LoadCompiled(path, settings, device, model));
    return std::shared_ptr<const Program>(std::move(program));
  }
  if (Error error = CheckTorchScriptFile(path); !error.ok()) {
    return Error(error.code(), StrCat("failed to load model '", model, "': ", error.message()));
  }
  NEREID_KIT_ASSIGN(std::unique_ptr<const Program> program,
                    LoadTorchScript(path, settings, device, model));
  return std::shared_ptr<const Program>(std::move(program));
}

// Finds a place for each input.
Result<std::shared_ptr<BoundProgram>> BindProgram(std::shared_ptr<const Program> program,
                                                  const backend::Ports& ports,
                                                  int64_t max_batch_size,
                                                  const std::string& model) {
  auto bound = std::make_shared<BoundProgram>();
  bound->program = std::move(program);
  const Signature& signature = bound->program->signature();
  NEREID_KIT_TRY(CheckInputsListed(ports, *bound->program, model));
  NEREID_KIT_ASSIGN(bound->arguments, BindInputs(signature, InputNames(ports), model));
  NEREID_KIT_TRY(CheckKinds(ports, bound->arguments));
  if (const std::vector<InputRule>* const rules = bound->program->input_rules()) {
    NEREID_KIT_TRY(CheckInputRules(ports, bound->arguments, *rules, max_batch_size, model));
  }
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

// Adds the inputs of a compiled model to a configuration that has none.
void CompleteInputs(const Program& program, ModelConfig* config) {
  if (program.input_rules() == nullptr) {
    return;
  }
  size_t number = 0;
  for (const InputRule& rule : *program.input_rules()) {
    std::vector<int64_t> dims;
    for (size_t d = config->max_batch_size() > 0 ? 1 : 0; d < rule.dims.size(); ++d) {
      dims.push_back(rule.dims[d].fixed);
    }
    config->AddTensor("input", StrCat("INPUT__", number++), ConfiguredName(rule.datatype), dims);
  }
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
    config->AddTensor("output", output.name, ConfiguredName(output.datatype), output.dims);
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
  const bool lacks_inputs = settings.is_compiled && config.tensors("input").Empty();
  std::shared_ptr<const Program> program;
  if (auto_complete && (lacks_inputs || config.tensors("output").Empty())) {
    NEREID_KIT_ASSIGN(program, OpenProgram(location.version_folder, settings, {}, location.name));
    if (lacks_inputs) {
      CompleteInputs(*program, &config);
      NEREID_KIT_ASSIGN(ports, backend::Ports::FromConfig(config));
    }
    NEREID_KIT_ASSIGN(const std::shared_ptr<BoundProgram> bound,
                      BindProgram(program, ports, config.max_batch_size(), location.name));
    if (config.tensors("output").Empty()) {
      NEREID_KIT_TRY(CompleteOutputs(*bound, ports, location.name, &config));
    }
    NEREID_KIT_TRY(config.Store(handle));
    NEREID_KIT_ASSIGN(config, ModelConfig::Load(handle));
    NEREID_KIT_ASSIGN(ports, backend::Ports::FromConfig(config));
    // The calls with zeros may have changed it.
    if (program->signature().writes_attributes) {
      program = nullptr;
    }
  }
  return std::unique_ptr<Model>(new Model(handle, std::move(location), std::move(config),
                                          std::move(settings), std::move(ports),
                                          std::move(program)));
}

Result<std::shared_ptr<const BoundProgram>> Model::ProgramForInstance(
    TRITONBACKEND_ModelInstance* instance, const Device& device) {
  const backend::MutexLock lock(mutex_);
  for (const std::shared_ptr<const BoundProgram>& shared : shared_) {
    if (shared->program->device() == device) {
      if (settings_.weight_sharing) {
        backend::LogInfo(StrCat("Reusing TorchScript model for instance '", location_.name, "'"));
      }
      return shared;
    }
  }
  NEREID_KIT_ASSIGN(std::shared_ptr<const BoundProgram> program,
                    Load(device, std::exchange(opened_, nullptr)));
  const std::vector<backend::MemoryUse> weights = program->program->weights();
  if (settings_.weight_sharing.value_or(!program->program->signature().writes_attributes)) {
    shared_.push_back(program);
    for (const backend::MemoryUse& use : weights) {
      backend::AddMemoryUse(use, &memory_);
    }
    backend::LogIfError(backend::ReportMemoryUse(handle_, memory_), "memory of the model");
  } else {
    backend::LogIfError(backend::ReportMemoryUse(instance, weights), "memory of the instance");
  }
  return program;
}

Result<std::shared_ptr<const BoundProgram>> Model::Load(
    const Device& device, std::shared_ptr<const Program> opened) const {
  std::shared_ptr<const Program> program = std::move(opened);
  if (program == nullptr || program->device() != device) {
    NEREID_KIT_ASSIGN(program,
                      OpenProgram(location_.version_folder, settings_, device, location_.name));
  }
  NEREID_KIT_ASSIGN(
      std::shared_ptr<BoundProgram> bound,
      BindProgram(std::move(program), ports_, config_.max_batch_size(), location_.name));
  std::vector<std::string> outputs;
  for (const backend::OutputPort& output : ports_.outputs) {
    outputs.push_back(output.name);
  }
  NEREID_KIT_ASSIGN(bound->outputs, BindOutputs(bound->program->signature(), outputs));
  if (settings_.is_compiled) {
    NEREID_KIT_TRY(CheckOutputPlaces(bound->outputs, bound->program->signature(), location_.name));
  }
  return std::shared_ptr<const BoundProgram>(std::move(bound));
}

}  // namespace nereid::pytorch
