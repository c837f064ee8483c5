// SPDX-License-Identifier: Apache-2.0
// The identity backend: every requested OUTPUT<i> is a copy of INPUT<i>. It exists to try out a
// server, so it can also delay executions (execute_delay_ms) and report spans of its own.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "backend_kit/batch.h"
#include "backend_kit/handles.h"
#include "backend_kit/tensors.h"
#include "identity_backend/settings.h"

namespace nereid::identity {

// The state that all models of the backend share. Immutable after Create.
class BackendState {
 public:
  static backend::Result<std::unique_ptr<BackendState>> Create(TRITONBACKEND_Backend* handle);
  // Null if the server does not support custom metrics.
  TRITONSERVER_MetricFamily* input_bytes() const { return input_bytes_.get(); }

 private:
  backend::MetricFamily input_bytes_;
};

// One model. Thread-safe: immutable except for the count of its instances.
class Model {
 public:
  // Reads and validates the configuration, waits creation_delay_sec, and registers the model's
  // metric.
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* model,
                                                        const BackendState& backend);

  const Settings& settings() const { return settings_; }
  // Null if the server does not support custom metrics.
  TRITONSERVER_Metric* input_bytes() const { return input_bytes_.get(); }
  // Returns 0, 1, 2, … for successive instances.
  size_t NextInstanceNumber() { return instances_++; }

 private:
  explicit Model(Settings settings) : settings_(std::move(settings)) {}

  const Settings settings_;
  backend::Metric input_bytes_;
  std::atomic<size_t> instances_{0};
};

// One instance. Confined to the thread that executes.
class Instance {
 public:
  // Fails unless the instance is on the CPU. `model` outlives the instance.
  static backend::Result<std::unique_ptr<Instance>> Create(TRITONBACKEND_ModelInstance* handle,
                                                           Model& model);
  Instance(TRITONBACKEND_ModelInstance* handle, Model& model)
      : handle_(handle),
        model_(model),
        delay_(model.settings().DelayOf(model.NextInstanceNumber())) {}

  // Takes ownership of the requests: all have a response and are released on return.
  void Execute(TRITONBACKEND_Request** requests, uint32_t count);

 private:
  // Returns the batch size of the request, or 1 for models that do not batch.
  backend::Result<int64_t> BatchSize(TRITONBACKEND_Request* request) const;
  // Fills the responses of the batch; returns the sum of their batch sizes.
  uint64_t RespondAll();
  // Fills the response of request r; returns its batch size.
  backend::Result<int64_t> Respond(uint32_t r);
  backend::Error Echo(uint32_t r, const char* output_name, int64_t batch_size);
  backend::Error AnswerZeros(uint32_t r, const Pair& pair, int64_t batch_size);

  TRITONBACKEND_ModelInstance* const handle_;
  Model& model_;
  const std::chrono::milliseconds delay_;
  backend::Batch batch_;      // reused by each execution
  uint64_t input_bytes_ = 0;  // of the current execution
};

}  // namespace nereid::identity
