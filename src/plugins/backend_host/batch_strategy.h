// SPDX-License-Identifier: Apache-2.0
// A model's own batching rules: the TRITONBACKEND_ModelBatch* functions of a library beside the
// model, or one that its configuration names.
#pragma once

#include <memory>

#include "base/shared_library.h"
#include "base/status.h"
#include "core/scheduler.h"
#include "triton/core/tritonbackend.h"

namespace nereid::backend_host {

class BackendModel;

// Guarded by the lock of the scheduler that uses it.
class PluginBatchStrategy final : public core::BatchStrategy {
 public:
  // Opens the library that `model` names (parameter TRITON_BATCH_STRATEGY_PATH) or batchstrategy.so
  // of its version, model or backend folder. Returns null if there is none. `model` outlives the
  // strategy.
  static base::Result<std::unique_ptr<core::BatchStrategy>> Find(BackendModel& model);
  ~PluginBatchStrategy() override;

  void Begin() override;
  bool Includes(core::Request& request) override;

 private:
  // The entry points of a batching library.
  struct Functions {
    decltype(TRITONBACKEND_ModelBatcherInitialize)* initialize = nullptr;
    decltype(TRITONBACKEND_ModelBatcherFinalize)* finalize = nullptr;
    decltype(TRITONBACKEND_ModelBatchIncludeRequest)* include = nullptr;
    decltype(TRITONBACKEND_ModelBatchInitialize)* begin = nullptr;
    decltype(TRITONBACKEND_ModelBatchFinalize)* end = nullptr;
  };

  PluginBatchStrategy(std::unique_ptr<base::SharedLibrary> library, Functions functions);
  static base::Result<std::unique_ptr<core::BatchStrategy>> Open(const std::string& path,
                                                                 BackendModel& model);
  void EndBatch();

  const std::unique_ptr<base::SharedLibrary> library_;
  const Functions functions_;
  TRITONBACKEND_Batcher* batcher_ = nullptr;
  void* note_ = nullptr;  // the library's data about the batch being formed
  bool has_batch_ = false;
};

}  // namespace nereid::backend_host
