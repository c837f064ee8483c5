// SPDX-License-Identifier: Apache-2.0
#include "base/watchdog.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/log.h"
#include "base/stack_trace.h"

namespace nereid::base {
namespace {

using std::chrono::nanoseconds;

// A limit is looked at so often, so that an alarm is late by a quarter of the limit at most.
constexpr int kLooksPerLimit = 4;
// How long it may take at most until something is found to be stuck, beyond its limit, or to go on.
constexpr nanoseconds kMaxPeriod = std::chrono::seconds(5);

// A look that comes much too late counts as one that is a little late.
constexpr int kLateness = 2;

nanoseconds PeriodFor(std::chrono::seconds limit) {
  return std::min<nanoseconds>(nanoseconds(limit) / kLooksPerLimit, kMaxPeriod);
}

}  // namespace

std::string Watchdog::Stuck::Describe() const {
  return fmt::format("the {} '{}' has not got on for {} s", kind, name, time.count());
}

Watchdog::~Watchdog() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    changed_.NotifyAll();
  }
  thread_.Join();
}

Watchdog::Watch Watchdog::Add(Watched watched) {
  const std::chrono::seconds limit = watched.limit.value_or(limit_);
  MutexLock lock(mutex_);
  if (limit.count() > 0) {
    kinds_.try_emplace(std::string(watched.kind));
    const nanoseconds period = PeriodFor(limit);
    if (period_.count() == 0) {
      PrepareStackTraces();
      period_ = period;
      thread_ = Thread("watchdog", [this] { Run(); });
    } else if (period < period_) {
      period_ = period;
      changed_.NotifyAll();
    }
  }
  const uint64_t count = watched.heartbeat.count();
  entries_.push_back({.watched = std::move(watched), .limit = limit, .count = count});
  return {*this, std::prev(entries_.end())};
}

void Watchdog::Remove(Entries::iterator entry) {
  MutexLock lock(mutex_);
  if (entry->is_stuck) {
    --kinds_[std::string(entry->watched.kind)].stuck;
    --stuck_count_;
  }
  entries_.erase(entry);
}

void Watchdog::Run() {
  TimePoint last = std::chrono::steady_clock::now();
  mutex_.Lock();
  while (!is_ending_) {
    if (changed_.WaitUntil(mutex_, last + period_)) continue;
    const nanoseconds longest = period_ * kLateness;
    mutex_.Unlock();
    const TimePoint now = std::chrono::steady_clock::now();
    Look(std::min<nanoseconds>(now - last, longest));
    last = std::chrono::steady_clock::now();
    mutex_.Lock();
  }
  mutex_.Unlock();
}

void Watchdog::Look(nanoseconds passed) {
  std::vector<Event> events;
  {
    MutexLock lock(mutex_);
    for (Entry& entry : entries_) {
      if (auto event = Look(entry, passed)) events.push_back(*std::move(event));
    }
  }
  for (const Event& event : events) Report(event);
}

std::optional<Watchdog::Event> Watchdog::Look(Entry& entry, nanoseconds passed) {
  const Heartbeat& heartbeat = entry.watched.heartbeat;
  const uint64_t count = heartbeat.count();
  const bool got_on = count != entry.count || count % 2 == 0;
  if (!got_on) {
    entry.same_for += passed;
    if (entry.is_stuck || entry.limit.count() == 0 || entry.same_for < entry.limit) return {};
    entry.is_stuck = true;
    ++stuck_count_;
    KindCounts& counts = kinds_[std::string(entry.watched.kind)];
    ++counts.stuck;
    ++counts.alarms;
    return Event{.what = ToStuck(entry), .thread = heartbeat.thread()};
  }
  std::optional<Event> event;
  if (entry.is_stuck) {
    event = Event{.what = ToStuck(entry), .thread = heartbeat.thread(), .is_over = true};
    entry.is_stuck = false;
    --stuck_count_;
    --kinds_[std::string(entry.watched.kind)].stuck;
  }
  entry.count = count;
  entry.same_for = nanoseconds(0);
  return event;
}

void Watchdog::Report(const Event& event) const {
  const Stuck& what = event.what;
  if (event.is_over) {
    NEREID_LOG(kWarning, "watchdog: the {} '{}' gets on again, after {} s or more", what.kind,
               what.name, what.time.count());
    return;
  }
  std::vector<std::string> lines = {
      fmt::format("watchdog: {}; thread {} is at:", what.Describe(), event.thread)};
  const StackTrace stack = ReadStackOf(event.thread);
  for (std::string& line : DescribeStack(stack)) lines.push_back("    " + std::move(line));
  if (stack.size == 0) lines.emplace_back("    (its stack could not be read)");
  const std::string explanation = explain_ ? explain_(event.thread) : std::string();
  if (!explanation.empty()) lines.push_back(explanation);
  NEREID_LOG_LINES(kError, lines);
}

Watchdog::Stuck Watchdog::ToStuck(const Entry& entry) {
  return {.kind = std::string(entry.watched.kind),
          .name = entry.watched.name,
          .time = std::chrono::duration_cast<std::chrono::seconds>(entry.same_for),
          .owner = entry.watched.owner};
}

std::vector<Watchdog::Stuck> Watchdog::AllStuck() const {
  std::vector<Stuck> all;
  if (!has_stuck()) return all;
  MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.is_stuck) all.push_back(ToStuck(entry));
  }
  return all;
}

Watchdog::Summary Watchdog::Summarize(const void* owner) const {
  if (!has_stuck()) return {};
  std::set<const void*> parts;
  std::set<const void*> stuck;
  MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.watched.owner != owner) continue;
    parts.insert(entry.watched.part);
    if (entry.is_stuck) stuck.insert(entry.watched.part);
  }
  return {.parts = parts.size(), .stuck_parts = stuck.size()};
}

std::map<std::string, Watchdog::KindCounts> Watchdog::Counts() const {
  MutexLock lock(mutex_);
  return kinds_;
}

}  // namespace nereid::base
