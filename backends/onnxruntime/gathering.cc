// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/gathering.h"

#include <algorithm>

#include "backend_kit/bytes.h"

namespace nereid::onnxruntime {

using backend::Batch;
using backend::Error;
using backend::InputView;
using backend::Result;
using backend::ShapeToString;
using backend::StrCat;

namespace {

// Returns the elements of an input whose shape was validated.
int64_t CountOf(const InputView& input) {
  auto count = backend::ElementCount(input.shape);
  return count.ok() ? count.value() : 0;
}

}  // namespace

void Gathering::Begin(const Batch& batch) {
  count_ = batch.size();
  state_.assign(count_, Reading::kUnread);
  batch_sizes_.assign(count_, 1);
  wanted_.assign(count_ * ports_.outputs.size(), 0);
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
      if (Error error = ReadWanted(batch.request(r), r); !error.ok()) {
        batch.Fail(r, std::move(error));
      }
    }
  }
  NEREID_KIT_TRY(AddMembers(batch));
  NEREID_KIT_TRY(MakeBatchInputs());
  MakeKey();
  return {};
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
  string_data_.resize(views_.size());
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
    return CheckStrings(i, r);
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

Error Gathering::CheckStrings(size_t i, uint32_t r) {
  const size_t at = i * count_ + r;
  if (gathered_strings_.size() <= at) {
    gathered_strings_.resize(at + 1);
  }
  const InputView& input = views_[at];
  NEREID_KIT_ASSIGN(string_data_[at], backend::ContiguousInput(input, 0, gathered_strings_[at]));
  NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(input.shape));
  return backend::ForEachString(string_data_[at], elements, input.name, [](std::string_view) {});
}

Error Gathering::ReadWanted(TRITONBACKEND_Request* request, uint32_t r) {
  uint32_t outputs = 0;
  NEREID_KIT_TRY(TRITONBACKEND_RequestOutputCount(request, &outputs));
  for (uint32_t o = 0; o < outputs; ++o) {
    const char* name = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_RequestOutputName(request, o, &name));
    if (const int port = Ports::Find(ports_.outputs, o, name); port >= 0) {
      wanted_[r * ports_.outputs.size() + static_cast<size_t>(port)] = 1;
    }
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

void Gathering::MakeKey() {
  key_.clear();
  if (members_.empty()) {
    return;
  }
  for (size_t o = 0; o < ports_.outputs.size(); ++o) {
    const bool wanted =
        ports_.outputs[o].is_state ||
        std::any_of(members_.begin(), members_.end(), [&](uint32_t r) { return wants(r, o); });
    key_.push_back(wanted ? 1 : 0);
  }
  for (size_t i = 0; i < fed_.size(); ++i) {
    key_.push_back(static_cast<int64_t>(fed_[i]));
    if (ports_.inputs[fed_[i]].is_ragged) {
      int64_t elements = 0;
      for (const uint32_t r : members_) {
        elements += CountOf(view(i, r));
      }
      key_.push_back(elements);
      continue;
    }
    const std::span<const int64_t> shape = view(i, members_[0]).shape;
    key_.push_back(static_cast<int64_t>(shape.size()));
    const size_t batch_dims = max_batch_size_ > 0 ? 1 : 0;
    if (batch_dims > 0) {
      key_.push_back(total_batch_size_);
    }
    key_.insert(key_.end(), shape.begin() + static_cast<std::ptrdiff_t>(batch_dims), shape.end());
  }
  for (const backend::BatchInputTensor& input : batch_inputs_) {
    key_.insert(key_.end(), input.shape().begin(), input.shape().end());
  }
}

Result<PlannedInput> Gathering::PlanInput(size_t i) const {
  const Port& port = ports_.inputs[fed_[i]];
  const std::span<const int64_t> shape = view(i, members_[0]).shape;
  PlannedInput input{.port = fed_[i], .shape = {shape.begin(), shape.end()}, .kept = {}};
  if (port.is_ragged) {
    input.shape.assign(1, 0);
    for (const uint32_t r : members_) {
      input.shape[0] += CountOf(view(i, r));
    }
  } else if (max_batch_size_ > 0) {
    input.shape[0] = total_batch_size_;
  }
  if (port.info.dims.empty()) {
    // A scalar arrives as [1], because a configuration cannot have no dimensions.
    NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(input.shape));
    if (elements != 1) {
      return Error::InvalidArgument(StrCat("inference input '", port.info.name,
                                           "' is a scalar in the model, got shape ",
                                           ShapeToString(input.shape)));
    }
    input.shape.clear();
  }
  if (!port.is_string()) {
    NEREID_KIT_ASSIGN(input.byte_size, backend::TensorByteSize(port.datatype, input.shape));
  }
  return input;
}

Result<std::unique_ptr<Plan>> Gathering::NewPlan() const {
  auto plan = std::make_unique<Plan>();
  plan->key = key_;
  for (size_t i = 0; i < fed_.size(); ++i) {
    NEREID_KIT_ASSIGN(PlannedInput input, PlanInput(i));
    plan->input_names.push_back(ports_.inputs[input.port].info.name.c_str());
    plan->inputs.push_back(std::move(input));
  }
  for (size_t b = 0; b < ports_.batch_inputs.size(); ++b) {
    for (const size_t port : ports_.batch_inputs[b].inputs) {
      const std::span<const int64_t> shape = batch_inputs_[b].shape();
      plan->input_names.push_back(ports_.inputs[port].info.name.c_str());
      plan->inputs.push_back({.port = port,
                              .batch_input = static_cast<int>(b),
                              .shape = {shape.begin(), shape.end()},
                              .kept = {}});
    }
  }
  for (size_t o = 0; o < ports_.outputs.size(); ++o) {
    if (key_[o] != 0) {
      plan->output_names.push_back(ports_.outputs[o].info.name.c_str());
      plan->outputs.push_back({.port = o, .shape = {}, .kept = {}});
    }
  }
  return plan;
}

