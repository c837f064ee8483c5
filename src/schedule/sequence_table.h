// SPDX-License-Identifier: Apache-2.0
// The sequences of a model, the state of each, and what each waits for.
//
// A sequence joins with its first request. It gets a slot of an instance if one is free; otherwise
// it waits in the backlog, first come first served. A sequence that follows another of the same id
// waits for the end of that one, and then has its slot. Its requests run one after another. Once it
// is closed (its END arrived, it was idle for too long, it was cancelled) no request can join it
// any more, and when the last of its requests is gone, with all of its responses, its slot goes to
// the backlog.
//
// Pure logic on clock readings: no threads, no waiting, no responses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/linked_list.h"
#include "core/request.h"
#include "core/sequence_reading.h"
#include "schedule/request_list.h"

namespace nereid::schedule {

class SequenceTable;

// The requests of one sequence. Only the table changes it; others read.
class Sequence : public RequestList {
 public:
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  // Returns the sequence of a request that waits or is in flight.
  static Sequence& Of(const core::Request& request) {
    return static_cast<Sequence&>(*RequestList::Of(request));
  }

  const core::CorrelationId& id() const { return id_; }
  // kNoSlot: in the backlog, waits for the end of its predecessor, or ended before it got one.
  uint32_t slot() const { return slot_; }
  bool is_closed() const { return is_closed_; }
  // Closed by Abort: not even a rescheduled request may run.
  bool is_aborted() const { return is_aborted_; }
  // Whether its first request may run now.
  bool is_ready() const { return is_ready_; }
  // The time since when it is ready.
  uint64_t ready_since_ns() const { return ready_since_ns_; }
  // Whether it is new: no request was admitted yet.
  bool is_fresh() const { return request_count_ == 0 && !has_run_; }
  // Whether one of its requests was dispatched.
  bool has_run() const { return has_run_; }
  // The request that a backend has.
  const core::Request* in_flight() const { return in_flight_; }
  // The next ready sequence on the same instance, in the order in which they became ready.
  Sequence* next_ready() const { return ready_links_.next; }

 private:
  friend class SequenceTable;

  core::CorrelationId id_ = uint64_t{0};  // a view of id_text_ if it is a text
  std::string id_text_;
  uint32_t slot_ = kNoSlot;
  // What its predecessor has, or inherits itself.
  uint32_t slot_to_inherit_ = kNoSlot;
  bool is_used_ = false;
  bool is_named_ = false;  // in the map of ids
  bool is_closed_ = false;
  bool is_aborted_ = false;
  bool has_run_ = false;
  bool is_ready_ = false;
  core::Request* in_flight_ = nullptr;
  size_t request_count_ = 0;  // admitted and not gone
  // The sequence of the same id that must end before this one runs.
  Sequence* predecessor_ = nullptr;
  Sequence* successor_ = nullptr;
  uint64_t ready_since_ns_ = 0;
  base::ListLinks<Sequence> ready_links_;
  bool is_idle_ = false;
  uint64_t idle_since_ns_ = 0;
  base::ListLinks<Sequence> idle_links_;
  bool is_in_backlog_ = false;
  uint64_t expires_ns_ = UINT64_MAX;
  base::ListLinks<Sequence> backlog_links_;
};

// Confined to the lock of its scheduler; owns the requests that wait in it. In steady state only
// the first request of a sequence may allocate.
class SequenceTable {
 public:
  // The number of slots, and the time after which a sequence counts as idle.
  struct Options {
    size_t instance_count = 1;
    size_t slots_per_instance = 1;
    uint64_t idle_ns = 0;
  };
  // Requests that must not run; the caller completes them outside its lock.
  using Refused = std::vector<core::RequestPtr>;

  explicit SequenceTable(const Options& options);

  // Returns the sequence that a request with this id and start flag belongs to; a new one if it
  // starts one. Null if there is none and it does not start one.
  Sequence* Find(const core::CorrelationId& id, bool is_start);
  // Returns a new sequence that no other request can name.
  Sequence& FindUnnamed();
  // Lets `request` wait in `sequence`; after its END flag no request can join any more.
  void Admit(Sequence& sequence, core::RequestPtr request, uint64_t now_ns);
  // Takes the first request of a ready sequence, to be executed now.
  core::RequestPtr Dispatch(Sequence& sequence);
  // Takes back a dispatched request, which waits behind the others of its sequence, but in front of
  // a request that starts it again.
  void PutBack(Sequence& sequence, core::RequestPtr request, uint64_t now_ns);
  // Records that `request`, if it is the one in flight, is no longer with a backend. Ignores any
  // other.
  void OnReleased(Sequence& sequence, core::Request& request, uint64_t now_ns);
  // Records that a request of `sequence`, dispatched or refused, is gone with all of its responses.
  // The last one of a closed sequence frees the slot, and `sequence` is invalid afterwards.
  void OnGone(Sequence& sequence, uint64_t now_ns);
  // Lets no more requests join.
  void Close(Sequence& sequence, uint64_t now_ns);
  // Called when the client of `request`, which waits, has cancelled it: moves it to `refused` with
  // everything that waits between the same START and the next. Closes the sequence, unless it was
  // started again meanwhile: later requests belong to another client.
  void Cancel(Sequence& sequence, core::Request& request, uint64_t now_ns, Refused& refused);
  // Closes the sequence and moves all of its waiting requests to `refused`.
  void Abort(Sequence& sequence, uint64_t now_ns, Refused& refused);

