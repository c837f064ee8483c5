// SPDX-License-Identifier: Apache-2.0
// The inputs of one execution: reads those of all requests of a batch, checks that they fit
// together, and gives each as one tensor. Nothing is copied if the batch has one request whose data
// is in one piece.
//
//   gathering.ForEachExecution(batch, [&]() -> Error {
//     ... Has(i), ShapeOf(i), Data(batch, i) or Strings(i) of each input; compute; respond ...
//   });
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_kit/batch.h"
#include "backend_kit/bytes.h"
#include "backend_kit/chunks.h"
#include "backend_kit/members.h"
#include "backend_kit/ports.h"
#include "backend_kit/tensors.h"

namespace nereid::backend {

// A member of the instance that each execution reuses. Confined to the thread that executes.
class Gathering {
 public:
  // `ports` outlives this; `instance_name` is for error texts.
  Gathering(const Ports& ports, std::string instance_name, int64_t max_batch_size)
      : ports_(ports), members_(ports, std::move(instance_name), max_batch_size) {}

  // Reads the requests of the batch, and calls serve(), an Error() callable, for each execution
  // that they need. If that fails, the requests of the execution fail with its error. Returns the
  // sum of the batch sizes.
  template <typename Serve>
  uint64_t ForEachExecution(Batch& batch, Serve&& serve) {
    uint64_t total = 0;
    members_.Begin(batch);
    do {
      if (Error error = Read(batch); !error.ok()) {
        batch.FailAll(std::move(error));
        break;
      }
      if (!members().empty()) {
        if (const Error error = serve(); !error.ok()) {
          for (const uint32_t r : members()) {
            batch.Fail(r, Error(error.code(), error.message()));
          }
        }
      }
      total += static_cast<uint64_t>(total_batch_size());
    } while (members_.HasMore(batch));
    Trim();
    return total;
  }

  // The requests of the batch that take part in the execution, in order. These and all below are
  // for serve().
  const std::vector<uint32_t>& members() const { return members_.list(); }
  int64_t batch_size(uint32_t r) const { return members_.batch_size(r); }
  int64_t total_batch_size() const { return members_.total_batch_size(); }
  bool is_batching() const { return members_.is_batching(); }
  bool wants(uint32_t r, size_t output) const { return members_.wants(r, output); }
  bool is_wanted(size_t output) const { return members_.is_wanted(output); }

  // Whether the requests have input `i`.
  bool Has(size_t i) const { return tensors_[i].is_present; }
  // The shape of input `i` of the whole batch. REQUIRES, here and below: Has(i).
  std::span<const int64_t> ShapeOf(size_t i) const { return tensors_[i].shape; }
  // The shape of the input called `name` in one request; fails if the request does not have it.
  Result<std::span<const int64_t>> ShapeIn(std::string_view name, uint32_t r) const {
    const int i = Ports::FindPort(ports_.inputs, 0, name);
    if (i < 0 || !Has(static_cast<size_t>(i))) {
      return Error::InvalidArgument(StrCat("a request lacks the input '", name,
                                           "', of whose shape the batch is made for '",
                                           members_.instance_name(), "'"));
    }
    return members_.view(static_cast<size_t>(i), r).shape;
  }
  // The data of input `i` of the whole batch, in one piece and aligned for its elements; valid
  // until the next execution. A request with invalid data fails, and its rows are zeros. Fails if
  // the whole execution must fail.
  Result<std::span<const char>> Data(Batch& batch, size_t i) {
    Tensor& tensor = tensors_[i];
    const InputPort& port = ports_.inputs[i];
    if (port.origin == InputPort::Origin::kBatchInput) {
      return batch_inputs_[tensor.batch_input].data();
    }
    if (members().size() == 1) {
      return ContiguousInput(members_.view(i, members()[0]), ElementByteSize(port.datatype),
                             tensor.scratch);
    }
    uint64_t size = 0;
    for (const uint32_t r : members()) {
      size += members_.view(i, r).byte_size;
    }
    char* const copy = tensor.scratch.Ensure(size);
    char* to = copy;
    for (const uint32_t r : members()) {
      const InputView& from = members_.view(i, r);
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
    for (const uint32_t r : members()) {
      const InputView& from = members_.view(i, r);
      const auto take_chunk = [&](uint64_t at, const InputChunk& chunk) {
        return take(offset + at, chunk);
      };
      if (Error error = backend::ForEachChunk(from, take_chunk); !error.ok()) {
        batch.Fail(r, std::move(error));
      }
      offset += from.byte_size;
    }
  }
  // The data of input `i` if it is in one piece on GPU `device` for the whole batch, and otherwise
  // null; valid until the next execution.
  Result<const char*> DataOnGpu(size_t i, int64_t device) const {
    if (members().size() != 1 || ports_.inputs[i].origin == InputPort::Origin::kBatchInput) {
      return static_cast<const char*>(nullptr);
    }
    return GpuInput(members_.view(i, members()[0]), device);
  }
  // The elements of input `i`, which has BYTES, of the whole batch; valid until the next execution.
  std::span<const std::string_view> Strings(size_t i) {
    std::vector<std::string_view>& strings = tensors_[i].strings;
    strings.clear();
    for (const uint32_t r : members()) {
      const InputView& from = members_.view(i, r);
      // Read has checked them.
      auto elements = ElementCount(from.shape);
      ForEachString(members_.string_data(i, r), elements.ok() ? elements.value() : 0, from.name,
                    [&](std::string_view text) { strings.push_back(text); })
          .Ignore();
    }
    return strings;
  }

 private:
  // The buffer of an input that stays between batches is at most this large.
  static constexpr size_t kKeptBytes = size_t{16} << 20;

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

  // Reads the requests of the next execution.
  Error Read(Batch& batch) {
    NEREID_KIT_TRY(members_.Read(batch));
    return members().empty() ? Error() : MakeShapes();
  }

  // Makes the shapes of the whole batch, and the batch inputs.
  Error MakeShapes() {
    tensors_.resize(ports_.inputs.size());
    for (Tensor& tensor : tensors_) {
      tensor.is_present = false;
    }
    for (const size_t i : members_.inputs()) {
      tensors_[i].is_present = true;
      std::vector<int64_t>& shape = tensors_[i].shape;
      const std::span<const int64_t> one = members_.view(i, members()[0]).shape;
      shape.assign(one.begin(), one.end());
      if (ports_.inputs[i].is_ragged) {
        shape.assign(1, 0);
        for (const uint32_t r : members()) {
          NEREID_KIT_ASSIGN(const int64_t elements, ElementCount(members_.view(i, r).shape));
          shape[0] += elements;
        }
      } else if (is_batching() && !shape.empty() && !ports_.inputs[i].is_shape_tensor) {
        shape[0] = total_batch_size();
      }
    }
    return MakeBatchInputs();
  }

  Error MakeBatchInputs() {
    batch_inputs_.resize(ports_.batch_inputs.size());
    for (size_t b = 0; b < batch_inputs_.size(); ++b) {
      const BatchInput& input = ports_.batch_inputs[b];
      sources_.clear();
      for (const uint32_t r : members()) {
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
  Members members_;
  std::vector<Tensor> tensors_;  // of each input
  std::vector<BatchInputTensor> batch_inputs_;
  std::vector<std::span<const int64_t>> sources_;
};

}  // namespace nereid::backend
