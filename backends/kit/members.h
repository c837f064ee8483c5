// SPDX-License-Identifier: Apache-2.0
// Which requests of a batch are executed together, for gather.h: reads what each request brings and
// wants, and checks that they fit together. Nothing is copied, except strings that are in pieces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_kit/batch.h"
#include "backend_kit/ports.h"
#include "backend_kit/string_inputs.h"
#include "backend_kit/tensors.h"
#include "backend_kit/wanted_outputs.h"

namespace nereid::backend {

// The members of one execution after the other. Confined to the thread that executes.
class Members {
 public:
  // `ports` outlives this; `instance_name` is for error texts.
  Members(const Ports& ports, std::string instance_name, int64_t max_batch_size)
      : ports_(ports), name_(std::move(instance_name)), max_batch_size_(max_batch_size) {}

  // Starts a new batch.
  void Begin(const Batch& batch) {
    count_ = batch.size();
    state_.assign(count_, Reading::kUnread);
    batch_sizes_.assign(count_, 1);
    wanted_.Begin(count_, ports_.outputs.size());
  }

  // Reads live requests of the batch that can be executed together and were not read before;
  // requests that do not fit fail. Usually these are all, but sequences with different shapes of
  // states, and requests with different optional inputs, need separate executions: call this again
  // while HasMore. Fails if the whole execution must fail.
  Error Read(Batch& batch) {
    members_.clear();
    total_batch_size_ = 0;
    uint32_t first = count_;
    for (uint32_t r = count_; r-- > 0;) {
      const bool ours = batch.live(r) && state_[r] == Reading::kUnread;
      state_[r] = ours ? Reading::kNow : Reading::kDone;
      first = ours ? r : first;
    }
    if (first == count_) {
      return {};
    }
    views_.resize(ports_.inputs.size() * count_);
    NEREID_KIT_TRY(ReadNames(batch, first));
    for (uint32_t r = first; r < count_; ++r) {
      if (IsOurs(batch, r)) {
        if (Error error = ReadRequest(batch, first, r); !error.ok()) {
          batch.Fail(r, std::move(error));
        }
      }
    }
    return AddMembers(batch);
  }

  // Whether there are live requests that were not read yet.
  bool HasMore(const Batch& batch) const {
    for (uint32_t r = 0; r < count_; ++r) {
      if (batch.live(r) && state_[r] == Reading::kUnread) {
        return true;
      }
    }
    return false;
  }

  // The results of Read: the requests that take part in the execution, in order.
  const std::vector<uint32_t>& list() const { return members_; }
  int64_t batch_size(uint32_t r) const { return batch_sizes_[r]; }
  int64_t total_batch_size() const { return total_batch_size_; }
  bool wants(uint32_t r, size_t output) const { return wanted_.has(r, output); }
  // Whether any member wants the output, or it is a state.
  bool is_wanted(size_t output) const {
    return ports_.outputs[output].is_state ||
           std::any_of(members_.begin(), members_.end(),
                       [&](uint32_t r) { return wants(r, output); });
  }
  // The inputs that the members have, as positions in the ports, in the order of the requests.
  const std::vector<size_t>& inputs() const { return order_; }
  // Input `i` of request `r`. REQUIRES, here and below: the members have it.
  const InputView& view(size_t i, uint32_t r) const { return views_[i * count_ + r]; }
  // The data of input `i`, which has BYTES, of request `r`, in one piece and checked.
  std::span<const char> string_data(size_t i, uint32_t r) const {
    return strings_.data(i * count_ + r);
  }

  const std::string& instance_name() const { return name_; }
  bool is_batching() const { return max_batch_size_ > 0; }

 private:
  enum class Reading : uint8_t { kUnread, kNow, kDone };

  bool IsOurs(const Batch& batch, uint32_t r) const {
    return batch.live(r) && state_[r] == Reading::kNow;
  }

  // Finds out which inputs request `first` has.
  Error ReadNames(const Batch& batch, uint32_t first) {
    uint32_t inputs = 0;
    NEREID_KIT_TRY(TRITONBACKEND_RequestInputCount(batch.request(first), &inputs));
    order_.clear();
    for (uint32_t n = 0; n < inputs; ++n) {
      NEREID_KIT_ASSIGN(const InputView input, ReadInput(batch.request(first), n));
      const int port = Ports::FindPort(ports_.inputs, n, input.name);
      if (port < 0) {
        return Error::Internal(
            StrCat("unexpected inference input '", input.name, "' for '", name_, "'"));
      }
      order_.push_back(static_cast<size_t>(port));
    }
    const auto has_rows = std::find_if(order_.begin(), order_.end(),
                                       [&](size_t i) { return !ports_.inputs[i].is_shape_tensor; });
    sized_by_ = static_cast<uint32_t>(has_rows - order_.begin());
    return {};
  }

