// SPDX-License-Identifier: Apache-2.0
#include "backend_host/batch_strategy.h"

#include <filesystem>

#include "abi_objects/error.h"
#include "backend_host/backend_model.h"
#include "backend_host/handles.h"
#include "base/log.h"
#include "config/paths.h"

namespace nereid::backend_host {
namespace {

namespace fs = std::filesystem;
using abi_objects::CallPlugin;

constexpr const char* kParameter = "TRITON_BATCH_STRATEGY_PATH";
constexpr const char* kLibrary = "batchstrategy.so";

}  // namespace

base::Result<std::unique_ptr<core::BatchStrategy>> PluginBatchStrategy::Find(BackendModel& model) {
  const auto& parameters = model.config().parameters;
  const auto named = parameters.find(kParameter);
  std::error_code error;
  if (named != parameters.end()) {
    const fs::path path = named->second;
    NEREID_ASSIGN_OR_RETURN(const bool escapes,
                            config::PathEscapes(path.string(), model.model_dir()));
    if (escapes) {
      return base::InvalidArgumentError("Batching library path escapes model repository.");
    }
    if (!fs::exists(path, error)) {
      return base::NotFoundError("Batching library path not found: " + path.string());
    }
    return Open(path.string(), model);
  }
  const fs::path folder = model.model_dir();
  for (const fs::path& path :
       {folder / std::to_string(model.version()) / kLibrary, folder / kLibrary,
        fs::path(model.library().directory()) / kLibrary}) {
    if (fs::exists(path, error)) return Open(path.string(), model);
  }
  return std::unique_ptr<core::BatchStrategy>();
}

base::Result<std::unique_ptr<core::BatchStrategy>> PluginBatchStrategy::Open(
    const std::string& path, BackendModel& model) {
  NEREID_LOG(kInfo, "Loading custom batching strategy library {} for model {}", path, model.name());
  NEREID_ASSIGN_OR_RETURN(auto library, base::SharedLibrary::Open(path));
  Functions functions;
  const auto find = [&]<typename Function>(const char* name, Function*& function) {
    function = library->Find<Function>(name);
    return function != nullptr;
  };
  const bool complete = find("TRITONBACKEND_ModelBatcherInitialize", functions.initialize) &&
                        find("TRITONBACKEND_ModelBatcherFinalize", functions.finalize) &&
                        find("TRITONBACKEND_ModelBatchIncludeRequest", functions.include) &&
                        find("TRITONBACKEND_ModelBatchInitialize", functions.begin) &&
                        find("TRITONBACKEND_ModelBatchFinalize", functions.end);
  if (!complete) {
    return base::InvalidArgumentError(
        "batching library '" + path +
        "' must export TRITONBACKEND_ModelBatcherInitialize, TRITONBACKEND_ModelBatcherFinalize, "
        "TRITONBACKEND_ModelBatchIncludeRequest, TRITONBACKEND_ModelBatchInitialize and "
        "TRITONBACKEND_ModelBatchFinalize");
  }
  std::unique_ptr<PluginBatchStrategy> strategy(
      new PluginBatchStrategy(std::move(library), functions));
  NEREID_RETURN_IF_ERROR(CallPlugin(functions.initialize, &strategy->batcher_, ToHandle(&model)));
  return std::unique_ptr<core::BatchStrategy>(std::move(strategy));
}

PluginBatchStrategy::PluginBatchStrategy(std::unique_ptr<base::SharedLibrary> library,
                                         Functions functions)
    : library_(std::move(library)), functions_(functions) {}

PluginBatchStrategy::~PluginBatchStrategy() {
  EndBatch();
  if (batcher_ == nullptr) return;
  const base::Status status = CallPlugin(functions_.finalize, batcher_);
  if (!status.ok()) NEREID_LOG(kError, "failed finalizing batcher: {}", status.ToString());
}

void PluginBatchStrategy::EndBatch() {
  if (!std::exchange(has_batch_, false)) return;
  const base::Status status = CallPlugin(functions_.end, std::exchange(note_, nullptr));
  if (!status.ok()) {
    NEREID_LOG(kError, "Custom batching finalization function failed: {}", status.ToString());
  }
}

void PluginBatchStrategy::Begin() {
  EndBatch();
  const base::Status status = CallPlugin(functions_.begin, batcher_, &note_);
  has_batch_ = status.ok();
  if (!status.ok()) {
    NEREID_LOG(kError, "Custom batching initialization function failed: {}", status.ToString());
  }
}

bool PluginBatchStrategy::Includes(core::Request& request) {
  for (core::RequestInput& input : request.inputs) input.owner = &request;
  bool joins = false;
  const base::Status status = CallPlugin(functions_.include, ToHandle(&request), note_, &joins);
  if (!status.ok()) {
    NEREID_LOG(kError, "Custom batching include function failed: {}", status.ToString());
  }
  return joins;
}

}  // namespace nereid::backend_host
