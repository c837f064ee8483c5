// SPDX-License-Identifier: Apache-2.0
// A loaded model version: the description that requests are validated against, and the scheduler
// that executes them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/status.h"
#include "config/model_config.h"
#include "core/caller.h"
#include "core/model_handle.h"
#include "core/scheduler.h"
#include "core/statistics.h"
#include "tensor/shape.h"

namespace nereid::memory {
class Gpus;
}

namespace nereid::core {

// One input or output, compiled from the configuration for validating requests by position.
struct ModelTensor {
  std::string name;
  tensor::DataType type = tensor::DataType::kInvalid;
  tensor::Shape dims;        // of one batch element, as the client sees it; may have wildcards
  tensor::Shape model_dims;  // as the model sees it: with `reshape` applied, else equal to dims
  bool has_reshape = false;
  bool is_optional = false;
  bool is_shape_tensor = false;
  bool allow_ragged_batch = false;
  std::vector<std::string> labels;  // only for outputs with a label file
};

// The parts of a new model.
struct ModelOptions {
  std::string name;
  int64_t version = 0;
  std::shared_ptr<const config::ModelConfig> config;  // shared with code that prints it
  std::vector<ModelTensor> inputs;
  std::vector<ModelTensor> outputs;
  int64_t max_batch_size = 0;
  bool is_decoupled = false;
  // Changes with the files that the version was made from. Empty if the server has no cache.
  std::string fingerprint;
  // What each caller may take of this model.
  CallerLimits caller_limits = {};
  // repository::ModelId::Text; empty: the name.
  std::string id_text = {};
  // Of an ensemble: the id_text of each model in it, and of each in an ensemble in it.
  std::vector<std::string> parts = {};
  // Whether an execution of it, or of a model within it, holds resources of the rate limiter.
  bool holds_resources = false;
};

// A loaded version. Immutable except for its pins, statistics and scheduler, which synchronise
// themselves. Thread-safe.
class Model {
 public:
  explicit Model(ModelOptions options);
  ~Model();

  const std::string& name() const { return options_.name; }
  // The name with its namespace.
  const std::string& id_text() const {
    return options_.id_text.empty() ? options_.name : options_.id_text;
  }
  const std::vector<std::string>& parts() const { return options_.parts; }
  bool holds_resources() const { return options_.holds_resources; }
  int64_t version() const { return options_.version; }
  // The version as text, as protocols print it.
  const std::string& version_text() const { return version_text_; }
  const config::ModelConfig& config() const { return *options_.config; }
  const std::shared_ptr<const config::ModelConfig>& shared_config() const {
    return options_.config;
  }
  const std::vector<ModelTensor>& inputs() const { return options_.inputs; }
  const std::vector<ModelTensor>& outputs() const { return options_.outputs; }
  int64_t max_batch_size() const { return options_.max_batch_size; }
  bool is_decoupled() const { return options_.is_decoupled; }
  const std::string& fingerprint() const { return options_.fingerprint; }
  const CallerLimits& caller_limits() const { return options_.caller_limits; }
  // The positions of the outputs in the order of their names, which is the order that backends see.
  const std::vector<uint32_t>& outputs_by_name() const { return outputs_by_name_; }
  // The number of inputs that are not optional.
  size_t required_input_count() const { return required_input_count_; }
  // FindInput and FindOutput return -1 if there is no tensor of that name.
  int FindInput(std::string_view name) const;
  int FindOutput(std::string_view name) const;

  ModelStatistics& statistics() { return statistics_; }
  Scheduler& scheduler() { return *scheduler_; }
  // Called once, before the model is published.
  void SetScheduler(std::unique_ptr<Scheduler> scheduler);

  // Whether the backend of the model can report that it is not ready although it is loaded.
  bool has_ready_check() const { return static_cast<bool>(ready_check_); }
  // Asks the backend; the error says why it is not ready. OK if there is no check. May block.
  // REQUIRES: the caller holds a pin.
  base::Status CheckReady() const { return ready_check_ ? ready_check_() : base::OkStatus(); }
  // Called once, before the model is published. Any thread may call `check`, also concurrently.
  void SetReadyCheck(std::function<base::Status()> check) { ready_check_ = std::move(check); }

