// SPDX-License-Identifier: Apache-2.0
// A reactor, as schedulers see it: a thread that handles events in rounds. Work given to it runs
// once the events that are ready now have been handled, so requests that arrived together are seen
// together.
#pragma once

namespace nereid::core {

// Work that is its own list node: scheduling it allocates nothing. It must outlive its run.
class RoundTask {
 public:
  virtual ~RoundTask() = default;
  virtual void RunRound() = 0;
};

// Confined to its thread: call only from there.
class RoundExecutor {
 public:
  virtual ~RoundExecutor() = default;
  virtual void RunAfterRound(RoundTask& task) = 0;
  // Whether more has arrived that this thread has not looked at yet.
  virtual bool HasMoreEvents() const = 0;
};

}  // namespace nereid::core
