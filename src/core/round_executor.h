// SPDX-License-Identifier: Apache-2.0
// A reactor as schedulers see it: a thread that handles events in rounds. Work given to it runs
// once the currently ready events have been handled, so that requests that arrived together are
// scheduled together.
#pragma once

namespace nereid::core {

// Work that is its own list node, so that scheduling it allocates nothing. It must outlive its run.
class RoundTask {
 public:
  virtual ~RoundTask() = default;
  virtual void RunRound() = 0;
};

// Confined to its thread: call it only there.
class RoundExecutor {
 public:
  virtual ~RoundExecutor() = default;
  virtual void RunAfterRound(RoundTask& task) = 0;
  // Whether there are events that this thread has not handled yet.
  virtual bool HasMoreEvents() const = 0;
};

}  // namespace nereid::core
