// SPDX-License-Identifier: Apache-2.0
// Reads the inputs and the requested outputs of the requests of one execution.
#pragma once

#include <cstdint>
#include <vector>

#include "backend_kit/batch.h"
#include "backend_kit/batch_inputs.h"
#include "backend_kit/string_inputs.h"
#include "backend_kit/tensors.h"
#include "backend_kit/wanted_outputs.h"
#include "onnxruntime_backend/plan.h"

namespace nereid::onnxruntime {

// The inputs of one execution. A member of the instance that each execution reuses. Confined to the
// thread that executes.
class Gathering {
 public:
  // `ports` outlives this; `instance_name` is for error texts.
  Gathering(const Ports& ports, std::string instance_name, int64_t max_batch_size)
      : ports_(ports), instance_name_(std::move(instance_name)), max_batch_size_(max_batch_size) {}

  // Starts a new batch.
  void Begin(const backend::Batch& batch);
  // Reads live requests of the batch that can be executed together and were not read before;
  // requests that do not fit fail. Usually these are all, but sequences with different shapes of
  // states need separate executions: call this again while HasMore. Fails if the whole execution
  // must fail.
  backend::Error Read(backend::Batch& batch);
  // Whether there are live requests that were not read yet.
  bool HasMore(const backend::Batch& batch) const;

  // The results of Read. These are the requests of the batch that take part in the execution, in
  // order:
  const std::vector<uint32_t>& members() const { return members_; }
  int64_t batch_size(uint32_t r) const { return batch_sizes_[r]; }
  int64_t total_batch_size() const { return total_batch_size_; }
  int64_t max_batch_size() const { return max_batch_size_; }
  bool wants(uint32_t r, size_t output) const { return wanted_.has(r, output); }
  // The ports of the inputs that the requests have, in the order of the requests.
  const std::vector<size_t>& fed() const { return fed_; }
  // The input at position `i` of fed() of request r.
  const backend::InputView& view(size_t i, uint32_t r) const { return views_[i * count_ + r]; }
  // The data of that input in one piece and checked. REQUIRES: its type is BYTES.
  std::span<const char> string_data(size_t i, uint32_t r) const {
    return strings_.data(i * count_ + r);
  }
  // The batch inputs, as in the ports.
  const std::vector<backend::BatchInputTensor>& batch_inputs() const { return batch_inputs_; }
  // Returns the shape of input `port` in request r; fails if the request does not have it.
  backend::Result<std::span<const int64_t>> ShapeOf(size_t port, uint32_t r) const;

 private:
  backend::Error ReadInputs(backend::Batch& batch, uint32_t first);
  // Reads input i of request r and compares it with that of `first`.
  backend::Error CheckView(const backend::Batch& batch, size_t i, uint32_t first, uint32_t r);
  backend::Error CheckRows(size_t i, uint32_t first, uint32_t r);
  // Makes the batch inputs, whose shapes the key and the plan of the execution need.
  backend::Error MakeBatchInputs();
  backend::Error AddMembers(backend::Batch& batch);
  bool is_ours(const backend::Batch& batch, uint32_t r) const {
    return batch.live(r) && state_[r] == Reading::kNow;
  }

  const Ports& ports_;
  const std::string instance_name_;
  const int64_t max_batch_size_;

  // The state of a request: not read yet, part of the current execution, or of an earlier one.
  enum class Reading : uint8_t { kUnread, kNow, kDone };

  uint32_t count_ = 0;                     // the number of requests in the batch
  std::vector<Reading> state_;             // of each request
  std::vector<size_t> fed_;                // ports of the inputs that the requests have
  std::vector<backend::InputView> views_;  // by input, then by request
  std::vector<int64_t> batch_sizes_;       // of each request
  std::vector<uint32_t> members_;
  int64_t total_batch_size_ = 0;
  backend::StringInputs strings_;  // like views_
  backend::WantedOutputs wanted_;
  std::vector<backend::BatchInputTensor> batch_inputs_;  // as in ports_
  std::vector<std::span<const int64_t>> sources_;        // of one batch input
};

}  // namespace nereid::onnxruntime
