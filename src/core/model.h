// SPDX-License-Identifier: Apache-2.0
// A loaded model version: what requests are checked against and the scheduler that takes them.
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
#include "core/model_handle.h"
#include "core/scheduler.h"
#include "core/statistics.h"
#include "tensor/shape.h"

namespace nereid::core {

// One input or output, compiled from the configuration for checking requests by position.
struct ModelTensor {
  std::string name;
  tensor::DataType type = tensor::DataType::kInvalid;
  tensor::Shape dims;        // of one batch element, as the client sees it; may hold wildcards
  tensor::Shape model_dims;  // as the model sees it: `reshape` applied, else equal to dims
  bool has_reshape = false;
  bool is_optional = false;
  bool is_shape_tensor = false;
  bool allow_ragged_batch = false;
  std::vector<std::string> labels;  // of an output with a label file
};

// What a model is made from.
struct ModelOptions {
  std::string name;
  int64_t version = 0;
  std::shared_ptr<const config::ModelConfig> config;  // also read by those who print it
  std::vector<ModelTensor> inputs;
  std::vector<ModelTensor> outputs;
  int64_t max_batch_size = 0;
  bool is_decoupled = false;
  // Differs after a change of the files that the version was made from.
  std::string fingerprint;
};

// Immutable but for its pins, statistics and scheduler, which look after themselves. Thread-safe.
class Model {
 public:
  explicit Model(ModelOptions options);
  ~Model();

  const std::string& name() const { return options_.name; }
  int64_t version() const { return options_.version; }
  // The version as protocols print it.
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
  // Positions of the outputs in the order of their names, which is the order backends are told.
  const std::vector<uint32_t>& outputs_by_name() const { return outputs_by_name_; }
  // Number of inputs that are not optional.
  size_t required_input_count() const { return required_input_count_; }
  // -1 when there is none of that name.
  int FindInput(std::string_view name) const;
  int FindOutput(std::string_view name) const;

  ModelStatistics& statistics() { return statistics_; }
  Scheduler& scheduler() { return *scheduler_; }
  // Before the model is published, once.
  void SetScheduler(std::unique_ptr<Scheduler> scheduler);

  // Whether what executes the model can say that it is not ready, although the model is loaded.
  bool has_ready_check() const { return static_cast<bool>(ready_check_); }
  // Asks it: the reason why not. May block; the caller holds a pin. OK where there is nothing to
  // ask.
  base::Status CheckReady() const { return ready_check_ ? ready_check_() : base::OkStatus(); }
  // Before the model is published, once. Any thread may call `check`, many at the same time.
  void SetReadyCheck(std::function<base::Status()> check) { ready_check_ = std::move(check); }

  // Memory that what executes the model lends for the bytes of inputs, `size` of them, so that it
  // need not copy them. Empty where there is none, or none left. The caller holds a pin; the memory
  // may be kept longer.
  base::BufferRef LendInputMemory(size_t size) const {
    return input_memory_ ? input_memory_(size) : base::BufferRef();
  }
  // Before the model is published, once. Any thread may call `lend`, many at the same time.
  void SetInputMemory(std::function<base::BufferRef(size_t)> lend) {
    input_memory_ = std::move(lend);
  }

  // Whether what executes the model copes with tensors in memory that a client can write at any
  // time. Otherwise it is given copies of those.
  bool stands_changes() const { return stands_changes_; }
  // Before the model is published, once.
  void SetStandsChanges() { stands_changes_ = true; }

  // Pins the version for use: false once it is closing.
  bool TryPin();
  // Adds a pin to one that the caller holds.
  void PinAgain() { pins_.fetch_add(1, std::memory_order_relaxed); }
  void Unpin();
  // Refuses further pins; `drained` runs once, as soon as there is none (perhaps now, perhaps later
  // on the thread that drops the last one).
  void Close(std::function<void()> drained);
  uint64_t pin_count() const {
    return pins_.load(std::memory_order_relaxed) & ~(kClosed | kDrained);
  }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 63;
  static constexpr uint64_t kDrained = uint64_t{1} << 62;  // `drained` was called

  const ModelOptions options_;
  const std::string version_text_;
  const size_t required_input_count_;
  const std::vector<uint32_t> outputs_by_name_;
  ModelStatistics statistics_;
  std::unique_ptr<Scheduler> scheduler_;                 // constant once published
  std::function<base::Status()> ready_check_;            // constant once published
  std::function<base::BufferRef(size_t)> input_memory_;  // the same
  bool stands_changes_ = false;                          // the same
  std::atomic<uint64_t> pins_{0};                        // kClosed, kDrained and a count
  std::function<void()> drained_;                        // written before kClosed is set
};

}  // namespace nereid::core
