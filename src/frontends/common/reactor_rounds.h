// SPDX-License-Identifier: Apache-2.0
// Reactors as schedulers see them. One ReactorRounds belongs to one reactor and turns its rounds
// into core::RoundExecutor; RoundExecutors owns one for each reactor of a pool, shared by all
// frontends so that requests of both protocols meet in the same round.
#pragma once

#include <memory>
#include <vector>

#include "core/round_executor.h"
#include "net/reactor.h"

namespace nereid::common {

// Confined to its reactor's thread. Allocates nothing in steady state.
class ReactorRounds final : public core::RoundExecutor, private net::Task {
 public:
  explicit ReactorRounds(net::Reactor& reactor) : reactor_(reactor) {}

  // `task` runs once the events that are ready now have been handled. A task that is scheduled
  // twice before it runs is run twice.
  void RunAfterRound(core::RoundTask& task) override;
  bool HasMoreEvents() const override { return reactor_.HasMoreEvents(); }

 private:
  void Run() override;

  net::Reactor& reactor_;
  std::vector<core::RoundTask*> waiting_;
  std::vector<core::RoundTask*> running_;  // kept for its capacity
};

// Immutable; thread-safe. Outlives every request that was received on the pool, and is destroyed
// before it.
class RoundExecutors {
 public:
  explicit RoundExecutors(net::ReactorPool& pool);
  // Waits for the rounds that are running. Not on a reactor's thread.
  ~RoundExecutors();
  RoundExecutors(const RoundExecutors&) = delete;
  RoundExecutors& operator=(const RoundExecutors&) = delete;

  // Returns the executor of the current reactor; null on other threads, which have no rounds.
  core::RoundExecutor* Here() const {
    const net::Reactor* const reactor = net::Reactor::Current();
    return reactor != nullptr ? rounds_[reactor->index()].get() : nullptr;
  }

 private:
  net::ReactorPool& pool_;
  std::vector<std::unique_ptr<ReactorRounds>> rounds_;
};

}  // namespace nereid::common