  // Returns `size` bytes of memory that the backend lends for input data, so that it need not copy
  // the data. Empty if it lends none, or none is left. The memory may be kept longer than the pin.
  // REQUIRES: the caller holds a pin.
  base::BufferRef LendInputMemory(size_t size) const {
    return input_memory_ ? input_memory_(size) : base::BufferRef();
  }
  // Called once, before the model is published. Any thread may call `lend`, also concurrently.
  void SetInputMemory(std::function<base::BufferRef(size_t)> lend) {
    input_memory_ = std::move(lend);
  }

  // Whether the backend tolerates tensors in memory that a client can change at any time. Otherwise
  // it receives copies of those.
  bool stands_changes() const { return stands_changes_; }
  // Called once, before the model is published.
  void SetStandsChanges() { stands_changes_ = true; }

  // The GPUs of the server, or null; constant once published. Called once, before.
  memory::Gpus* gpus() const { return gpus_; }
  void SetGpus(memory::Gpus* gpus) { gpus_ = gpus; }
  // Whether instances may read inputs and write outputs in the memory of GPUs.
  bool uses_gpu_memory() const { return uses_gpu_memory_; }
  // Called once, before the model is published.
  void SetUsesGpuMemory() { uses_gpu_memory_ = true; }

  // Pins the version for use. Returns false if it is closing.
  bool TryPin();
  // Adds another pin. REQUIRES: the caller holds a pin, which provides the ordering: hence relaxed.
  void PinAgain() { pins_.fetch_add(kPin, std::memory_order_relaxed); }
  void Unpin() { Drop(kPin); }
  // Counts one of the caller's pins among the requests in flight, with a message or body of
  // `bytes`. Returns false, without a change, if `limit` are in flight.
  [[nodiscard]] bool TryCountRequest(uint64_t limit, uint32_t bytes);
  // Drops a pin that TryCountRequest has counted, with as many bytes.
  void UnpinRequest(uint32_t bytes) {
    request_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    Drop(kPin | kRequest);
  }
  // Ends the count of such a pin, which the caller keeps: hence relaxed.
  void EndRequest(uint32_t bytes) {
    request_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    pins_.fetch_sub(kRequest, std::memory_order_relaxed);
  }
  // Refuses further pins, unless there are any: then returns false, without a change. EndHold
  // allows pins again, unless Close was called meanwhile.
  bool TryHold();
  // REQUIRES: TryHold returned true, and Close has not been called since.
  void EndHold();
  // Refuses further pins. `drained` runs once, when there are no pins left: in this call, or later
  // on the thread that drops the last pin.
  void Close(std::function<void()> drained);
  // The numbers at about this moment. There may be more pins than requests: callers other than the
  // network's have some, and so has who needs the version for longer than a request.
  uint64_t pin_count() const { return pins_.load(std::memory_order_relaxed) & (kRequest - 1); }
  uint64_t request_count() const { return Requests(pins_.load(std::memory_order_relaxed)); }
  uint64_t request_bytes() const { return request_bytes_.load(std::memory_order_relaxed); }

 private:
  // Takes `amount` from the pins and requests.
  void Drop(uint64_t amount);
  // Calls `drained`, unless that was done.
  void Drain();

  static uint64_t Requests(uint64_t pins) { return (pins & ~(kClosed | kDrained)) / kRequest; }

  // The parts of pins_: the lowest 31 bits are the number of pins, the next 31 how many of them are
  // requests.
  static constexpr uint64_t kPin = 1;
  static constexpr uint64_t kRequest = uint64_t{1} << 31;
  static constexpr uint64_t kClosed = uint64_t{1} << 63;
  // `drained` was called, or must not be because the version is held: TryHold sets both bits, so
  // that a failed TryPin changes nothing.
  static constexpr uint64_t kDrained = uint64_t{1} << 62;

  const ModelOptions options_;
  const std::string version_text_;
  const size_t required_input_count_;
  const std::vector<uint32_t> outputs_by_name_;
  ModelStatistics statistics_;
  std::unique_ptr<Scheduler> scheduler_;                 // constant once published
  std::function<base::Status()> ready_check_;            // constant once published
  std::function<base::BufferRef(size_t)> input_memory_;  // constant once published
  bool stands_changes_ = false;                          // constant once published
  bool uses_gpu_memory_ = false;                         // constant once published
  memory::Gpus* gpus_ = nullptr;                         // constant once published
  std::atomic<uint64_t> pins_{0};                        // kClosed, kDrained and two counts
  std::atomic<uint64_t> request_bytes_{0};               // of the requests among the pins
  std::function<void()> drained_;                        // written before kClosed is set
};

}  // namespace nereid::core