  // Closes sequences that were idle too long, and moves the requests of those whose time in the
  // backlog is over to `refused`.
  void Expire(uint64_t now_ns, Refused& refused);
  // Returns when Expire has something to do next.
  std::optional<uint64_t> NextExpiry() const;
  // Takes out everything that waits.
  void RefuseAll(uint64_t now_ns, Refused& refused);

  // -- Adding and removing instances. -- Adds the slots of `instance`, which go to the backlog
  // first. Does nothing if it has some.
  void AddInstance(size_t instance, uint64_t now_ns);
  // Lets no further sequence get a slot of `instance`; those that have one keep it to their end.
  void RetireInstance(size_t instance);
  // Whether no sequence has a slot of `instance`.
  bool IsUnused(size_t instance) const { return instances_[instance].used_slots == 0; }

  // -- For the strategies. -- One more than the highest number of an instance.
  size_t instance_count() const { return instances_.size(); }
  size_t slots_per_instance() const { return options_.slots_per_instance; }
  // Returns the number of a slot, which does not depend on other instances.
  size_t SlotOf(size_t instance, size_t position) const {
    return instance * options_.slots_per_instance + position;
  }
  size_t InstanceOf(size_t slot) const { return slot / options_.slots_per_instance; }
  // Returns null if the slot is free.
  Sequence* at(size_t instance, size_t position) const {
    return slots_[SlotOf(instance, position)];
  }
  // The first of the sequences that are ready on an instance.
  Sequence* first_ready(size_t instance) const { return instances_[instance].ready.head(); }
  size_t ready_count(size_t instance) const { return instances_[instance].ready.size(); }
  size_t ready_count() const { return ready_count_; }
  size_t waiting_count() const { return waiting_count_; }
  // Returns the time since when the oldest request waits; UINT64_MAX if there is none.
  uint64_t OldestNs() const;
  // The part of waiting_count whose sequences have no slot.
  size_t backlog_count() const { return backlog_count_; }
  size_t free_slot_count() const { return free_.size(); }
  // The number of sequences that hold slots, wait for one, or whose last responses are not gone.
  size_t sequence_count() const { return sequences_.size() - unused_.size(); }

  // Returns what it holds, and of each list the first `most`; all but the strategy.
  core::SequencesReading Read(size_t most, uint64_t now_ns) const;

 private:
  // Hashes a correlation id, which is a number or a text.
  struct IdHash {
    size_t operator()(const core::CorrelationId& id) const {
      return std::hash<core::CorrelationId>()(id);
    }
  };
  // The slots of one instance.
  struct Instance {
    base::LinkedList<Sequence, &Sequence::ready_links_> ready;  // whose next request may run
    size_t used_slots = 0;
    bool gets_sequences = false;
  };

  // The rank of a free slot: the lowest is taken first. All instances fill evenly.
  static uint64_t Rank(size_t instance, size_t position) {
    return static_cast<uint64_t>(position) << 32 | instance;
  }
  uint64_t RankOf(uint32_t slot) const {
    return Rank(InstanceOf(slot), slot % options_.slots_per_instance);
  }
  // Returns the slot that another sequence of the same id gets after `earlier`; kNoSlot if it is to
  // have one of its own.
  uint32_t SlotToInherit(const Sequence& earlier) const;
  static core::SequenceReading ReadOne(const Sequence& sequence, uint64_t now_ns);
  void SetSlot(uint32_t slot, Sequence* sequence);
  Sequence& Make();
  void Place(Sequence& sequence);
  void Name(Sequence& sequence, const core::CorrelationId& id);
  // Adds `request` in front of `next`; null: behind all.
  void AddWaiting(Sequence& sequence, core::Request* next, core::RequestPtr request,
                  uint64_t now_ns);
  core::RequestPtr RemoveWaiting(Sequence& sequence, core::Request& request);
  // Updates the lists of ready and idle sequences.
  void Update(Sequence& sequence, uint64_t now_ns);
  void SetReady(Sequence& sequence, bool is_ready, uint64_t now_ns);
  void SetIdle(Sequence& sequence, bool is_idle, uint64_t now_ns);
  void LeaveBacklog(Sequence& sequence);
  // Accounts for a request that has waited since `since_ns`.
  void ShortenExpiry(Sequence& sequence, const core::Request& request, uint64_t since_ns);
  // Accounts for all waiting requests of a sequence in the backlog.
  void FindExpiry(Sequence& sequence, uint64_t now_ns);
  // Recomputes the expiry after requests have left the sequence.
  void RestoreExpiry(Sequence& sequence, uint64_t now_ns);
  void RetireIfOver(Sequence& sequence, uint64_t now_ns);
  void Forget(Sequence& sequence);
  void GiveSlot(uint32_t slot, uint64_t now_ns);

  const Options options_;
  std::vector<Sequence*> slots_;
  // Ranks of free slots, lowest first.
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> free_;
  std::vector<Instance> instances_;
  std::unordered_map<core::CorrelationId, Sequence*, IdHash> named_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> unused_;
  // In the order in which they became idle, and so of their expiry.
  base::LinkedList<Sequence, &Sequence::idle_links_> idle_;
  base::LinkedList<Sequence, &Sequence::backlog_links_> backlog_;
  std::set<std::pair<uint64_t, Sequence*>> expiries_;  // of backlogged sequences
  size_t ready_count_ = 0;
  size_t waiting_count_ = 0;
  size_t backlog_count_ = 0;
};

}  // namespace nereid::schedule
