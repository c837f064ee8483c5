// SPDX-License-Identifier: Apache-2.0
#include "isolation/hosted_batch.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "isolation/response_text.h"
#include "python_backend/decode.h"

namespace nereid::isolation {
namespace {

using python::BlockPool;
using python::Reader;

std::string_view TextAt(std::span<const char> payload, uint32_t offset, uint32_t size) {
  return {payload.data() + offset, size};
}

void AppendTensor(Message& message, std::string_view name, tensor::DataType type,
                  std::span<const int64_t> shape, uint64_t data, uint64_t byte_size) {
  message.Append(python::TensorRecord{.datatype = static_cast<uint32_t>(type),
                                      .dims = static_cast<uint32_t>(shape.size()),
                                      .name_size = static_cast<uint32_t>(name.size()),
                                      .data = data,
                                      .byte_size = byte_size});
  message.Append(shape);
  message.AppendText(name);
}

// Adds a copy of the bytes to the message, and returns where it is in the shared memory.
base::Result<uint64_t> AddTensor(Channel& channel, Message& message, const void* data,
                                 size_t byte_size) {
  if (byte_size == 0) return uint64_t{0};
  NEREID_ASSIGN_OR_RETURN(BlockPool::Block block, channel.Allocate(byte_size));
  std::memcpy(block.payload(), data, byte_size);
  const uint64_t at = block.payload_offset();
  message.tensors.push_back(std::move(block));
  return at;
}

void AppendError(Message& message, const base::Status& error) {
  message.Append(
      python::ResponseRecord{.kind = static_cast<uint32_t>(python::ResponseKind::kError),
                             .tensors = static_cast<uint32_t>(error.code()),
                             .text_size = static_cast<uint32_t>(error.message().size())});
  message.AppendText(error.message());
}

// Takes the block that a placed output is in, so that it stays for the server.
base::Result<uint64_t> TakeOutput(Channel& channel, Message& message,
                                  core::ResponseOutput& output) {
  auto* const placed = static_cast<BlockPool::Block*>(output.placement_owner);
  if (placed == nullptr || !placed->exists()) {
    return AddTensor(channel, message, output.data, output.byte_size);
  }
  const uint64_t at = channel.OffsetOf(output.data);
  message.tensors.push_back(std::move(*placed));
  return at;
}

// Adds a ResponseRecord and what belongs to it; kNone for no response.
void AppendResponse(Channel& channel, Message& message, core::Response* response) {
  if (response == nullptr) {
    message.Append(
        python::ResponseRecord{.kind = static_cast<uint32_t>(python::ResponseKind::kNone)});
    return;
  }
  if (!response->error().ok()) return AppendError(message, response->error());
  const std::string parameters = ParametersText(response->parameters());
  const size_t begin = message.records.size();
  message.Append(
      python::ResponseRecord{.kind = static_cast<uint32_t>(python::ResponseKind::kTensors),
                             .tensors = static_cast<uint32_t>(response->output_count()),
                             .text_size = static_cast<uint32_t>(parameters.size())});
  for (size_t i = 0; i < response->output_count(); ++i) {
    core::ResponseOutput& output = response->output(i);
    const auto at = TakeOutput(channel, message, output);
    if (!at.ok()) {
      message.records.resize(begin);
      return AppendError(message, at.status());
    }
    AppendTensor(message, output.name, output.type, output.shape.dims(), *at, output.byte_size);
  }
  message.AppendText(parameters);
}

}  // namespace

// --- HostedRequest ---

base::Result<std::optional<core::OutputPlacement>> HostedRequest::PlaceOutput(
    const core::Request& /*request*/, const core::ResponseOutput& /*output*/, size_t byte_size,
    memory::Placement /*preferred*/) {
  if (byte_size == 0) return std::optional<core::OutputPlacement>();
  NEREID_ASSIGN_OR_RETURN(BlockPool::Block block, batch_.context_.channel.Allocate(byte_size));
  auto* const data = reinterpret_cast<std::byte*>(block.payload());
  return std::optional(core::OutputPlacement{
      .data = data, .where = {}, .owner = new BlockPool::Block(std::move(block))});
}

void HostedRequest::ReleasePlacement(const core::OutputPlacement& placement, size_t /*byte_size*/) {
  delete static_cast<BlockPool::Block*>(placement.owner);
}

void HostedRequest::Send(core::ResponsePtr response, bool is_final) {
  if (is_final && response != nullptr && !batch_.context_.model.is_decoupled()) {
    const base::MutexLock lock(batch_.mutex_);
    if (batch_.is_executing_) {
      response_ = std::move(response);
      return;
    }
  }
  Message message;
  message.Append(python::SendRecord{
      .handle = number_, .is_final = is_final, .has_response = response != nullptr});
  Channel& channel = batch_.context_.channel;
  size_t bytes = 0;
  if (response != nullptr) {
    for (size_t i = 0; i < response->output_count(); ++i) bytes += response->output(i).byte_size;
    AppendResponse(channel, message, response.get());
  }
  channel.Call(python::Call::kSend, std::move(message));
  if (!is_final) KeepPace(bytes);
}

void HostedRequest::KeepPace(size_t bytes) {
  const size_t ahead = ++ahead_;
  ahead_bytes_ += bytes;
  if (ahead < python::kMostResponsesAhead && ahead_bytes_ < python::kMostBytesAhead) return;
  ahead_ = 0;
  ahead_bytes_ = 0;
  batch_.context_.channel.AwaitSent(number_);
}

void HostedRequest::Reschedule(core::RequestPtr request) {
  {
    const base::MutexLock lock(batch_.mutex_);
    ending_ = Ending::kRescheduled;
  }
  request.reset();
}

base::Status HostedRequest::TakeStates(core::Request& request) {
  states_ = std::make_unique<core::SequenceStates>(batch_.context_.states);
  for (const core::StateSpec& spec : batch_.context_.states->states()) {
    core::RequestInput* const input = request.FindInput(spec.input_name);
    // Only states that share their buffer ever read the current value.
    if (input == nullptr || !spec.shares_buffer) continue;
    NEREID_ASSIGN_OR_RETURN(core::SequenceState* const state,
                            states_->New(spec.output_name, input->type, input->shape.dims()));
    NEREID_ASSIGN_OR_RETURN(std::byte* const buffer, state->Buffer(input->byte_size));
    if (input->byte_size > 0) std::memcpy(buffer, input->first.data, input->byte_size);
    NEREID_RETURN_IF_ERROR(state->Update());
    input->first.data = buffer;
  }
  request.states = states_.get();
  return {};
}

// A value that shares its buffer does not show whether it is new.
bool HostedRequest::is_updated(size_t state) const {
  const core::StateSpec& spec = batch_.context_.states->states()[state];
  return spec.shares_buffer || states_->value(state).data() != spec.initial.data();
}

void HostedRequest::AppendEnding(Message& message, Ending ending) const {
  const size_t begin = message.records.size();
  EndingRecord record{.ending = static_cast<uint32_t>(ending),
                      .states = 0,
                      .report = static_cast<uint32_t>(report_),
                      .reserved = 0,
                      .exec_start_ns = times_.compute_start_ns,
                      .compute_start_ns = times_.compute_input_end_ns,
                      .compute_end_ns = times_.compute_output_start_ns,
                      .exec_end_ns = times_.compute_end_ns};
  message.Append(record);
  if (states_ == nullptr || ending == Ending::kHeld) return;
  const auto& specs = batch_.context_.states->states();
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!is_updated(i)) continue;
    const core::StateValue& value = states_->value(i);
    const auto at = AddTensor(batch_.context_.channel, message, value.data(), value.byte_size);
    if (!at.ok()) {
      NEREID_LOG(kError, "the state '{}' is lost: {}", specs[i].output_name, at.status().message());
      continue;
    }
    AppendTensor(message, specs[i].output_name, value.type, value.shape.dims(), *at,
                 value.byte_size);
    ++record.states;
  }
  std::memcpy(message.records.data() + begin, &record, sizeof(record));
}

