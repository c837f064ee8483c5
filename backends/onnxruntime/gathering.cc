// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/gathering.h"

#include <algorithm>

namespace nereid::onnxruntime {

using backend::Batch;
using backend::Error;
using backend::InputView;
using backend::Result;
using backend::ShapeToString;
using backend::StrCat;

void Gathering::Begin(const Batch& batch) {
  count_ = batch.size();
  state_.assign(count_, Reading::kUnread);
  batch_sizes_.assign(count_, 1);
  wanted_.Begin(count_, ports_.outputs.size());
}

bool Gathering::HasMore(const Batch& batch) const {
  for (uint32_t r = 0; r < count_; ++r) {
    if (batch.live(r) && state_[r] == Reading::kUnread) {
      return true;
    }
  }
  return false;
}

Error Gathering::Read(Batch& batch) {
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
  NEREID_KIT_TRY(ReadInputs(batch, first));
  for (uint32_t r = first; r < count_; ++r) {
    if (is_ours(batch, r)) {
      Error error = wanted_.Read(batch.request(r), r, [this](uint32_t o, const char* name) {
        return Ports::Find(ports_.outputs, o, name);
      });
      if (!error.ok()) {
        batch.Fail(r, std::move(error));
      }
    }
  }
  NEREID_KIT_TRY(AddMembers(batch));
  return MakeBatchInputs();
}

// All requests of a batch should have the same inputs in the same shapes, as the scheduler
// promises. Requests that differ fail.
Error Gathering::ReadInputs(Batch& batch, uint32_t first) {
  uint32_t inputs = 0;
  NEREID_KIT_TRY(TRITONBACKEND_RequestInputCount(batch.request(first), &inputs));
  for (uint32_t r = first + 1; r < count_; ++r) {
    uint32_t others = 0;
    if (is_ours(batch, r)) {
      NEREID_KIT_TRY(TRITONBACKEND_RequestInputCount(batch.request(r), &others));
      if (others != inputs) {
        batch.Fail(r, Error::Internal(StrCat("a request with ", others,
                                             " inputs is in a batch of "
                                             "requests with ",
                                             inputs, " for '", instance_name_, "'")));
      }
    }
  }
  fed_.clear();
  views_.resize(size_t{inputs} * count_);
  for (uint32_t i = 0; i < inputs; ++i) {
    NEREID_KIT_ASSIGN(views_[i * count_ + first], backend::ReadInput(batch.request(first), i));
    const char* name = view(i, first).name;
    const int port = Ports::Find(ports_.inputs, i, name);
    if (port < 0) {
      return Error::Internal(
          StrCat("Failed to retrieve the ONNX input tensor info from '", name, "'."));
    }
    fed_.push_back(static_cast<size_t>(port));
    for (uint32_t r = first; r < count_; ++r) {
      if (is_ours(batch, r)) {
        if (Error error = CheckView(batch, i, first, r); !error.ok()) {
          batch.Fail(r, std::move(error));
        }
      }
    }
  }
  return {};
}

Error Gathering::CheckView(const Batch& batch, size_t i, uint32_t first, uint32_t r) {
  InputView& input = views_[i * count_ + r];
  if (r != first) {
    NEREID_KIT_ASSIGN(
        input, backend::ReadInput(batch.request(r), static_cast<uint32_t>(i), view(i, first).name));
  }
  const Port& port = ports_.inputs[fed_[i]];
  if (input.datatype != port.datatype) {
    return Error::InvalidArgument(StrCat("unexpected data type of inference input '", input.name,
                                         "' for '", instance_name_, "'"));
  }
  if (max_batch_size_ > 0) {
    NEREID_KIT_TRY(CheckRows(i, first, r));
  }
  if (port.is_string()) {
    return strings_.Read(i * count_ + r, input);
  }
  NEREID_KIT_ASSIGN(const uint64_t byte_size, backend::TensorByteSize(port.datatype, input.shape));
  if (byte_size != input.byte_size) {
    return Error::InvalidArgument(StrCat("unexpected total byte size ", input.byte_size,
                                         " for input '", input.name, "', expecting ", byte_size));
  }
  return {};
}

Error Gathering::CheckRows(size_t i, uint32_t first, uint32_t r) {
  const InputView& input = view(i, r);
  const InputView& pattern = view(i, first);
  const Port& port = ports_.inputs[fed_[i]];
  const int64_t size = input.shape.empty() ? -1 : input.shape[0];
  batch_sizes_[r] = i == 0 ? size : batch_sizes_[r];
  const auto rows = [](const InputView& v) { return v.shape.subspan(v.shape.empty() ? 0 : 1); };
  const auto ours = rows(input);
  const auto theirs = rows(pattern);
  const bool is_same =
      port.is_ragged || std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  if (!is_same && port.is_state) {
    // The state's size differs from that of the other sequences, so the request is left for another
    // execution.
    state_[r] = Reading::kUnread;
    return {};
  }
  if (!is_same || size < 0 || size != batch_sizes_[r]) {
    return Error::Internal(StrCat("inference input '", input.name, "' has shape ",
                                  ShapeToString(input.shape), " in a batch of shape ",
                                  ShapeToString(pattern.shape), " for '", instance_name_, "'"));
  }
  return {};
}

Result<std::span<const int64_t>> Gathering::ShapeOf(size_t port, uint32_t r) const {
  const auto found = std::find(fed_.begin(), fed_.end(), port);
  if (found == fed_.end()) {
    return Error::InvalidArgument(
        StrCat("a request lacks the input '",
               port < ports_.inputs.size() ? ports_.inputs[port].info.name : std::string("?"),
               "', of whose shape the batch is made for '", instance_name_, "'"));
  }
  return view(static_cast<size_t>(found - fed_.begin()), r).shape;
}

Error Gathering::MakeBatchInputs() {
  batch_inputs_.resize(ports_.batch_inputs.size());
  for (size_t b = 0; b < batch_inputs_.size() && !members_.empty(); ++b) {
    const BatchInputPort& port = ports_.batch_inputs[b];
    sources_.clear();
    for (const uint32_t r : members_) {
      NEREID_KIT_ASSIGN(const std::span<const int64_t> shape, ShapeOf(port.source, r));
      sources_.push_back(shape);
    }
    NEREID_KIT_TRY(batch_inputs_[b].Make(port.spec, sources_));
  }
  return {};
}

Error Gathering::AddMembers(Batch& batch) {
  for (uint32_t r = 0; r < count_; ++r) {
    if (is_ours(batch, r)) {
      members_.push_back(r);
      total_batch_size_ += batch_sizes_[r];
    }
  }
  if (total_batch_size_ != 1 && total_batch_size_ > max_batch_size_) {
    return Error::Internal(StrCat("batch size ", total_batch_size_, " for '", instance_name_,
                                  "', max allowed is ", max_batch_size_));
  }
  return {};
}

}  // namespace nereid::onnxruntime
