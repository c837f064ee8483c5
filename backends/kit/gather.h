// SPDX-License-Identifier: Apache-2.0
// The inputs of one execution: reads those of all requests of a batch, checks that they fit
// together, and gives each as one tensor. Nothing is copied if the batch has one request whose data
// is in one piece.
//
//   gathering.ForEachExecution(batch, [&]() -> Error {
//     ... Has(i), ShapeOf(i), Data(batch, i) or Strings(i) of each input; compute; respond ...
//   });
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_kit/batch.h"
#include "backend_kit/bytes.h"
#include "backend_kit/ports.h"
#include "backend_kit/tensors.h"

namespace nereid::backend {

// A member of the instance that each execution reuses. Confined to the thread that executes.
class Gathering {
 public:
  // `ports` outlives this; `instance_name` is for error texts.
  Gathering(const Ports& ports, std::string instance_name, int64_t max_batch_size)
      : ports_(ports), name_(std::move(instance_name)), max_batch_size_(max_batch_size) {}

  // Reads the requests of the batch, and calls serve(), an Error() callable, for each execution
  // that they need. If that fails, the requests of the execution fail with its error. Returns the
  // sum of the batch sizes.
  template <typename Serve>
  uint64_t ForEachExecution(Batch& batch, Serve&& serve) {
    uint64_t total = 0;
    Begin(batch);
    do {
      if (Error error = Read(batch); !error.ok()) {
        batch.FailAll(std::move(error));
        break;
      }
      if (!members_.empty()) {
        if (const Error error = serve(); !error.ok()) {
          for (const uint32_t r : members_) {
            batch.Fail(r, Error(error.code(), error.message()));
          }
        }
      }
      total += static_cast<uint64_t>(total_batch_size_);
    } while (HasMore(batch));
    Trim();
    return total;
  }

  // The requests of the batch that take part in the execution, in order. These and all below are
  // for serve().
  const std::vector<uint32_t>& members() const { return members_; }
  int64_t batch_size(uint32_t r) const { return batch_sizes_[r]; }
  int64_t total_batch_size() const { return total_batch_size_; }
  bool is_batching() const { return max_batch_size_ > 0; }
  bool wants(uint32_t r, size_t output) const {
    return wanted_[r * ports_.outputs.size() + output] != 0;
  }
  // Whether any member wants the output, or it is a state.
  bool is_wanted(size_t output) const {
    return ports_.outputs[output].is_state ||
           std::any_of(members_.begin(), members_.end(),
                       [&](uint32_t r) { return wants(r, output); });
  }