void HostedRequest::OnRequestReleased(core::Request& /*request*/) {
  bool is_late = false;
  bool was_last = false;
  Ending ending = Ending::kReleased;
  {
    const base::MutexLock lock(batch_.mutex_);
    if (ending_ == Ending::kHeld) ending_ = Ending::kReleased;
    ending = ending_;
    is_late = !batch_.is_executing_;
    was_last = --batch_.unreleased_ == 0;
  }
  if (is_late) {
    Message message;
    message.Append(number_);
    AppendEnding(message, ending);
    batch_.context_.channel.Call(python::Call::kRelease, std::move(message));
  }
  if (was_last) batch_.LetGo();
}

void HostedRequest::OnRequestGone() {
  std::shared_ptr<HostedBatch> last;
  const base::MutexLock lock(batch_.mutex_);
  if (--batch_.remaining_ == 0) last.swap(batch_.self_);
}

// --- HostedBatch ---

HostedBatch::~HostedBatch() = default;

base::Result<std::shared_ptr<HostedBatch>> HostedBatch::Read(
    HostContext& context, const Channel::Item& item, std::vector<core::RequestPtr>& requests) {
  std::shared_ptr<HostedBatch> batch(new HostedBatch(context, item.offset));
  base::Status read = batch->ReadRequests(context.channel.Payload(item), requests);
  {
    const base::MutexLock lock(batch->mutex_);
    batch->unreleased_ = batch->remaining_ = requests.size();
    if (!requests.empty()) batch->self_ = batch;
  }
  if (requests.empty()) batch->LetGo();
  if (read.ok()) return batch;
  // The last of them lets go of the memory.
  requests.clear();
  return read;
}

