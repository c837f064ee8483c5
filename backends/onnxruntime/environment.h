// SPDX-License-Identifier: Apache-2.0
// What all models of the backend share: ONNX Runtime's environment (its log and, if asked for, one
// thread pool for all sessions) and the backend's command line.
#pragma once

#include <string_view>

#include "onnxruntime_backend/ort.h"

namespace nereid::onnxruntime {

// What --backend-config=onnxruntime,<key>=<value> says. Immutable.
struct CommandLine {
  int default_max_batch_size = 4;
  bool global_thread_pool = false;
  int intra_op_threads = 0;  // of the global pool; 0 lets ONNX Runtime choose
  int inter_op_threads = 0;

  // From the JSON of TRITONBACKEND_BackendConfig. Fails for values that are no numbers or booleans.
  static backend::Result<CommandLine> Parse(std::string_view json);
};

// Thread-safe: immutable after Create, and sessions may be made from it concurrently.
class Environment {
 public:
  // Nothing that ONNX Runtime does with it is told to anybody: its telemetry is off.
  static backend::Result<std::unique_ptr<Environment>> Create(const CommandLine& options);
  // The same with the options that the backend was given.
  static backend::Result<std::unique_ptr<Environment>> Create(TRITONBACKEND_Backend* handle);

  OrtEnv* get() const { return env_.get(); }
  const CommandLine& options() const { return options_; }

 private:
  explicit Environment(const CommandLine& options) : options_(options) {}

  const CommandLine options_;
  Owned<OrtEnv> env_;
};

}  // namespace nereid::onnxruntime