  // Whether the requests have input `i`.
  bool Has(size_t i) const { return tensors_[i].is_present; }
  // The shape of input `i` of the whole batch. REQUIRES, here and below: Has(i).
  std::span<const int64_t> ShapeOf(size_t i) const { return tensors_[i].shape; }
  // The shape of the input called `name` in one request; fails if the request does not have it.
  Result<std::span<const int64_t>> ShapeIn(std::string_view name, uint32_t r) const {
    const int i = Ports::FindPort(ports_.inputs, 0, name);
    if (i < 0 || !Has(static_cast<size_t>(i))) {
      return Error::InvalidArgument(StrCat("a request lacks the input '", name,
                                           "', of whose shape the batch is made for '", name_,
                                           "'"));
    }
    return view(static_cast<size_t>(i), r).shape;
  }
  // The data of input `i` of the whole batch, in one piece and aligned for its elements; valid
  // until the next execution. A request with invalid data fails, and its rows are zeros. Fails if
  // the whole execution must fail.
  Result<std::span<const char>> Data(Batch& batch, size_t i) {
    Tensor& tensor = tensors_[i];
    const InputPort& port = ports_.inputs[i];
    if (port.origin == InputPort::Origin::kBatchInput) {
      return std::span<const char>(batch_inputs_[tensor.batch_input].data());
    }
    if (members_.size() == 1) {
      return ContiguousInput(view(i, members_[0]), ElementByteSize(port.datatype), tensor.scratch);
    }
    uint64_t size = 0;
    for (const uint32_t r : members_) {
      size += view(i, r).byte_size;
    }
    char* const copy = tensor.scratch.Ensure(size);
    char* to = copy;
    for (const uint32_t r : members_) {
      const InputView& from = view(i, r);
      if (Error error = CopyInput(from, {to, from.byte_size}); !error.ok()) {
        std::memset(to, 0, from.byte_size);
        batch.Fail(r, std::move(error));
      }
      to += from.byte_size;
    }
    return std::span<const char>(copy, size);
  }
  // For backends whose inputs may be in a device's memory: instead of Data, calls
  // take(offset, chunk), an Error() callable, for each piece of input `i` of the whole batch, in
  // order, with its place in the tensor. A request for which that fails, or whose pieces have
  // another size than its tensor, fails; its rows are left out.
  template <typename Take>
  void ForEachChunk(Batch& batch, size_t i, Take&& take) {
    uint64_t offset = 0;
    for (const uint32_t r : members_) {
      const InputView& from = view(i, r);
      uint64_t taken = 0;
      const auto take_all = [&]() -> Error {
        for (uint32_t b = 0; b < from.buffer_count; ++b) {
          NEREID_KIT_ASSIGN(const InputChunk chunk, ReadChunk(from, b));
          if (chunk.size > from.byte_size - taken) {
            return Error::InvalidArgument(StrCat("buffer size for input '", from.name,
                                                 "' exceeds batch byte size ", from.byte_size));
          }
          NEREID_KIT_TRY(take(offset + taken, chunk));
          taken += chunk.size;
        }
        return taken == from.byte_size ? Error()
                                       : Error::InvalidArgument(StrCat(
                                             "unexpected total byte size ", taken, " for input '",
                                             from.name, "', expecting ", from.byte_size));
      };
      if (Error error = take_all(); !error.ok()) {
        batch.Fail(r, std::move(error));
      }
      offset += from.byte_size;
    }
  }
  // The data of input `i` if it is in one piece on GPU `device` for the whole batch, and otherwise
  // null; valid until the next execution.
  Result<const char*> DataOnGpu(size_t i, int64_t device) const {
    if (members_.size() != 1 || ports_.inputs[i].origin == InputPort::Origin::kBatchInput) {
      return static_cast<const char*>(nullptr);
    }
    return GpuInput(view(i, members_[0]), device);
  }
  // The elements of input `i`, which has BYTES, of the whole batch; valid until the next execution.
  std::span<const std::string_view> Strings(size_t i) {
    std::vector<std::string_view>& strings = tensors_[i].strings;
    strings.clear();
    for (const uint32_t r : members_) {
      const InputView& from = view(i, r);
      // Read has checked them.
      auto elements = ElementCount(from.shape);
      ForEachString(string_data_[i * count_ + r], elements.ok() ? elements.value() : 0, from.name,
                    [&](std::string_view text) { strings.push_back(text); })
          .Ignore();
    }
    return strings;
  }

 private:
  enum class Reading : uint8_t { kUnread, kNow, kDone };
  // The buffer of an input that stays between batches is at most this large.
  static constexpr size_t kKeptBytes = size_t{16} << 20;

