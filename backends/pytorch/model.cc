// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/model.h"

#include <filesystem>

#include "backend_kit/location.h"
#include "backend_kit/missing_file.h"
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

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle, Backend&) {
  NEREID_KIT_ASSIGN(backend::ModelLocation location, backend::Locate(handle));
  NEREID_KIT_ASSIGN(ModelConfig config, ModelConfig::Load(handle));
  NEREID_KIT_ASSIGN(Settings settings, Settings::FromConfig(config));
  NEREID_KIT_ASSIGN(backend::Ports ports, backend::Ports::FromConfig(config));
  NEREID_KIT_TRY(CheckPorts(ports, config.max_batch_size() > 0, location.name));
  ApplyThreadCounts(settings);
  return std::unique_ptr<Model>(new Model(std::move(location.name),
                                          std::move(location.version_folder), std::move(config),
                                          std::move(settings), std::move(ports)));
}

Result<std::shared_ptr<const BoundProgram>> Model::ProgramForInstance() {
  const backend::MutexLock lock(mutex_);
  if (shared_ != nullptr) {
    return shared_;
  }
  NEREID_KIT_ASSIGN(std::shared_ptr<const BoundProgram> program, Load());
  if (settings_.weight_sharing.value_or(!program->program->signature().writes_attributes)) {
    shared_ = program;
  }
  return program;
}

Result<std::string> Model::ModelPath() const {
  const std::filesystem::path path =
      std::filesystem::path(folder_) /
      (settings_.model_filename.empty() ? "model.pt" : settings_.model_filename);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return Error::Unavailable(StrCat("unable to find '", path.string(), "' for model instance '",
                                     name_, "'.", backend::FoundInstead(path)));
  }
  return path.string();
}

Result<std::shared_ptr<const BoundProgram>> Model::Load() const {
  NEREID_KIT_ASSIGN(const std::string path, ModelPath());
  if (settings_.is_compiled) {
    return Error::Unsupported(StrCat(
        "model '", name_, "' has the platform torch_aoti, which is not supported yet; save it ",
        "as TorchScript (platform pytorch_libtorch)"));
  }
  if (Error error = CheckTorchScriptFile(path); !error.ok()) {
    return Error(error.code(), StrCat("failed to load model '", name_, "': ", error.message()));
  }
  auto bound = std::make_shared<BoundProgram>();
  NEREID_KIT_ASSIGN(bound->program, LoadTorchScript(path, settings_, name_));
  const Signature& signature = bound->program->signature();
  NEREID_KIT_TRY(CheckListed(ports_, signature, name_));
  NEREID_KIT_ASSIGN(bound->arguments, BindInputs(signature, InputNames(ports_), name_));
  NEREID_KIT_TRY(CheckKinds(ports_, bound->arguments));
  std::vector<std::string> outputs;
  for (const backend::OutputPort& output : ports_.outputs) {
    outputs.push_back(output.name);
  }
  NEREID_KIT_ASSIGN(bound->outputs, BindOutputs(signature, outputs));
  return std::shared_ptr<const BoundProgram>(std::move(bound));
}

}  // namespace nereid::pytorch
