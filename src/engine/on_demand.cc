// SPDX-License-Identifier: Apache-2.0
#include "engine/on_demand.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "engine/demand_errors.h"

namespace nereid::engine {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

// How often models without requests are looked for.
constexpr seconds kTidyInterval{1};
// How soon a load is tried again that waits until other models are idle: nothing tells when they
// are.
constexpr milliseconds kBlockedInterval{20};
// How often room is planned again because a model that was to go has become busy.
constexpr int kMaxPlans = 4;
// Threads that pass models on to requests; these then parse and submit.
constexpr size_t kNoticeThreads = 4;

base::TimePoint Now() { return std::chrono::steady_clock::now(); }

// The time of timers in so long.
uint64_t TimerTimeIn(milliseconds time) {
  return base::NowNs() + static_cast<uint64_t>(duration_cast<base::nanoseconds>(time).count());
}

EvictionOptions PolicyOf(const OnDemandOptions& options, size_t kinds) {
  EvictionOptions policy{.min_stay = options.min_stay, .idle_limit = options.idle_unload};
  policy.budgets.assign(kinds, options.gpu_memory_budget);
  policy.budgets.front() = options.memory_budget;
  return policy;
}

double Seconds(base::TimePoint from, base::TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

base::Status Stopping() { return base::UnavailableError("Server exiting"); }

}  // namespace

OnDemand::OnDemand(DemandHost& host, base::Timers& timers, OnDemandOptions options)
    : host_(host),
      options_(std::move(options)),
      kinds_(host.MemoryKinds()),
      failures_(options_.failure_pause),
      policy_(PolicyOf(options_, kinds_.size())),
      notices_("demand", kNoticeThreads),
      timer_(timers, [this] { OnTimer(); }),
      thread_("on-demand", [this] { Run(); }) {
  base::MutexLock lock(mutex_);
  for (const std::string& name : options_.pinned) policy_.Pin(name);
}

OnDemand::~OnDemand() {
  Stop(Now());
  thread_.Join();
}

void OnDemand::Refresh() {
  std::optional<std::set<std::string>> names = host_.ListModels();
  if (!names) return;
  const ModelActivities loaded = host_.Observe();
  std::vector<std::string> gone;
  {
    base::MutexLock lock(mutex_);
    for (const std::string& name : known_) {
      if (names->contains(name)) continue;
      failures_.Forget(name);
      // What waits to be loaded stays known until the next time.
      if (pending_.contains(name)) {
        names->insert(name);
      } else if (!loaded.contains(name)) {
        gone.push_back(name);
      }
    }
    policy_.RetainOnly(*names);
    known_ = {names->begin(), names->end()};
  }
  // Otherwise a failed load would be told of for ever. Only a server that stops refuses.
  for (const std::string& name : gone) static_cast<void>(host_.Unload(name, false));
}

bool OnDemand::IsKnown(std::string_view name) const {
  base::MutexLock lock(mutex_);
  return known_.contains(name);
}

bool OnDemand::IsServable(std::string_view name) const {
  base::MutexLock lock(mutex_);
  return known_.contains(name) && !failures_.Contains(name) && !is_stopping_;
}

// --- Requests ---

void OnDemand::Await(std::string_view name, std::string_view version, Waiter done) {
  // The model may have been loaded since the caller looked.
  if (const core::ModelHandle loaded = host_.FindAny(name)) {
    // The pin keeps the model, so an error is about the version, or the model's rules for versions.
    return done(host_.Find(name, version));
  }
  base::Status refusal;
  {
    base::MutexLock lock(mutex_);
    const base::TimePoint now = Now();
    // While a load is in progress, its result counts.
    std::optional<base::Status> failure;
    if (!pending_.contains(std::string(name))) failure = failures_.TooSoon(name, now);
    if (is_stopping_) {
      refusal = Stopping();
    } else if (!known_.contains(name)) {
      refusal =
          base::NotFoundError(fmt::format("Request for unknown model: '{}' is not found", name));
    } else if (failure) {
      refusal = *std::move(failure);
    } else if (counts_.waiting >= options_.most_waiting) {
      refusal = TooManyWait(name, options_.most_waiting);
    } else {
      PendingModel& pending = QueueLocked(std::string(name));
      pending.waiting.push_back({std::string(version), now, std::move(done)});
      ++counts_.waiting;
      if (counts_.waiting == 1) timer_.ArmAt(TimerTimeIn(options_.load_wait));
      return;
    }
  }
  done(std::move(refusal));
}

PendingModel& OnDemand::QueueLocked(const std::string& name) {
  const auto [place, is_new] = pending_.try_emplace(name);
  if (is_new) queue_.push_back(name);
  changed_.NotifyAll();
  return place->second;
}

void OnDemand::NoteWaitLocked(const WaitingRequest& waiting, base::TimePoint now) {
  --counts_.waiting;
  ++counts_.waits;
  counts_.wait_seconds += Seconds(waiting.since, now);
}

DemandOutcomes OnDemand::TakeWaitingLocked(const std::string& name, const base::Status& status) {
  DemandOutcomes outcomes;
  const auto pending = pending_.find(name);
  if (pending == pending_.end()) return outcomes;
  const base::TimePoint now = Now();
  for (WaitingRequest& waiting : pending->second.waiting) {
    NoteWaitLocked(waiting, now);
    outcomes.push_back({name, std::move(waiting.version), status, std::move(waiting.done)});
  }
  pending->second.waiting.clear();
  return outcomes;
}

void OnDemand::TellLocked(DemandOrder& order, const base::Status& status) {
  order.status = status;
  order.is_done = true;
  changed_.NotifyAll();
}

DemandOutcomes OnDemand::FinishLocked(const std::string& name, const base::Status& status) {
  DemandOutcomes outcomes = TakeWaitingLocked(name, status);
  if (const auto pending = pending_.find(name); pending != pending_.end()) {
    for (DemandOrder* const order : pending->second.orders) TellLocked(*order, status);
    pending_.erase(pending);
    std::erase(queue_, name);
  }
  return outcomes;
}

void OnDemand::Post(DemandOutcomes outcomes) {
  for (DemandOutcome& outcome : outcomes) {
    auto found = std::make_unique<base::Result<core::ModelHandle>>(
        outcome.status.ok() ? host_.Find(outcome.name, outcome.version) : outcome.status);
    notices_.Post([done = std::move(outcome.done), found = std::move(found)]() mutable {
      done(std::move(*found));
    });
  }
}

void OnDemand::OnTimer() {
  DemandOutcomes outcomes;
  {
    base::MutexLock lock(mutex_);
    const base::TimePoint now = Now();
    base::TimePoint next = base::TimePoint::max();
    for (auto& [name, pending] : pending_) {
      // The oldest are in front.
      std::list<WaitingRequest>& waiting = pending.waiting;
      while (!waiting.empty() && now - waiting.front().since >= options_.load_wait) {
        NoteWaitLocked(waiting.front(), now);
        ++counts_.timeouts;
        outcomes.push_back({name, std::move(waiting.front().version),
                            TimeoutLocked(name, pending, now), std::move(waiting.front().done)});
        waiting.pop_front();
      }
      if (!waiting.empty()) next = std::min(next, waiting.front().since + options_.load_wait);
    }
    if (next != base::TimePoint::max()) {
      timer_.ArmAt(static_cast<uint64_t>(next.time_since_epoch().count()));
    }
  }
  Post(std::move(outcomes));
}

base::Status OnDemand::TimeoutLocked(const std::string& name, const PendingModel& pending,
                                     base::TimePoint now) const {
  const base::nanoseconds waited = now - pending.waiting.front().since;
  if (pending.is_blocked) return NoRoomYet(name, Kind(pending.lacking), waited, options_.min_stay);
  base::nanoseconds left{0};
  if (pending.is_loading) left = policy_.KnownDuration(name) - (now - pending.loading_since);
  return StillNotLoaded(name, pending.is_loading, waited, left);
}

base::Status OnDemand::NeverFitsLocked(const std::string& name, size_t kind) const {
  const MemoryBytes bytes = policy_.KnownBytes(name).value_or(MemoryBytes(kinds_.size()));
  return NeverFits(name, Kind(kind), bytes[kind], policy_.options().budgets[kind]);
}

// --- Explicit operations ---

base::Status OnDemand::Load(const std::string& name, const service::LoadOptions& options) {
  DemandOrder order{.options = &options};
  base::MutexLock lock(mutex_);
  if (is_stopping_) return Stopping();
  failures_.Forget(name);
  policy_.Distrust(name);
  const base::TimePoint deadline = Now() + options_.load_wait;
  QueueLocked(name).orders.push_back(&order);
  while (!order.is_done) {
    const auto pending = pending_.find(name);
    const bool is_blocked = pending != pending_.end() && pending->second.is_blocked;
    if (!is_blocked || Now() < deadline) {
      changed_.WaitUntil(mutex_, Now() + kTidyInterval);
      continue;
    }
    std::erase(pending->second.orders, &order);
    return NoRoomYet(name, Kind(pending->second.lacking), options_.load_wait, options_.min_stay);
  }
  return order.status;
}

base::Status OnDemand::Unload(const std::string& name, bool with_parts) {
  {
    base::MutexLock lock(mutex_);
    // Noted before, because a load that it ends may be settled first. Not for any name that clients
    // think of.
    if (known_.contains(name)) failures_.NoteUnload(name);
  }
  NEREID_RETURN_IF_ERROR(host_.Unload(name, with_parts));
  base::MutexLock lock(mutex_);
  policy_.NoteUnloaded(name);
  ++unloads_;
  failures_.Forget(name);
  return base::OkStatus();
}

bool OnDemand::Stop(base::TimePoint deadline) {
  DemandOutcomes outcomes;
  {
    base::MutexLock lock(mutex_);
    is_stopping_ = true;
    while (!queue_.empty()) {
      DemandOutcomes some = FinishLocked(std::string(queue_.front()), Stopping());
      std::ranges::move(some, std::back_inserter(outcomes));
    }
    changed_.NotifyAll();
  }
  Post(std::move(outcomes));
  const bool is_idle = notices_.WaitUntilIdle(deadline);
  base::MutexLock lock(mutex_);
  while (!has_ended_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  return has_ended_ && is_idle;
}

OnDemandCounts OnDemand::Counts() const {
  base::MutexLock lock(mutex_);
  OnDemandCounts counts = counts_;
  counts.known = known_.size();
  counts.loaded = policy_.loaded_count();
  for (const auto& [name, pending] : pending_) counts.orders += pending.orders.size();
  counts.kinds = kinds_;
  counts.used = policy_.used();
  counts.budgets = policy_.options().budgets;
  return counts;
}

// --- The thread ---

void OnDemand::Run() {
  base::TimePoint tidied = Now();
  base::MutexLock lock(mutex_);
  while (!is_stopping_) {
    mutex_.Unlock();
    const bool has_progress = ServeQueue();
    if (Now() - tidied >= kTidyInterval) {
      Tidy({});
      tidied = Now();
    }
    mutex_.Lock();
    if (is_stopping_ || has_progress) continue;
    // While models wait for memory, others may become idle.
    changed_.WaitUntil(mutex_, queue_.empty() ? tidied + kTidyInterval : Now() + kBlockedInterval);
  }
  has_ended_ = true;
  changed_.NotifyAll();
}

bool OnDemand::ServeQueue() {
  std::vector<std::string> names;
  {
    base::MutexLock lock(mutex_);
    names.assign(queue_.begin(), queue_.end());
  }
  bool has_progress = false;
  // Once a model waits for memory, later ones must not take what becomes free.
  bool may_evict = true;
  for (const std::string& name : names) {
    const bool is_done = Serve(name, may_evict) == Progress::kDone;
    has_progress |= is_done;
    may_evict &= is_done;
  }
  return has_progress;
}

OnDemand::Progress OnDemand::Serve(const std::string& name, bool may_evict) {
  DemandOutcomes outcomes;
  for (int i = 0; i < kMaxPlans; ++i) {
    const std::set<std::string> busy = Observe();
    const auto is_loaded = static_cast<bool>(host_.FindAny(name));
    RoomPlan plan;
    {
      base::MutexLock lock(mutex_);
      const auto pending = pending_.find(name);
      if (pending == pending_.end()) return Progress::kDone;
      if (pending->second.orders.empty() && (is_loaded || pending->second.waiting.empty())) {
        outcomes = FinishLocked(name, base::OkStatus());
        break;
      }
      plan = policy_.MakeRoom(name, busy, Now());
      // Somebody asks to try it again: its files may be smaller now.
      const bool is_asked = !pending->second.orders.empty();
      if (plan.outcome == RoomPlan::Outcome::kNever && is_asked) plan = {};
      if (plan.outcome == RoomPlan::Outcome::kNever) {
        counts_.refusals += pending->second.waiting.size();
        outcomes = FinishLocked(name, NeverFitsLocked(name, plan.lacking));
        break;
      }
      pending->second.lacking = plan.lacking;
      pending->second.is_blocked =
          plan.outcome == RoomPlan::Outcome::kNotNow || (!may_evict && !plan.victims.empty());
      if (pending->second.is_blocked) return Progress::kBlocked;
    }
    if (!Evict(plan.victims, &OnDemandCounts::memory_evictions)) continue;
    LoadNow(name);
    return Progress::kDone;
  }
  if (outcomes.empty()) {
    base::MutexLock lock(mutex_);
    if (pending_.contains(name)) return Progress::kBlocked;
  }
  Post(std::move(outcomes));
  return Progress::kDone;
}

bool OnDemand::Evict(const std::vector<std::string>& victims, uint64_t OnDemandCounts::* counter) {
  bool all_went = true;
  for (const std::string& victim : victims) {
    bool is_held = false;
    {
      base::MutexLock lock(mutex_);
      is_held = policy_.IsHeld(victim);  // by an ensemble that should have gone before it
    }
    if (is_held || !host_.UnloadIdle(victim)) {
      all_went = false;
      continue;
    }
    base::MutexLock lock(mutex_);
    policy_.NoteUnloaded(victim);
    ++(counts_.*counter);
  }
  return all_went;
}

void OnDemand::LoadNow(const std::string& name) {
  DemandOrder* order = nullptr;
  {
    base::MutexLock lock(mutex_);
    const auto pending = pending_.find(name);
    if (pending == pending_.end()) return;  // the server stops
    pending->second.is_loading = true;
    pending->second.loading_since = Now();
    failures_.NoteBegin();
    // Another order may come with other options, and is carried out by a load of its own.
    std::deque<DemandOrder*>& orders = pending->second.orders;
    if (!orders.empty()) {
      order = orders.front();
      orders.pop_front();
    }
  }
  const service::LoadOptions options = order == nullptr ? service::LoadOptions() : *order->options;
  const MeasuredLoad load = LoadMeasured(host_, name, options);
  const base::Status told = Settle(name, load);
  if (load.status.ok() && !told.ok()) {
    NEREID_LOG(kWarning, "{}", told.message());
    // Requests may have found it meanwhile. They end; later ones are refused.
    static_cast<void>(Unload(name, /*with_parts=*/true));
  }
  const bool is_overridden = host_.IsOverridden(name);
  DemandOutcomes outcomes;
  {
    base::MutexLock lock(mutex_);
    if (told.ok()) policy_.PinWhileLoaded(name, is_overridden);
    if (order != nullptr) TellLocked(*order, load.status.ok() ? told : load.status);
    outcomes = TakeWaitingLocked(name, told);
    const auto pending = pending_.find(name);
    if (pending != pending_.end()) {
      pending->second.is_loading = false;
      if (pending->second.orders.empty()) FinishLocked(name, told);
    }
  }
  Post(std::move(outcomes));
  Tidy(name);
}

base::Status OnDemand::Settle(const std::string& name, const MeasuredLoad& load) {
  // Of an ensemble that failed, some parts may be loaded.
  if (!load.status.ok()) Observe(load.Grown());
  const std::set<std::string> parts = host_.PartsOf(name);
  uint64_t waiting = 0;
  {
    base::MutexLock lock(mutex_);
    const base::TimePoint now = Now();
    counts_.load_seconds += std::chrono::duration<double>(load.took).count();
    if (!load.status.ok()) {
      ++counts_.failed_loads;
      base::Status told = LoadFailed(name, load.status);
      return known_.contains(name) ? failures_.Note(name, std::move(told), now, parts) : told;
    }
    ++counts_.loads;
    failures_.Forget(name);
    known_.insert(name);
    policy_.NoteLoaded(name, load.BytesOf(policy_.KnownBytes(name), policy_.IsLoaded(name)),
                       load.took, now);
    // The requests that wait will be in the statistics, too.
    const auto pending = pending_.find(name);
    if (pending != pending_.end()) waiting = pending->second.waiting.size();
    policy_.NoteUses(name, std::max<uint64_t>(waiting, 1), now);
    use_.NoteLoaded(name, waiting);
  }
  const std::set<std::string> busy = Observe();
  base::MutexLock lock(mutex_);
  const RoomPlan plan = policy_.MakeRoom(name, busy, Now());
  if (plan.outcome != RoomPlan::Outcome::kNever) return base::OkStatus();
  counts_.refusals += waiting;
  return NeverFitsLocked(name, plan.lacking);
}

std::set<std::string> OnDemand::Observe(const MemoryBytes& unclaimed) {
  while (true) {
    uint64_t unloads = 0;
    {
      base::MutexLock lock(mutex_);
      unloads = unloads_;
    }
    const ModelActivities activities = host_.Observe();
    base::MutexLock lock(mutex_);
    // A model that was unloaded meanwhile must not be taken for one that nobody knew of.
    if (unloads_ == unloads) return use_.Update(activities, policy_, Now(), unclaimed);
  }
}

void OnDemand::Tidy(const std::string& newest) {
  const std::set<std::string> busy = Observe();
  std::vector<std::string> idle;
  std::vector<std::string> excess;
  {
    base::MutexLock lock(mutex_);
    idle = policy_.FindIdle(busy, Now());
    excess = policy_.FindExcess(newest, busy, Now());
  }
  Evict(idle, &OnDemandCounts::idle_unloads);
  if (idle.empty()) Evict(excess, &OnDemandCounts::memory_evictions);
}

}  // namespace nereid::engine
