// SPDX-License-Identifier: Apache-2.0
// The tensors of one request of an ensemble in progress. They are never copied between steps: a
// response stays where it is until the last step that reads it has released its request.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/request.h"
#include "core/response.h"
#include "schedule/ensemble_plan.h"

namespace nereid::schedule {

// The sequence that a request or a response belongs to.
struct EnsembleSequence {
  core::CorrelationId id = uint64_t{0};
  uint32_t flags = 0;

  bool operator==(const EnsembleSequence&) const = default;
};

// The response of one step, and the number of its remaining readers.
struct EnsembleSource {
  core::ResponsePtr response;
  std::atomic<uint32_t> readers{0};
  EnsembleSequence sequence;  // which the next steps continue

  void DropReader() {
    if (--readers == 0) response.reset();
  }
};

// A tensor's data.
struct EnsembleValue {
  bool is_set = false;
  // Both null: an optional input that was omitted, or an output that the model did not return.
  const core::RequestInput* input = nullptr;
  const core::ResponseOutput* output = nullptr;
  uint32_t batch_size = 0;  // of the request that produced it

  bool has_data() const { return input != nullptr || output != nullptr; }
  const tensor::Shape& shape() const { return input != nullptr ? input->shape : output->shape; }
  tensor::DataType type() const { return input != nullptr ? input->type : output->type; }
};

// The tensors of one group (see EnsemblePlan): for the request itself, or for one response of the
// decoupled step that opened the group. Pooled. Any thread may count references and readers of its
// sources; the rest is confined to the request's strand.
class EnsembleFrame {
 public:
  // Returns a frame with one reference. `plan` and `needs` outlive it.
  static EnsembleFrame& Take(const EnsemblePlan& plan, const EnsembleNeeds& needs, uint32_t group);
  void Reference(uint32_t count = 1) { references_ += count; }
  // After the last reference, its tensors are neither read nor written.
  void Unreference();

  const EnsemblePlan& plan() const { return *plan_; }
  const EnsembleNeeds& needs() const { return *needs_; }

  // Only the first of several values for one tensor counts.
  void Set(uint32_t tensor, const EnsembleValue& value);
  // Sets the tensors that `step` produces from its response, and keeps the response for its
  // readers. `sequence` is that of the step's request. Fails if the response names an invalid one.
  base::Status TakeResponse(uint32_t step, core::ResponsePtr response,
                            const EnsembleSequence& sequence);

  const EnsembleValue& value(uint32_t tensor) const { return values_[tensor]; }
  EnsembleSource& source(uint32_t step) const { return sources_[step]; }
  // The steps that are needed and whose last input has been set; the caller clears this.
  std::vector<uint32_t>& ready() { return ready_; }
  // Whether all requested outputs are set. Never in a group without outputs.
  bool has_all_outputs() const { return missing_outputs_ == 0; }

  // For ObjectPool.
  void Recycle();

 private:
  const EnsemblePlan* plan_ = nullptr;
  const EnsembleNeeds* needs_ = nullptr;
  std::atomic<uint32_t> references_{0};
  std::vector<EnsembleValue> values_;  // by tensor
  std::vector<uint32_t> missing_;      // by step: the number of input tensors that are not set
  uint32_t missing_outputs_ = 0;       // UINT32_MAX: this group has no outputs
  std::vector<uint32_t> ready_;
  std::unique_ptr<EnsembleSource[]> sources_;  // by step
  size_t source_count_ = 0;                    // in use
  size_t source_capacity_ = 0;
};

}  // namespace nereid::schedule