base::Status HostedBatch::ReadRequests(std::span<const char> payload,
                                       std::vector<core::RequestPtr>& requests) {
  Reader reader(payload);
  const auto header = reader.Read<python::BatchHeader>();
  // All blocks are to be let go of, even if a request before theirs cannot be read.
  Reader records = reader;
  for (uint32_t i = 0; i < header.count && reader.ok(); ++i) {
    const uint64_t block = reader.Read<python::RequestRecord>().block;
    if (block != 0) received_.push_back(block);
  }
  if (!reader.ok()) return base::InternalError("the batch was cut short");
  for (uint32_t i = 0; i < header.count; ++i) {
    NEREID_RETURN_IF_ERROR(ReadRequest(payload, records.Read<python::RequestRecord>(), requests));
  }
  return {};
}

void HostedBatch::LetGo() const {
  for (const uint64_t block : received_) context_.channel.LetGo(block);
  context_.channel.LetGo(payload_);
}

base::Status HostedBatch::ReadRequest(std::span<const char> payload,
                                      const python::RequestRecord& record,
                                      std::vector<core::RequestPtr>& requests) {
  core::Model& model = context_.model;
  requests_.push_back(std::make_unique<HostedRequest>(*this, record.handle));
  HostedRequest& hosted = *requests_.back();
  core::RequestPtr& request = requests.emplace_back(core::Request::Create(hosted));
  hosted.cancel_handle_.Open(*request);
  memory::Arena& arena = request->arena();
  if (model.TryPin()) request->model = core::ModelHandle(model);
  request->times.request_start_ns = request->times.queue_start_ns = base::NowNs();
  request->flags = record.flags;
  request->timeout_us = record.timeout_us;
  request->id = arena.Copy(TextAt(payload, record.id, record.id_size));
  if (record.has_correlation_text != 0) {
    request->correlation_id =
        arena.Copy(TextAt(payload, record.correlation_text, record.correlation_text_size));
  } else {
    request->correlation_id = record.correlation_id;
  }
  Reader form(payload.subspan(record.form, record.form_size));
  const auto header = form.Read<python::FormHeader>();
  for (uint32_t i = 0; i < header.inputs; ++i) {
    const auto tensor = form.Read<python::TensorRecord>();
    core::RequestInput& input =
        request->AddInput({}, static_cast<tensor::DataType>(tensor.datatype));
    for (uint32_t d = 0; d < tensor.dims; ++d) input.shape.PushBack(form.Read<int64_t>());
    const std::string_view name = form.Text(tensor.name_size);
    const int index = model.FindInput(name);
    input.model_index = index < 0 ? core::kServerInput : static_cast<uint32_t>(index);
    input.name = index < 0 ? arena.CopyTerminated(name)
                           : std::string_view(model.inputs()[static_cast<size_t>(index)].name);
    if (tensor.byte_size > 0) {
      const char* const data = context_.channel.At(record.data + tensor.data);
      input.Append({.data = reinterpret_cast<const std::byte*>(data),
                    .size = tensor.byte_size,
                    .where = {}});
    }
    if (i == 0 && model.max_batch_size() > 0 && input.shape.rank() > 0) {
      request->batch_size = static_cast<uint32_t>(input.shape.dims()[0]);
    }
  }
  for (uint32_t i = 0; i < header.outputs; ++i) {
    const int index = model.FindOutput(form.SizedText());
    if (index < 0) continue;
    const auto at = static_cast<uint32_t>(index);
    request->outputs.push_back({.name = model.outputs()[at].name, .model_index = at});
  }
  // Only a request that fills an idle slot of a batch has none.
  request->is_padding = header.outputs == 0;
  if (!form.ok()) return base::InternalError("a request was cut short");
  if (record.parameters_size != 0) {
    NEREID_RETURN_IF_ERROR(
        ReadParameters(TextAt(payload, record.parameters, record.parameters_size), *request));
  }
  if (context_.states != nullptr) {
    NEREID_RETURN_IF_ERROR(hosted.TakeStates(*request));
  }
  return {};
}

Message HostedBatch::Close() {
  std::vector<Ending> endings;
  std::vector<core::ResponsePtr> responses;
  {
    const base::MutexLock lock(mutex_);
    for (const auto& request : requests_) {
      endings.push_back(request->ending_);
      responses.push_back(std::move(request->response_));
    }
    // From here on, other threads tell the server themselves what they do.
    is_executing_ = false;
  }
  Message message;
  for (size_t i = 0; i < requests_.size(); ++i) {
    requests_[i]->AppendEnding(message, endings[i]);
    AppendResponse(context_.channel, message, responses[i].get());
  }
  return message;
}

bool HostedBatch::Cancel(uint64_t number) {
  const auto found = std::ranges::find(requests_, number, &HostedRequest::number_);
  if (found == requests_.end()) return false;
  if (const core::RequestRef request = (*found)->cancel_handle_.Take()) request->Cancel();
  return true;
}

bool HostedBatch::is_gone() {
  const base::MutexLock lock(mutex_);
  return remaining_ == 0;
}

}  // namespace nereid::isolation
