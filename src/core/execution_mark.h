// SPDX-License-Identifier: Apache-2.0
// What plug-ins are executing at the moment, for those who must say so when something has gone
// wrong: the report of a crash, which runs in a signal handler, and the watchdog, whose heartbeat
// of each instance this is. Marking an execution takes a few instructions.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/heartbeat.h"
#include "base/memory_reader.h"
#include "core/request.h"

namespace nereid::core {

// The mark of one instance, or of a model that is being loaded. Confined to the thread that
// executes. Any thread may read all marks.
class ExecutionMark {
 public:
  // What a plug-in is called for.
  enum class Purpose : uint8_t { kExecuting, kLoading };

  // Names are cut if they are very long.
  ExecutionMark(Purpose purpose, std::string_view model, int64_t version,
                std::string_view instance = {});
  ~ExecutionMark();
  ExecutionMark(const ExecutionMark&) = delete;
  ExecutionMark& operator=(const ExecutionMark&) = delete;

  // Begins a call with these requests, which are there until it ends.
  void Begin(Request* const* requests, size_t count) {
    slot_.requests.store(requests, std::memory_order_relaxed);  // for the same thread's handler
    slot_.request_count.store(count, std::memory_order_relaxed);
    slot_.heartbeat.Start();
  }
  // The work goes on, on this thread.
  void Continue() { slot_.heartbeat.Beat(); }
  void End() { slot_.heartbeat.Rest(); }

  // Marks a call for a scope.
  class Call {
   public:
    explicit Call(ExecutionMark& mark, Request* const* requests = nullptr, size_t count = 0)
        : mark_(mark) {
      mark_.Begin(requests, count);
    }
    ~Call() { mark_.End(); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    ExecutionMark& mark_;
  };

  // Working while a call is in progress.
  const base::Heartbeat& heartbeat() const { return slot_.heartbeat; }

  // -- For readers: the marks of the process. --

  // The longest name; others are cut.
  static constexpr size_t kMaxName = 128;
  struct Name {
    std::array<char, kMaxName> text;
    size_t size = 0;

    void Set(std::string_view name);
    std::string_view view() const { return {text.data(), size}; }
  };
  // A mark's data. It is reused but never freed, because a signal handler may read it at any time.
  struct Slot {
    base::Heartbeat heartbeat;
    std::atomic<Request* const*> requests{nullptr};
    std::atomic<size_t> request_count{0};
    std::atomic<bool> is_used{false};
    Purpose purpose = Purpose::kExecuting;
    Name model;
    Name instance;
    int64_t version = 0;
    Slot* next = nullptr;       // constant once the slot is in the list
    Slot* next_free = nullptr;  // of those that are not used
  };
  // The first of all slots, for a signal handler; those that are not used, or at rest, mean
  // nothing.
  static const Slot* FirstSlot();

 private:
  static Slot& TakeSlot(Purpose purpose, std::string_view model, int64_t version,
                        std::string_view instance);

  Slot& slot_;
};

// Writes what is known of a call, without a zero byte, and returns the length: "executing model 'm'
// version 1, instance 'm_0', requests: 'a', 'b'". Safe in a signal handler; the requests may be
// gone.
inline constexpr size_t kExecutionTextSize = 1024;
size_t DescribeExecution(const ExecutionMark::Slot& slot, const base::MemoryReader& reader,
                         std::span<char, kExecutionTextSize> text);

// Returns what `thread` is executing, in a line; empty if nothing.
std::string DescribeExecutionsOf(pid_t thread);

}  // namespace nereid::core
