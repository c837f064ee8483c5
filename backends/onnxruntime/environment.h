// SPDX-License-Identifier: Apache-2.0
// The state that all models of the backend share: ONNX Runtime's environment (its log and, if
// enabled, one thread pool for all sessions) and the backend's command line.
#pragma once

#include <string_view>

#include "onnxruntime_backend/ort.h"

namespace nereid::onnxruntime {

// The settings of --backend-config=onnxruntime,<key>=<value>. Immutable.
struct CommandLine {
  int default_max_batch_size = 4;
  bool global_thread_pool = false;
  int intra_op_threads = 0;  // of the global pool; 0: ONNX Runtime's choice
  int inter_op_threads = 0;

  // Parses the JSON of TRITONBACKEND_BackendConfig. Fails for values that are not numbers or
  // booleans.
  static backend::Result<CommandLine> Parse(std::string_view json);
};

// Thread-safe: immutable after Create, and sessions may be made from it concurrently.
class Environment {
 public:
  // Creates the environment with ONNX Runtime's telemetry disabled.
  static backend::Result<std::unique_ptr<Environment>> Create(const CommandLine& options);
  // Creates the environment with the backend's command line.
  static backend::Result<std::unique_ptr<Environment>> Create(TRITONBACKEND_Backend* handle);

  OrtEnv* get() const { return env_.get(); }
  const CommandLine& options() const { return options_; }

 private:
  explicit Environment(const CommandLine& options) : options_(options) {}

  const CommandLine options_;
  Owned<OrtEnv> env_;
};

}  // namespace nereid::onnxruntime
