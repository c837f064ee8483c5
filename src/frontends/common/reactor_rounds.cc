// SPDX-License-Identifier: Apache-2.0
#include "common/reactor_rounds.h"

#include <future>

namespace nereid::common {

void ReactorRounds::RunAfterRound(core::RoundTask& task) {
  waiting_.push_back(&task);
  if (waiting_.size() == 1) reactor_.RunAfterRound(static_cast<net::Task&>(*this));
}

void ReactorRounds::Run() {
  // A task may schedule itself again, for the next round.
  running_.swap(waiting_);
  for (core::RoundTask* task : running_) task->RunRound();
  running_.clear();
}

RoundExecutors::RoundExecutors(net::ReactorPool& pool) : pool_(pool) {
  for (size_t i = 0; i < pool.size(); ++i) {
    rounds_.push_back(std::make_unique<ReactorRounds>(pool.reactor(i)));
  }
}

// The last request may end while its reactor is still leaving the round that completed it.
RoundExecutors::~RoundExecutors() {
  for (size_t i = 0; i < pool_.size(); ++i) {
    std::promise<void> turned;
    pool_.reactor(i).Post([&turned] { turned.set_value(); });
    turned.get_future().wait();
  }
}

}  // namespace nereid::common