Error Gathering::Fill(Batch& batch, Plan& plan, std::vector<const OrtValue*>* values) {
  values->clear();
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    PlannedInput& input = plan.inputs[i];
    if (input.batch_input >= 0) {
      NEREID_KIT_ASSIGN(const OrtValue* const value, FillBatchInput(input));
      values->push_back(value);
    } else if (ports_.inputs[input.port].is_string()) {
      NEREID_KIT_ASSIGN(const OrtValue* const value, FillStrings(i, input));
      values->push_back(value);
    } else {
      NEREID_KIT_ASSIGN(const OrtValue* const value, FillFixed(batch, i, input));
      values->push_back(value);
    }
  }
  return {};
}

// Strings are copied into the tensor by length, so that they may contain any byte.
Result<const OrtValue*> Gathering::FillStrings(size_t i, const PlannedInput& input) {
  OrtAllocator* allocator = nullptr;
  NEREID_ORT_TRY(Api().GetAllocatorWithDefaultOptions(&allocator));
  OrtValue* value = nullptr;
  NEREID_ORT_TRY(Api().CreateTensorAsOrtValue(allocator, input.shape.data(), input.shape.size(),
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  owned_values_.emplace_back(value);
  size_t element = 0;
  Error failure;
  for (const uint32_t r : members_) {
    const InputView& from = view(i, r);
    NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(from.shape));
    NEREID_KIT_TRY(backend::ForEachString(
        string_data_[i * count_ + r], elements, from.name, [&](std::string_view text) {
          char* to = nullptr;
          if (Error error = FromOrt(
                  Api().GetResizedStringTensorElementBuffer(value, element++, text.size(), &to));
              !error.ok()) {
            failure = std::move(error);
          } else if (!text.empty()) {
            std::memcpy(to, text.data(), text.size());
          }
        }));
  }
  if (!failure.ok()) {
    return failure;
  }
  return static_cast<const OrtValue*>(value);
}

Result<const OrtValue*> Gathering::FillFixed(Batch& batch, size_t i, PlannedInput& input) {
  const Port& port = ports_.inputs[input.port];
  if (session_.placement().gpu && members_.size() == 1) {
    NEREID_KIT_ASSIGN(const char* const on_gpu,
                      backend::GpuInput(view(i, members_[0]), session_.placement().device));
    if (on_gpu != nullptr) {
      return FillFromGpu(input, on_gpu);
    }
  }
  if (KeptTensor::Suits(input.byte_size, members_.size())) {
    NEREID_KIT_TRY(input.kept.Prepare(memory_info_, port, input.shape, input.byte_size));
    Copy(batch, i, input.kept.data);
    return static_cast<const OrtValue*>(input.kept.value.get());
  }
  gathered_.resize(ports_.inputs.size());
  backend::ScratchBuffer& scratch = gathered_[input.port];
  const char* data = nullptr;
  if (members_.size() == 1) {
    NEREID_KIT_ASSIGN(const std::span<const char> bytes,
                      backend::ContiguousInput(view(i, members_[0]), port.element_size, scratch));
    data = bytes.data();
  } else {
    char* const to = scratch.Ensure(input.byte_size);
    Copy(batch, i, to);
    data = to;
  }
  OrtValue* value = nullptr;
  // ONNX Runtime takes a mutable pointer but does not write to inputs.
  NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(memory_info_, const_cast<char*>(data),
                                                      input.byte_size, input.shape.data(),
                                                      input.shape.size(), port.info.type, &value));
  owned_values_.emplace_back(value);
  return static_cast<const OrtValue*>(value);
}

Result<const OrtValue*> Gathering::FillFromGpu(const PlannedInput& input, const char* data) {
  OrtValue* value = nullptr;
  NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(
      session_.gpu_memory(), const_cast<char*>(data), input.byte_size, input.shape.data(),
      input.shape.size(), ports_.inputs[input.port].info.type, &value));
  owned_values_.emplace_back(value);
  return static_cast<const OrtValue*>(value);
}

Result<const OrtValue*> Gathering::FillBatchInput(const PlannedInput& input) {
  const std::span<char> data = batch_inputs_[static_cast<size_t>(input.batch_input)].data();
  OrtValue* value = nullptr;
  NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(memory_info_, data.data(), data.size(),
                                                      input.shape.data(), input.shape.size(),
                                                      ports_.inputs[input.port].info.type, &value));
  owned_values_.emplace_back(value);
  return static_cast<const OrtValue*>(value);
}

void Gathering::Copy(Batch& batch, size_t i, char* to) {
  for (const uint32_t r : members_) {
    const InputView& from = view(i, r);
    if (Error error = backend::CopyInput(from, {to, from.byte_size}); !error.ok()) {
      std::memset(to, 0, from.byte_size);
      batch.Fail(r, std::move(error));
    }
    to += from.byte_size;
  }
}

}  // namespace nereid::onnxruntime