  // Starts a new batch.
  void Begin(const Batch& batch) {
    count_ = batch.size();
    state_.assign(count_, Reading::kUnread);
    batch_sizes_.assign(count_, 1);
    wanted_.assign(count_ * ports_.outputs.size(), 0);
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
    tensors_.resize(ports_.inputs.size());
    views_.resize(ports_.inputs.size() * count_);
    NEREID_KIT_TRY(ReadNames(batch, first));
    for (uint32_t r = first; r < count_; ++r) {
      if (IsOurs(batch, r)) {
        if (Error error = ReadRequest(batch, first, r); !error.ok()) {
          batch.Fail(r, std::move(error));
        }
      }
    }
    NEREID_KIT_TRY(AddMembers(batch));
    return members_.empty() ? Error() : MakeShapes();
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

  // One input of the execution.
  struct Tensor {
    bool is_present = false;
    std::vector<int64_t> shape;
    size_t batch_input = 0;
    ScratchBuffer scratch;
    std::vector<std::string_view> strings;
  };

  void Trim() {
    for (Tensor& tensor : tensors_) {
      tensor.scratch.Trim(kKeptBytes);
    }
  }

  InputView& view(size_t i, uint32_t r) { return views_[i * count_ + r]; }
  const InputView& view(size_t i, uint32_t r) const { return views_[i * count_ + r]; }
  bool IsOurs(const Batch& batch, uint32_t r) const {
    return batch.live(r) && state_[r] == Reading::kNow;
  }

  // Finds out which inputs request `first` has.
  Error ReadNames(const Batch& batch, uint32_t first) {
    for (Tensor& tensor : tensors_) {
      tensor.is_present = false;
    }
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
      tensors_[static_cast<size_t>(port)].is_present = true;
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
      view(i, r) = input.value();
      NEREID_KIT_TRY(CheckView(n, i, first, r));
    }
    return state_[r] == Reading::kNow ? ReadWanted(request, r) : Error();
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
      return CheckStrings(i, r);
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

  Error CheckStrings(size_t i, uint32_t r) {
    const size_t at = i * count_ + r;
    if (string_data_.size() <= at) {
      string_data_.resize(at + 1);
      gathered_strings_.resize(at + 1);
    }
    const InputView& input = views_[at];
    NEREID_KIT_ASSIGN(string_data_[at], ContiguousInput(input, 0, gathered_strings_[at]));
    NEREID_KIT_ASSIGN(const int64_t elements, ElementCount(input.shape));
    return ForEachString(string_data_[at], elements, input.name, [](std::string_view) {});
  }

  Error ReadWanted(TRITONBACKEND_Request* request, uint32_t r) {
    uint32_t outputs = 0;
    NEREID_KIT_TRY(TRITONBACKEND_RequestOutputCount(request, &outputs));
    for (uint32_t o = 0; o < outputs; ++o) {
      const char* name = nullptr;
      NEREID_KIT_TRY(TRITONBACKEND_RequestOutputName(request, o, &name));
      if (const int port = Ports::FindPort(ports_.outputs, o, name); port >= 0) {
        wanted_[r * ports_.outputs.size() + static_cast<size_t>(port)] = 1;
      }
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

  // Makes the shapes of the whole batch, and the batch inputs.
  Error MakeShapes() {
    for (const size_t i : order_) {
      std::vector<int64_t>& shape = tensors_[i].shape;
      const std::span<const int64_t> one = view(i, members_[0]).shape;
      shape.assign(one.begin(), one.end());
      if (ports_.inputs[i].is_ragged) {
        shape.assign(1, 0);
        for (const uint32_t r : members_) {
          NEREID_KIT_ASSIGN(const int64_t elements, ElementCount(view(i, r).shape));
          shape[0] += elements;
        }
      } else if (is_batching() && !shape.empty() && !ports_.inputs[i].is_shape_tensor) {
        shape[0] = total_batch_size_;
      }
    }
    return MakeBatchInputs();
  }

  Error MakeBatchInputs() {
    batch_inputs_.resize(ports_.batch_inputs.size());
    for (size_t b = 0; b < batch_inputs_.size(); ++b) {
      const BatchInput& input = ports_.batch_inputs[b];
      sources_.clear();
      for (const uint32_t r : members_) {
        NEREID_KIT_ASSIGN(const std::span<const int64_t> shape, ShapeIn(input.source, r));
        sources_.push_back(shape);
      }
      NEREID_KIT_TRY(batch_inputs_[b].Make(input, sources_));
      for (const std::string& target : input.targets) {
        if (const int i = Ports::FindPort(ports_.inputs, 0, target); i >= 0) {
          Tensor& tensor = tensors_[static_cast<size_t>(i)];
          tensor.is_present = true;
          tensor.batch_input = b;
          tensor.shape.assign(batch_inputs_[b].shape().begin(), batch_inputs_[b].shape().end());
        }
      }
    }
    return {};
  }

  const Ports& ports_;
  const std::string name_;
  const int64_t max_batch_size_;

  uint32_t count_ = 0;
  std::vector<Reading> state_;        // of each request
  std::vector<int64_t> batch_sizes_;  // of each request
  std::vector<char> wanted_;          // of each request, each output
  std::vector<size_t> order_;         // inputs of the first request, in its order
  uint32_t sized_by_ = 0;             // the first of them that has a batch dimension
  std::vector<InputView> views_;      // of each input, each request
  std::vector<std::span<const char>> string_data_;
  std::vector<ScratchBuffer> gathered_strings_;
  std::vector<Tensor> tensors_;  // of each input
  std::vector<BatchInputTensor> batch_inputs_;
  std::vector<std::span<const int64_t>> sources_;
  std::vector<uint32_t> members_;
  int64_t total_batch_size_ = 0;
};

}  // namespace nereid::backend
