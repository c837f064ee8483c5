// SPDX-License-Identifier: Apache-2.0
// Reads the inputs and the requested outputs of the requests of one execution, and copies the
// inputs into tensors for ONNX Runtime.
#pragma once

#include <cstdint>
#include <vector>

#include "backend_kit/batch.h"
#include "backend_kit/tensors.h"
#include "onnxruntime_backend/plan.h"

namespace nereid::onnxruntime {

// The inputs of one execution. A member of the instance that each execution reuses. Confined to the
// thread that executes.
class Gathering {
 public:
  // `ports` and `session` outlive this; `instance_name` is for error texts.
  Gathering(const Ports& ports, std::string instance_name, int64_t max_batch_size,
            const OrtMemoryInfo* memory_info, const Session& session)
      : ports_(ports),
        instance_name_(std::move(instance_name)),
        max_batch_size_(max_batch_size),
        memory_info_(memory_info),
        session_(session) {}

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
  bool wants(uint32_t r, size_t output) const {
    return wanted_[r * ports_.outputs.size() + output] != 0;
  }
  // Identifies the shapes and outputs of the execution.
  const std::vector<int64_t>& key() const { return key_; }
  // Makes a plan for this key, to be cached.
  backend::Result<std::unique_ptr<Plan>> NewPlan() const;

  // Returns values for the plan's inputs, valid until Release. A request with invalid data fails,
  // and its rows are zeros. Fails if the whole execution must fail.
  backend::Error Fill(backend::Batch& batch, Plan& plan, std::vector<const OrtValue*>* values);
  // Frees the values that Fill made. Called after the execution.
  void Release() { owned_values_.clear(); }

  // Returns the shape of input `port` in request r; fails if the request does not have it.
  backend::Result<std::span<const int64_t>> ShapeOf(size_t port, uint32_t r) const;

 private:
  backend::Error ReadInputs(backend::Batch& batch, uint32_t first);
  // Reads input i of request r and compares it with that of `first`.
  backend::Error CheckView(const backend::Batch& batch, size_t i, uint32_t first, uint32_t r);
  backend::Error CheckRows(size_t i, uint32_t first, uint32_t r);
  // Makes the batch inputs, whose shapes the key and the plan need.
  backend::Error MakeBatchInputs();
  backend::Error ReadWanted(TRITONBACKEND_Request* request, uint32_t r);
  // Finds the strings of input i of request r and checks their number.
  backend::Error CheckStrings(size_t i, uint32_t r);
  backend::Error AddMembers(backend::Batch& batch);
  void MakeKey();
  backend::Result<PlannedInput> PlanInput(size_t i) const;

  backend::Result<const OrtValue*> FillStrings(size_t i, const PlannedInput& input);
  backend::Result<const OrtValue*> FillFixed(backend::Batch& batch, size_t i, PlannedInput& input);
  // Makes a value of memory of the session's GPU.
  backend::Result<const OrtValue*> FillFromGpu(const PlannedInput& input, const char* data);
  backend::Result<const OrtValue*> FillBatchInput(const PlannedInput& input);
  void Copy(backend::Batch& batch, size_t i, char* to);
  const backend::InputView& view(size_t i, uint32_t r) const { return views_[i * count_ + r]; }
  bool is_ours(const backend::Batch& batch, uint32_t r) const {
    return batch.live(r) && state_[r] == Reading::kNow;
  }

  const Ports& ports_;
  const std::string instance_name_;
  const int64_t max_batch_size_;
  const OrtMemoryInfo* const memory_info_;
  const Session& session_;

  // The state of a request: not read yet, part of the current execution, or of an earlier one.
  enum class Reading : uint8_t { kUnread, kNow, kDone };

  uint32_t count_ = 0;                              // the number of requests in the batch
  std::vector<Reading> state_;                      // of each request
  std::vector<size_t> fed_;                         // ports of the inputs that the requests have
  std::vector<backend::InputView> views_;           // by input, then by request
  std::vector<std::span<const char>> string_data_;  // like views_, for inputs that are strings
  std::vector<int64_t> batch_sizes_;                // of each request
  std::vector<uint8_t> wanted_;                     // by request, then by output of the model
  std::vector<uint32_t> members_;
  int64_t total_batch_size_ = 0;
  std::vector<int64_t> key_;
  std::vector<backend::ScratchBuffer>
      gathered_;  // by port: copies of inputs that were not contiguous
  std::vector<backend::ScratchBuffer> gathered_strings_;  // like views_
  std::vector<backend::BatchInputTensor> batch_inputs_;   // as in ports_
  std::vector<std::span<const int64_t>> sources_;         // of one batch input
  std::vector<Owned<OrtValue>> owned_values_;
};

}  // namespace nereid::onnxruntime
