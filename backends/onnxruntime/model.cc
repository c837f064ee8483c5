// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/model.h"

#include <filesystem>

#include "backend_kit/completion.h"
#include "backend_kit/location.h"
#include "backend_kit/missing_file.h"
#include "onnxruntime_backend/auto_complete.h"
#include "onnxruntime_backend/batch_probe.h"
#include "onnxruntime_backend/memory.h"
#include "onnxruntime_backend/validate.h"

namespace nereid::onnxruntime {

using backend::BatchVerdict;
using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

namespace {

constexpr const char* kConfigured = "configured";
constexpr const char* kDefaultMaxBatchSize = "default_max_batch_size";

// Whether the backend had a choice because neither the user nor the model's dimensions decided.
bool IsChoice(const BatchVerdict& verdict) {
  return verdict.reason != kConfigured && verdict.reason != kDefaultMaxBatchSize &&
         verdict.reason != backend::kFixedDimension;
}

bool HasInstancesOnCpu(const ModelConfig& config) {
  for (const rapidjson::Value& group : backend::ArrayOf(config.json(), "instance_group")) {
    if (backend::StringMember(group, "kind") != "KIND_GPU") {
      return true;
    }
  }
  return false;
}

// Logs a choice of the backend that the user can override.
void LogVerdict(const std::string& model, const BatchVerdict& verdict, int max_batch_size) {
  if (verdict.is_batched) {
    backend::LogInfo(StrCat("model '", model, "' takes batches and its configuration has no ",
                            "max_batch_size: set to ", max_batch_size, " (", verdict.text, ")"));
  } else if (verdict.reason == backend::kFixedDimension) {
    backend::Log(TRITONSERVER_LOG_VERBOSE,
                 StrCat("model '", model, "' is not batched: ", verdict.text));
  } else {
    backend::LogInfo(StrCat("model '", model, "' is not batched (", verdict.reason,
                            "): ", verdict.text,
                            "; max_batch_size in its configuration would decide otherwise"));
  }
}

}  // namespace

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle,
                                             const Environment& environment) {
  NEREID_KIT_ASSIGN(backend::ModelLocation location, backend::Locate(handle));
  NEREID_KIT_ASSIGN(ModelConfig config, ModelConfig::Load(handle));
  NEREID_KIT_ASSIGN(Settings settings, Settings::FromConfig(config));
  std::unique_ptr<Model> model(new Model(handle, environment, std::move(location.name),
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
  // The session that is made to inspect the model is the one that serves it on the CPU, if any.
  const Placement cpu;
  NEREID_KIT_ASSIGN(const std::shared_ptr<Session> session, Load(cpu));
  // An output that cannot be served is left out if the configuration lists the outputs to serve.
  const Signature& signature = session->signature();
  if (!signature.other_outputs.empty() && backend::ArrayOf(config_.json(), "output").Size() == 0) {
    return NoTensorError(signature.other_outputs.front(), signature);
  }
  NEREID_KIT_ASSIGN(const BatchVerdict verdict, ChooseBatching(handle, *session));
  const int default_size = environment_.options().default_max_batch_size;
  NEREID_KIT_TRY(Complete(name_, signature, verdict.is_batched ? default_size : 0, &config_));
  NEREID_KIT_TRY(config_.Store(handle));
  // The server adds defaults to the stored configuration.
  NEREID_KIT_ASSIGN(config_, ModelConfig::Load(handle));
  if (Error error = Check(*session); !error.ok()) {
    return IsChoice(verdict) && !verdict.is_batched
               ? Error(error.code(), StrCat(error.message(), "; it is not batched: ", verdict.text))
               : std::move(error);
  }
  if (HasInstancesOnCpu(config_)) {
    const backend::MutexLock lock(sessions_mutex_);
    Keep(session);
  }
  return {};
}

Result<BatchVerdict> Model::ChooseBatching(TRITONBACKEND_Model* handle, const Session& session) {
  const int default_size = environment_.options().default_max_batch_size;
  NEREID_KIT_ASSIGN(const bool is_given, backend::GivesMaxBatchSize(handle));
  const auto rank_of = [&](const std::string& name) -> std::optional<size_t> {
    const Signature& signature = session.signature();
    const TensorInfo* tensor = FindTensor(signature.inputs, name);
    tensor = tensor == nullptr ? FindTensor(signature.outputs, name) : tensor;
    return tensor == nullptr ? std::nullopt : std::optional(tensor->dims.size());
  };
  BatchVerdict verdict;
  if (const int64_t size = config_.max_batch_size(); is_given || size != 0) {
    verdict = {.is_batched = size > 0,
               .reason = kConfigured,
               .text = StrCat("max_batch_size is ", size, " in the configuration")};
  } else if (const auto listed = backend::ListedWithoutBatch(config_, rank_of)) {
    verdict = BatchVerdict::No(kConfigured,
                               StrCat("the configuration lists all dimensions of '", *listed, "'"));
  } else if (default_size <= 0) {
    verdict = BatchVerdict::No(kDefaultMaxBatchSize, "default-max-batch-size is 0");
  } else {
    verdict = DecideBatching(session, default_size);
    LogVerdict(name_, verdict, default_size);
  }
  NEREID_KIT_TRY(backend::Explain(handle, "batching", verdict.ToJson()));
  return verdict;
}

Result<std::shared_ptr<Session>> Model::SessionAt(const Placement& placement) {
  const backend::MutexLock lock(sessions_mutex_);
  for (const std::shared_ptr<Session>& session : sessions_) {
    if (session->placement() == placement) {
      return session;
    }
  }
  NEREID_KIT_ASSIGN(const std::shared_ptr<Session> session, Load(placement));
  NEREID_KIT_TRY(Check(*session));
  Keep(session);
  return session;
}

Error Model::Check(const Session& session) const {
  return Validate(name_, config_, session.signature());
}

void Model::Keep(std::shared_ptr<Session> session) {
  memory_.push_back(
      MemoryOf(session->get(), session->placement(), session->gpu_memory(), session->file_bytes()));
  sessions_.push_back(std::move(session));
  backend::LogIfError(backend::ReportMemoryUse(handle_, memory_),
                      "failed to report how much memory the model holds");
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
    return Error::Unavailable(StrCat("unable to find '", path.string(), "' for model instance '",
                                     name_, "'.", backend::FoundInstead(path)));
  }
  return path.string();
}

}  // namespace nereid::onnxruntime
