// SPDX-License-Identifier: Apache-2.0
#include "schedule/sequence_table.h"

#include <algorithm>
#include <utility>

namespace nereid::schedule {
namespace {

uint64_t AddSaturated(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

bool IsStart(const core::Request& request) { return (request.flags & core::kSequenceStart) != 0; }

}  // namespace

// A slot of its own would not let a sequence run before the earlier one of its id is over. It would
// only put the first request at another position of the batch than that of the earlier one. But
// without a free slot it must wait behind the others: a client that keeps to one id would never
// give its slot to anybody else. And an instance that is to leave must not get ever new sequences.
uint32_t SequenceTable::SlotToInherit(const Sequence& earlier) const {
  if (free_.empty()) return Sequence::kNoSlot;
  const uint32_t slot =
      earlier.slot_ != Sequence::kNoSlot ? earlier.slot_ : earlier.slot_to_inherit_;
  const bool stays = slot != Sequence::kNoSlot && instances_[InstanceOf(slot)].gets_sequences;
  return stays ? slot : Sequence::kNoSlot;
}

SequenceTable::SequenceTable(const Options& options) : options_(options) {
  for (size_t instance = 0; instance < options.instance_count; ++instance) AddInstance(instance, 0);
}

void SequenceTable::AddInstance(size_t instance, uint64_t now_ns) {
  if (instance >= instances_.size()) {
    instances_.resize(instance + 1);
    slots_.resize(instances_.size() * options_.slots_per_instance);
  }
  if (std::exchange(instances_[instance].gets_sequences, true)) return;
  for (size_t position = 0; position < options_.slots_per_instance; ++position) {
    const auto slot = static_cast<uint32_t>(SlotOf(instance, position));
    if (slots_[slot] == nullptr) GiveSlot(slot, now_ns);
  }
}

void SequenceTable::RetireInstance(size_t instance) {
  instances_[instance].gets_sequences = false;
  decltype(free_) left;
  for (; !free_.empty(); free_.pop()) {
    if ((free_.top() & UINT32_MAX) != instance) left.push(free_.top());
  }
  free_ = std::move(left);
}

void SequenceTable::SetSlot(uint32_t slot, Sequence* sequence) {
  size_t& used = instances_[InstanceOf(slot)].used_slots;
  if (slots_[slot] != nullptr) --used;
  if (sequence != nullptr) ++used;
  slots_[slot] = sequence;
}

Sequence* SequenceTable::Find(const core::CorrelationId& id, bool is_start) {
  const auto found = named_.find(id);
  Sequence* const known = found == named_.end() ? nullptr : found->second;
  if (known != nullptr && !known->is_closed_) return known;
  if (!is_start) return nullptr;
  Sequence& made = Make();
  if (known != nullptr) {
    // The last requests of the old sequence may still run: two sequences of one id never run
    // concurrently, because a model may keep its state by id.
    known->is_named_ = false;
    known->successor_ = &made;
    made.predecessor_ = known;
    named_.erase(found);
  }
  Name(made, id);
  if (known != nullptr) made.slot_to_inherit_ = SlotToInherit(*known);
  if (made.slot_to_inherit_ == Sequence::kNoSlot) Place(made);
  return &made;
}

Sequence& SequenceTable::FindUnnamed() {
  Sequence& made = Make();
  Place(made);
  return made;
}

Sequence& SequenceTable::Make() {
  if (unused_.empty()) {
    sequences_.push_back(std::make_unique<Sequence>());
    unused_.push_back(sequences_.back().get());
  }
  Sequence& made = *unused_.back();
  unused_.pop_back();
  made.is_used_ = true;
  return made;
}

void SequenceTable::Name(Sequence& sequence, const core::CorrelationId& id) {
  if (const auto* text = std::get_if<std::string_view>(&id)) {
    sequence.id_text_.assign(*text);
    sequence.id_ = std::string_view(sequence.id_text_);
  } else {
    sequence.id_ = id;
  }
  named_.emplace(sequence.id_, &sequence);
  sequence.is_named_ = true;
}

// Assigns a free slot, or the end of the backlog. There is never both a free slot and a backlog.
void SequenceTable::Place(Sequence& sequence) {
  if (!free_.empty()) {
    const uint64_t rank = free_.top();
    free_.pop();
    sequence.slot_ = static_cast<uint32_t>(SlotOf(rank & UINT32_MAX, rank >> 32));
    SetSlot(sequence.slot_, &sequence);
    return;
  }
  sequence.is_in_backlog_ = true;
  backlog_.PushBack(sequence);
}

void SequenceTable::LeaveBacklog(Sequence& sequence) {
  if (!sequence.is_in_backlog_) return;
  sequence.is_in_backlog_ = false;
  backlog_.Remove(sequence);
  if (sequence.expires_ns_ == UINT64_MAX) return;
  expiries_.erase({sequence.expires_ns_, &sequence});
  sequence.expires_ns_ = UINT64_MAX;
}

void SequenceTable::Admit(Sequence& sequence, core::RequestPtr request, uint64_t now_ns) {
  ++sequence.request_count_;
  if ((request->flags & core::kSequenceEnd) != 0) sequence.is_closed_ = true;
  if (sequence.is_in_backlog_) ShortenExpiry(sequence, *request, now_ns);
  AddWaiting(sequence, nullptr, std::move(request), now_ns);
}

void SequenceTable::ShortenExpiry(Sequence& sequence, const core::Request& request,
                                  uint64_t since_ns) {
  uint64_t expires_ns = request.deadline_ns == 0 ? UINT64_MAX : request.deadline_ns;
  if (request.timeout_us != 0) {
    const uint64_t timeout_ns =
        request.timeout_us > UINT64_MAX / 1000 ? UINT64_MAX : request.timeout_us * 1000;
    expires_ns = std::min(expires_ns, AddSaturated(since_ns, timeout_ns));
  }
  if (expires_ns >= sequence.expires_ns_) return;
  expiries_.erase({sequence.expires_ns_, &sequence});
  sequence.expires_ns_ = expires_ns;
  expiries_.insert({expires_ns, &sequence});
}

void SequenceTable::AddWaiting(Sequence& sequence, core::Request* next, core::RequestPtr request,
                               uint64_t now_ns) {
  sequence.InsertBefore(next, std::move(request));
  ++waiting_count_;
  if (sequence.is_in_backlog_) ++backlog_count_;
  Update(sequence, now_ns);
}

core::RequestPtr SequenceTable::RemoveWaiting(Sequence& sequence, core::Request& request) {
  core::RequestPtr removed = sequence.Unlink(request);
  --waiting_count_;
  if (sequence.is_in_backlog_) --backlog_count_;
  return removed;
}

core::RequestPtr SequenceTable::Dispatch(Sequence& sequence) {
  core::RequestPtr request = RemoveWaiting(sequence, *sequence.front());
  request->queue = static_cast<RequestList*>(&sequence);
  sequence.in_flight_ = request.get();
  sequence.has_run_ = true;
  SetReady(sequence, false, 0);
  return request;
}

void SequenceTable::PutBack(Sequence& sequence, core::RequestPtr request, uint64_t now_ns) {
  if (sequence.in_flight_ == request.get()) sequence.in_flight_ = nullptr;
  core::Request* restart = sequence.front();
  while (restart != nullptr && !IsStart(*restart)) restart = restart->next;
  AddWaiting(sequence, restart, std::move(request), now_ns);
}

void SequenceTable::OnReleased(Sequence& sequence, core::Request& request, uint64_t now_ns) {
  if (sequence.in_flight_ != &request) return;
  request.queue = nullptr;
  sequence.in_flight_ = nullptr;
  Update(sequence, now_ns);
}

void SequenceTable::OnGone(Sequence& sequence, uint64_t now_ns) {
  --sequence.request_count_;
  RetireIfOver(sequence, now_ns);
}

void SequenceTable::Close(Sequence& sequence, uint64_t now_ns) {
  sequence.is_closed_ = true;
  Update(sequence, now_ns);
  RetireIfOver(sequence, now_ns);
}

void SequenceTable::Abort(Sequence& sequence, uint64_t now_ns, Refused& refused) {
  while (!sequence.empty()) refused.push_back(RemoveWaiting(sequence, *sequence.front()));
  sequence.is_aborted_ = true;
  LeaveBacklog(sequence);
  Close(sequence, now_ns);
}

void SequenceTable::Cancel(Sequence& sequence, core::Request& request, uint64_t now_ns,
                           Refused& refused) {
  core::Request* first = &request;
  while (!IsStart(*first) && first->previous != nullptr) first = first->previous;
  // What a backend has was dispatched before this START, for another client, which goes on.
  const bool is_other_in_flight = sequence.in_flight_ != nullptr && IsStart(*first);
  core::Request* end = request.next;
  while (end != nullptr && !IsStart(*end)) end = end->next;
  while (first != end) {
    core::Request* const next = first->next;
    refused.push_back(RemoveWaiting(sequence, *first));
    first = next;
  }
  if (sequence.is_in_backlog_) RestoreExpiry(sequence, now_ns);
  if (end != nullptr) return Update(sequence, now_ns);
  if (sequence.empty() && !is_other_in_flight) return Abort(sequence, now_ns, refused);
  Close(sequence, now_ns);
}

void SequenceTable::RestoreExpiry(Sequence& sequence, uint64_t now_ns) {
  if (sequence.expires_ns_ == UINT64_MAX) return;
  expiries_.erase({sequence.expires_ns_, &sequence});
  sequence.expires_ns_ = UINT64_MAX;
  FindExpiry(sequence, now_ns);
}

void SequenceTable::FindExpiry(Sequence& sequence, uint64_t now_ns) {
  for (const core::Request* request = sequence.front(); request != nullptr;
       request = request->next) {
    ShortenExpiry(sequence, *request, std::min(request->times.queue_start_ns, now_ns));
  }
}

uint64_t SequenceTable::OldestNs() const {
  uint64_t oldest_ns = UINT64_MAX;
  for (const auto& sequence : sequences_) {
    if (sequence->empty()) continue;
    oldest_ns = std::min(oldest_ns, sequence->front()->times.queue_start_ns);
  }
  return oldest_ns;
}

void SequenceTable::RefuseAll(uint64_t now_ns, Refused& refused) {
  for (auto& sequence : sequences_) {
    if (sequence->is_used_) Abort(*sequence, now_ns, refused);
  }
}

void SequenceTable::Update(Sequence& sequence, uint64_t now_ns) {
  const bool has_slot = sequence.slot_ != Sequence::kNoSlot;
  const bool is_free = has_slot && sequence.in_flight_ == nullptr;
  SetReady(sequence, is_free && !sequence.empty() && sequence.predecessor_ == nullptr, now_ns);
  SetIdle(sequence, is_free && sequence.empty() && !sequence.is_closed_, now_ns);
}

void SequenceTable::SetReady(Sequence& sequence, bool is_ready, uint64_t now_ns) {
  if (sequence.is_ready_ == is_ready) return;
  sequence.is_ready_ = is_ready;
  auto& list = instances_[InstanceOf(sequence.slot_)].ready;
  if (!is_ready) {
    list.Remove(sequence);
    --ready_count_;
    return;
  }
  sequence.ready_since_ns_ = now_ns;
  list.PushBack(sequence);
  ++ready_count_;
}

void SequenceTable::SetIdle(Sequence& sequence, bool is_idle, uint64_t now_ns) {
  if (sequence.is_idle_ == is_idle) return;
  sequence.is_idle_ = is_idle;
  if (!is_idle) return idle_.Remove(sequence);
  sequence.idle_since_ns_ = now_ns;
  idle_.PushBack(sequence);
}

// The only place where a slot changes hands: exactly once for each sequence that got one.
void SequenceTable::RetireIfOver(Sequence& sequence, uint64_t now_ns) {
  if (!sequence.is_closed_ || sequence.request_count_ > 0) return;
  const uint32_t slot = sequence.slot_;
  // If the sequence was abandoned before its turn, its successor now waits for its predecessor.
  Sequence* const predecessor = sequence.predecessor_;
  Sequence* const successor = sequence.successor_;
  Forget(sequence);
  if (predecessor != nullptr) {
    predecessor->successor_ = successor;
    // The next sequence of this id must find it.
    if (successor == nullptr) {
      predecessor->is_named_ = true;
      named_.emplace(predecessor->id_, predecessor);
    }
  }
  bool is_inherited = false;
  if (successor != nullptr) {
    successor->predecessor_ = predecessor;
    is_inherited = slot != Sequence::kNoSlot && successor->slot_to_inherit_ == slot;
    if (is_inherited) {
      SetSlot(slot, successor);
      successor->slot_ = std::exchange(successor->slot_to_inherit_, Sequence::kNoSlot);
    }
    Update(*successor, now_ns);
  }
  if (slot != Sequence::kNoSlot && !is_inherited) GiveSlot(slot, now_ns);
}

void SequenceTable::Forget(Sequence& sequence) {
  if (sequence.is_named_) named_.erase(sequence.id_);
  sequence.predecessor_ = nullptr;
  sequence.successor_ = nullptr;
  sequence.id_ = uint64_t{0};
  sequence.slot_ = Sequence::kNoSlot;
  sequence.is_used_ = false;
  sequence.is_named_ = false;
  sequence.slot_to_inherit_ = Sequence::kNoSlot;
  sequence.is_closed_ = false;
  sequence.is_aborted_ = false;
  sequence.has_run_ = false;
  sequence.in_flight_ = nullptr;
  unused_.push_back(&sequence);
}

void SequenceTable::GiveSlot(uint32_t slot, uint64_t now_ns) {
  const bool gets_sequences = instances_[InstanceOf(slot)].gets_sequences;
  Sequence* const next = gets_sequences ? backlog_.head() : nullptr;
  SetSlot(slot, next);
  if (next == nullptr) {
    if (gets_sequences) free_.push(RankOf(slot));
    return;
  }
  LeaveBacklog(*next);
  next->slot_ = slot;
  backlog_count_ -= next->size();
  Update(*next, now_ns);
}

void SequenceTable::Expire(uint64_t now_ns, Refused& refused) {
  while (idle_.head() != nullptr &&
         AddSaturated(idle_.head()->idle_since_ns_, options_.idle_ns) <= now_ns) {
    Close(*idle_.head(), now_ns);
  }
  while (!expiries_.empty() && expiries_.begin()->first <= now_ns) {
    Abort(*expiries_.begin()->second, now_ns, refused);
  }
}

std::optional<uint64_t> SequenceTable::NextExpiry() const {
  uint64_t next = UINT64_MAX;
  if (idle_.head() != nullptr) next = AddSaturated(idle_.head()->idle_since_ns_, options_.idle_ns);
  if (!expiries_.empty()) next = std::min(next, expiries_.begin()->first);
  return next == UINT64_MAX ? std::nullopt : std::optional(next);
}

core::SequenceReading SequenceTable::ReadOne(const Sequence& sequence, uint64_t now_ns) {
  core::SequenceReading reading;
  if (const auto* text = std::get_if<std::string_view>(&sequence.id_)) {
    reading.id = *text;
  } else {
    reading.id = std::to_string(std::get<uint64_t>(sequence.id_));
  }
  reading.waiting = sequence.size();
  reading.is_executing = sequence.in_flight_ != nullptr;
  reading.is_closed = sequence.is_closed_;
  if (sequence.is_idle_ && now_ns > sequence.idle_since_ns_) {
    reading.idle_ns = now_ns - sequence.idle_since_ns_;
  }
  return reading;
}

core::SequencesReading SequenceTable::Read(size_t most, uint64_t now_ns) const {
  core::SequencesReading reading;
  reading.slots_per_instance = options_.slots_per_instance;
  reading.free_slots = free_.size();
  reading.idle_limit_ns = options_.idle_ns;
  reading.backlog_requests = backlog_count_;
  reading.backlog_sequences = backlog_.size();
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot] == nullptr) continue;
    ++reading.used_slots;
    if (reading.running.size() >= most) continue;
    core::SequenceReading& one = reading.running.emplace_back(ReadOne(*slots_[slot], now_ns));
    one.instance = InstanceOf(slot);
    one.position = slot % options_.slots_per_instance;
  }
  for (const Sequence* one = backlog_.head(); one != nullptr && reading.backlog.size() < most;
       one = one->backlog_links_.next) {
    reading.backlog.push_back(ReadOne(*one, now_ns));
  }
  return reading;
}

}  // namespace nereid::schedule
