// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/model.h"

#include <filesystem>

#include "backend_kit/location.h"
#include "onnxruntime_backend/auto_complete.h"
#include "onnxruntime_backend/validate.h"

namespace nereid::onnxruntime {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle,
                                             const Environment& environment) {
  NEREID_KIT_ASSIGN(backend::ModelLocation location, backend::Locate(handle));
  NEREID_KIT_ASSIGN(ModelConfig config, ModelConfig::Load(handle));
  NEREID_KIT_ASSIGN(Settings settings, Settings::FromConfig(config));
  std::unique_ptr<Model> model(new Model(environment, std::move(location.name),
                                         std::move(location.version_folder), std::move(config),
                                         std::move(settings)));
  bool auto_complete = false;
  NEREID_KIT_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &auto_complete));
  if (auto_complete && NeedsCompletion(model->config_)) {
    NEREID_KIT_TRY(model->AutoComplete(handle));
  }
  return model;
}

Error Model::AutoComplete(TRITONBACKEND_Model* handle) {
  // The session made to look at the model is the one that will serve it on the CPU.
  const Placement cpu;
  NEREID_KIT_ASSIGN(const std::shared_ptr<Session> session, Load(cpu));
  NEREID_KIT_TRY(Complete(name_, session->signature(),
                          environment_.options().default_max_batch_size, &config_));
  NEREID_KIT_TRY(config_.Store(handle));
  // The server adds defaults to what it was given.
  NEREID_KIT_ASSIGN(config_, ModelConfig::Load(handle));
  NEREID_KIT_TRY(Validate(name_, config_, session->signature()));
  sessions_.emplace_back(cpu, session);
  return {};
}

Result<std::shared_ptr<Session>> Model::SessionAt(const Placement& placement) {
  const std::lock_guard lock(sessions_mutex_);
  for (const auto& [where, session] : sessions_) {
    if (where == placement) {
      return session;
    }
  }
  NEREID_KIT_ASSIGN(const std::shared_ptr<Session> session, Load(placement));
  NEREID_KIT_TRY(Validate(name_, config_, session->signature()));
  sessions_.emplace_back(placement, session);
  return session;
}

Result<std::shared_ptr<Session>> Model::Load(const Placement& placement) {
  NEREID_KIT_ASSIGN(const std::string path, ModelPath());
  return Session::Load(environment_, path, settings_, placement, name_);
}

Result<std::string> Model::ModelPath() const {
  std::error_code ignored;
  std::filesystem::path path = std::filesystem::path(folder_) / settings_.model_filename;
  if (std::filesystem::is_directory(path, ignored)) {
    path /= "model.onnx";
  }
  if (!std::filesystem::exists(path, ignored)) {
    return Error::Unavailable(
        StrCat("unable to find '", path.string(), "' for model instance '", name_, "'"));
  }
  return path.string();
}

}  // namespace nereid::onnxruntime