  Error ReadRequest(const Batch& batch, uint32_t first, uint32_t r) {
    TRITONBACKEND_Request* const request = batch.request(r);
    uint32_t inputs = 0;
    NEREID_KIT_TRY(TRITONBACKEND_RequestInputCount(request, &inputs));
    if (inputs != order_.size()) {
      state_[r] = Reading::kUnread;
      return {};
    }
    for (uint32_t n = 0; n < inputs && state_[r] == Reading::kNow; ++n) {
      const size_t i = order_[n];
      auto input = ReadInput(request, n, ports_.inputs[i].name.c_str());
      if (!input.ok()) {
        input.TakeError().Ignore();
        state_[r] = Reading::kUnread;  // it has others
        return {};
      }
      views_[i * count_ + r] = input.value();
      NEREID_KIT_TRY(CheckView(n, i, first, r));
    }
    return state_[r] == Reading::kNow
               ? wanted_.Read(request, r,
                              [this](uint32_t o, const char* name) {
                                return Ports::FindPort(ports_.outputs, o, name);
                              })
               : Error();
  }

  Error CheckView(uint32_t n, size_t i, uint32_t first, uint32_t r) {
    const InputView& input = view(i, r);
    const InputPort& port = ports_.inputs[i];
    if (input.datatype != port.datatype) {
      return Error::InvalidArgument(
          StrCat("unexpected data type of inference input '", input.name, "' for '", name_, "'"));
    }
    if (is_batching() && !port.is_shape_tensor) {
      NEREID_KIT_TRY(CheckRows(n, i, first, r));
    }
    if (port.datatype == TRITONSERVER_TYPE_BYTES) {
      return strings_.Read(i * count_ + r, input);
    }
    NEREID_KIT_ASSIGN(const uint64_t byte_size, TensorByteSize(port.datatype, input.shape));
    if (byte_size != input.byte_size) {
      return Error::InvalidArgument(StrCat("unexpected total byte size ", input.byte_size,
                                           " for input '", input.name, "', expecting ", byte_size));
    }
    return {};
  }

  Error CheckRows(uint32_t n, size_t i, uint32_t first, uint32_t r) {
    const InputView& input = view(i, r);
    const InputView& pattern = view(i, first);
    const InputPort& port = ports_.inputs[i];
    const int64_t size = input.shape.empty() ? -1 : input.shape[0];
    batch_sizes_[r] = n == sized_by_ ? size : batch_sizes_[r];
    const auto rows = [](const InputView& v) { return v.shape.subspan(v.shape.empty() ? 0 : 1); };
    const auto ours = rows(input);
    const auto theirs = rows(pattern);
    const bool is_same =
        port.is_ragged || std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end());
    if (!is_same && port.origin == InputPort::Origin::kState) {
      state_[r] = Reading::kUnread;
      return {};
    }
    if (!is_same || size < 0 || size != batch_sizes_[r]) {
      return Error::Internal(StrCat("inference input '", input.name, "' has shape ",
                                    ShapeToString(input.shape), " in a batch of shape ",
                                    ShapeToString(pattern.shape), " for '", name_, "'"));
    }
    return {};
  }

  Error AddMembers(const Batch& batch) {
    for (uint32_t r = 0; r < count_; ++r) {
      if (IsOurs(batch, r)) {
        members_.push_back(r);
        total_batch_size_ += batch_sizes_[r];
      }
    }
    if (total_batch_size_ != 1 && total_batch_size_ > max_batch_size_) {
      return Error::Internal(StrCat("batch size ", total_batch_size_, " for '", name_,
                                    "', max allowed is ", max_batch_size_));
    }
    return {};
  }

  const Ports& ports_;
  const std::string name_;
  const int64_t max_batch_size_;

  uint32_t count_ = 0;
  std::vector<Reading> state_;        // of each request
  std::vector<int64_t> batch_sizes_;  // of each request
  std::vector<size_t> order_;         // inputs of the first request, in its order
  uint32_t sized_by_ = 0;             // the first of them that has a batch dimension
  std::vector<InputView> views_;      // of each input, each request
  StringInputs strings_;              // like views_
  WantedOutputs wanted_;
  std::vector<uint32_t> members_;
  int64_t total_batch_size_ = 0;
};

}  // namespace nereid::backend
