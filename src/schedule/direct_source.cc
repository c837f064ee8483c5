// SPDX-License-Identifier: Apache-2.0
#include "schedule/direct_source.h"

#include <algorithm>
#include <cstring>

#include "core/response.h"

namespace nereid::schedule {
namespace {

// The sink of padding where models have no states. Nor has the sink, so that all such padding can
// share it, even while its scheduler is destroyed.
class Nowhere final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr /*response*/, bool /*is_final*/) override {}
};

core::ResponseSink& NowhereSink() {
  static Nowhere nowhere;
  return nowhere;
}

// The bytes of an empty element of BYTES.
constexpr size_t kEmptyElementSize = sizeof(uint32_t);

size_t ZeroSize(const core::RequestInput& input) {
  if (input.type != tensor::DataType::kBytes) return input.byte_size;
  // Each element of the request took at least as much.
  return static_cast<size_t>(tensor::ElementCount(input.shape.dims()).value_or(0)) *
         kEmptyElementSize;
}

}  // namespace

// The sink of one padding request, and the request's states. They cannot be those of its slot: a
// backend may keep the request while the slot has padding in the next batch.
class DirectSource::StatefulPadding final : public core::ResponseSink, public base::Queueable {
 public:
  explicit StatefulPadding(DirectSource& source) : source_(source), states_(source.state_plan_) {}

  // Attaches states like `like` to `request`, whose sink this is.
  void Attach(core::Request& request, const core::SequenceStates& like) {
    pin_ = request.model.Duplicate();
    states_.ResetLike(like);
    states_.AttachInputs(request);
  }

  void Send(core::ResponsePtr /*response*/, bool /*is_final*/) override {}
  void OnRequestGone() override {
    // Keeps the source, which is part of the model; the request's own pin is gone.
    const core::ModelHandle pin = std::move(pin_);
    source_.returned_.Push(*this);
  }

 private:
  DirectSource& source_;
  core::SequenceStates states_;
  core::ModelHandle pin_;
};

DirectSource::DirectSource(SequenceSourceOptions options) : SequenceSource(std::move(options)) {}

DirectSource::~DirectSource() = default;

Sequence* DirectSource::Representative(size_t instance) const {
  for (size_t position = 0; position < table_.slots_per_instance(); ++position) {
    Sequence* const sequence = table_.at(instance, position);
    if (sequence != nullptr && sequence->is_ready()) return sequence;
  }
  return nullptr;
}

BatchDecision DirectSource::Decide(size_t instance, uint64_t now_ns) {
  const size_t ready = table_.ready_count(instance);
  if (ready == 0 || IsHolding(table_.waiting_count() - table_.backlog_count())) return {};
  size_t positions = 0;
  uint64_t oldest_ns = UINT64_MAX;
  for (size_t position = 0; position < table_.slots_per_instance(); ++position) {
    const Sequence* const sequence = table_.at(instance, position);
    if (sequence == nullptr || !sequence->is_ready()) continue;
    positions = position + 1;
    oldest_ns = std::min(oldest_ns, sequence->front()->times.queue_start_ns);
  }
  BatchDecision decision{.request_count = positions};
  const size_t slots = table_.slots_per_instance();
  if (ready == slots) decision.reason = core::BatchClosed::kFull;
  const uint64_t delay_ns = plan_.max_queue_delay_ns();
  const float wanted = plan_.minimum_slot_utilization();
  if (delay_ns == 0 || wanted == 0) return decision;
  if (static_cast<float>(ready) / static_cast<float>(slots) >= wanted) {
    if (ready < slots) decision.reason = core::BatchClosed::kPreferred;
    return decision;
  }
  if (now_ns >= oldest_ns && now_ns - oldest_ns >= delay_ns) {
    decision.reason = core::BatchClosed::kDelay;
    return decision;
  }
  return {.look_again_at_ns = oldest_ns + delay_ns};
}

void DirectSource::Take(size_t instance, const BatchDecision& decision,
                        std::vector<core::RequestPtr>& batch) {
  // Starts with the representative, because padding is made like it, including states.
  Sequence* const representative = Representative(instance);
  core::RequestPtr like = Dispatch(*representative);
  const core::Request& pattern = *like;
  for (size_t position = 0; position < decision.request_count; ++position) {
    Sequence* const sequence = table_.at(instance, position);
    if (sequence == representative) {
      batch.push_back(std::move(like));
    } else if (sequence != nullptr && sequence->is_ready() &&
               matcher_.Match(pattern, *sequence->front())) {
      batch.push_back(Dispatch(*sequence));
    } else {
      batch.push_back(MakePadding(pattern));
    }
  }
}

DirectSource::StatefulPadding& DirectSource::TakeStatefulPadding() {
  if (unused_.empty()) unused_ = returned_.TakeAll();
  if (StatefulPadding* const unused = unused_.Pop()) return *unused;
  return *paddings_.emplace_back(std::make_unique<StatefulPadding>(*this));
}

core::RequestPtr DirectSource::MakePadding(const core::Request& like) {
  core::SequenceStates* const states = StatesOf(Sequence::Of(like).slot());
  StatefulPadding* const stateful = states != nullptr ? &TakeStatefulPadding() : nullptr;
  core::RequestPtr padding =
      stateful != nullptr ? core::Request::Create(*stateful) : core::Request::Create(NowhereSink());
  padding->is_padding = true;
  padding->runs_once = true;
  padding->model = like.model.Duplicate();
  padding->batch_size = like.batch_size;
  padding->times = like.times;
  for (const core::RequestInput& input : like.inputs) {
    if (input.model_index != core::kServerInput) CopyAsZeros(input, *padding);
  }
  plan_.AttachNotReady(*padding);
  if (stateful != nullptr) stateful->Attach(*padding, *states);
  return padding;
}

void DirectSource::CopyAsZeros(const core::RequestInput& from, core::Request& padding) {
  core::RequestInput& input = padding.AddInput(from.name, from.type);
  input.model_index = from.model_index;
  input.shape = from.shape;
  // The model's own text, because the request may be gone before the padding.
  input.name = model_.inputs()[from.model_index].name;
  if (model_.inputs()[from.model_index].is_shape_tensor && from.more.empty()) {
    // The input's values are shapes, which must be those of the batch.
    std::byte* const copy = padding.arena().Allocate(from.byte_size);
    if (copy == nullptr) return;
    std::memcpy(copy, from.first.data, from.byte_size);
    input.Append({.data = copy, .size = from.byte_size});
    return;
  }
  const size_t size = ZeroSize(from);
  if (size == 0) return;
  base::BufferRef zeros = Zeros(size);
  if (!zeros) return;  // the backend will report that the input is too short
  input.Append({.data = zeros.data(), .size = size});
  padding.Hold(std::move(zeros));
}

base::BufferRef DirectSource::Zeros(size_t size) {
  if (size > zeros_size_) {
    zeros_ = base::AcquireZeroedBuffer(size);
    zeros_size_ = zeros_ ? size : 0;
  }
  return zeros_;
}

}  // namespace nereid::schedule
