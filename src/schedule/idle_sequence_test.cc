// SPDX-License-Identifier: Apache-2.0
// Like idle_instance_test.cc, for sequences: whatever arrives, ends, expires or is cancelled, no
// request that may run waits while an instance is idle. The rules for what may run are stated
// here for three kinds of models for which they are simple.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "schedule/sequence_scheduler.h"
#include "schedule/testing/context.h"
#include "schedule/testing/sequences.h"

namespace nereid::schedule {
namespace {

constexpr uint64_t kHourUs = UINT64_C(3'600'000'000);

// A request that is not executed yet.
struct Waiting {
  uint64_t id = 0;
  int64_t width = 1;
};

struct Kind {
  std::string name;
  config::SequenceBatching batching;
  int32_t max_batch_size = 4;
  size_t instances = 1;
  uint64_t ids = 5;
  bool is_single = false;  // every sequence is one request
  // Returns whether the waiting requests, in the order of arrival, give an idle instance something
  // to run.
  std::function<bool(const std::vector<Waiting>&)> is_runnable;
};

// Returns the widths of the requests at the front of each sequence that waits.
std::map<uint64_t, int64_t> Fronts(const std::vector<Waiting>& waiting) {
  std::map<uint64_t, int64_t> fronts;
  for (const Waiting& w : waiting) fronts.emplace(w.id, w.width);
  return fronts;
}

// S-25: three run, or two that do not match; there are more than enough slots.
Kind PreferredSizes() {
  Kind kind{.name = "PreferredSizes", .batching = AllControls()};
  kind.batching.strategy_choice =
      config::SequenceBatching::StrategyOldest{.max_candidate_sequences = 1000,
                                               .preferred_batch_size = {3},
                                               .max_queue_delay_microseconds = kHourUs};
  kind.is_runnable = [](const std::vector<Waiting>& waiting) {
    const auto fronts = Fronts(waiting);
    return fronts.size() >= 3 ||
           (fronts.size() == 2 && fronts.begin()->second != fronts.rbegin()->second);
  };
  return kind;
}

// S-20: three of the slots, of which there are more than enough.
Kind SlotUtilization() {
  Kind kind{.name = "SlotUtilization", .batching = AllControls(), .max_batch_size = 64};
  kind.batching.strategy_choice = config::SequenceBatching::StrategyDirect{
      .max_queue_delay_microseconds = kHourUs, .minimum_slot_utilization = 3.0F / 64};
  kind.is_runnable = [](const std::vector<Waiting>& waiting) {
    return Fronts(waiting).size() >= 3;
  };
  return kind;
}

// S-6: one slot on each of two instances.
Kind Backlog(bool is_direct) {
  Kind kind{.name = is_direct ? "DirectBacklog" : "OldestBacklog",
            .batching = AllControls(),
            .max_batch_size = is_direct ? 1 : 4,
            .instances = 2,
            .ids = 1'000'000,
            .is_single = true};
  if (!is_direct) {
    kind.batching.strategy_choice =
        config::SequenceBatching::StrategyOldest{.max_candidate_sequences = 1};
  }
  kind.is_runnable = [](const std::vector<Waiting>& waiting) { return !waiting.empty(); };
  return kind;
}

class IdleSequenceStorm : public testing::TestWithParam<Kind> {
 protected:
  struct Client final : core::ResponseSink {
    explicit Client(IdleSequenceStorm& test) : test(test) {}
    void Send(core::ResponsePtr /*response*/, bool /*is_final*/) override { test.Forget(*this); }

    IdleSequenceStorm& test;
    std::string number;
    // Guarded by the test's lock.
    Waiting waiting;
    core::RequestRef
        request;  // while it waits: a sequence continues when the last one of another is gone
    bool is_waiting = false;
  };

  ~IdleSequenceStorm() override {
    {
      base::MutexLock lock(mutex_);
      is_over_ = true;
      while (!running_.empty()) EndOne(0);
    }
    scheduler_.reset();
  }

  void Make(uint32_t seed) {
    random_.seed(seed);
    const Kind& kind = GetParam();
    model_ = MakeSequenceModel(
        {.max_batch_size = kind.max_batch_size, .batching = kind.batching, .dims = {-1}});
    std::vector<NewInstance> instances;
    for (size_t i = 0; i < kind.instances; ++i) {
      instances.emplace_back(std::make_unique<core::FakeInstance>(
          "instance_" + std::to_string(i), seed % 2 == 0,
          [this](std::span<core::RequestPtr> batch) { Execute(batch); }));
    }
    auto made = SequenceScheduler::Create(*model_, context_.Get(), {}, std::move(instances));
    ASSERT_TRUE(made.ok());
    scheduler_ = std::move(made).value();
  }

  size_t Below(size_t limit) { return random_() % limit; }

  void Forget(Client& client) {
    base::MutexLock lock(mutex_);
    client.is_waiting = false;
    client.request.Reset();
    changed_.NotifyAll();
  }
  void Execute(std::span<core::RequestPtr> batch) {
    std::promise<void> leave;
    std::future<void> left = leave.get_future();
    {
      base::MutexLock lock(mutex_);
      for (const core::RequestPtr& request : batch) {
        if (request->is_padding) continue;
        Client& client = *clients_[std::stoull(std::string(request->id))];
        client.is_waiting = false;
        client.request.Reset();
      }
      running_.push_back(&leave);
      ++executions_;
      changed_.NotifyAll();
      if (is_over_) EndOne(running_.size() - 1);
    }
    left.wait();
  }
  void EndOne(size_t index) NEREID_REQUIRES(mutex_) {
    std::promise<void>* const leave = running_[index];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
    leave->set_value();
  }

  void Submit() {
    const Kind& kind = GetParam();
    const uint64_t id = 1 + (kind.is_single ? clients_.size() : Below(kind.ids));
    uint32_t flags = 0;
    if (!open_[id]) flags |= core::kSequenceStart;
    if (kind.is_single || Below(4) == 0) flags |= core::kSequenceEnd;
    open_[id] = (flags & core::kSequenceEnd) == 0;
    const int64_t width = Below(4) == 0 ? 2 : 1;
    Client* client = nullptr;
    {
      base::MutexLock lock(mutex_);
      client = clients_.emplace_back(std::make_unique<Client>(*this)).get();
      client->number = std::to_string(clients_.size() - 1);
      client->waiting = {.id = id, .width = width};
    }
    core::RequestPtr request = MakeSequenceRequest(*model_, *client, id, flags, width);
    request->id = client->number;
    // The timeout counts in the backlog only, and ends the sequence, which the test does not
    // follow.
    if (kind.is_single && Below(3) == 0) request->timeout_us = 200 + Below(3000);
    {
      base::MutexLock lock(mutex_);
      client->request = core::RequestRef(*request);
      client->is_waiting = true;
    }
    scheduler_->Enqueue(std::move(request));
  }
  void CancelOne() {
    core::RequestRef chosen;
    {
      base::MutexLock lock(mutex_);
      std::vector<Client*> waiting;
      for (const auto& client : clients_) {
        if (client->is_waiting) waiting.push_back(client.get());
      }
      if (waiting.empty()) return;
      Client& client = *waiting[Below(waiting.size())];
      chosen = core::RequestRef(*client.request);
      // If the sequence continues after all, START does no harm.
      open_[client.waiting.id] = false;
    }
    chosen->Cancel();
    scheduler_->OnCancelled(*chosen);
  }
  void EndSome() {
    base::MutexLock lock(mutex_);
    if (!running_.empty()) EndOne(Below(running_.size()));
  }

  bool IsSettled() NEREID_REQUIRES(mutex_) {
    if (running_.size() >= GetParam().instances) return true;
    std::vector<Waiting> waiting;
    for (const auto& client : clients_) {
      if (client->is_waiting) waiting.push_back(client->waiting);
    }
    return !GetParam().is_runnable(waiting);
  }
  void Settle() {
    const base::TimePoint deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    base::MutexLock lock(mutex_);
    while (!IsSettled()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline)
          << "something waits for an idle instance";
      changed_.WaitUntil(mutex_, deadline);
    }
  }

  std::mt19937 random_;
  std::map<uint64_t, bool> open_;  // sequences that were started and not ended
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::unique_ptr<Client>>
      clients_;  // the test's own thread adds to them, under the lock
  std::vector<std::promise<void>*> running_ NEREID_GUARDED_BY(mutex_);
  size_t executions_ NEREID_GUARDED_BY(mutex_) = 0;
  bool is_over_ NEREID_GUARDED_BY(mutex_) = false;
  TestContext context_;
  std::unique_ptr<core::Model> model_;
  std::unique_ptr<SequenceScheduler> scheduler_;
};

TEST_P(IdleSequenceStorm, NothingThatMayRunWaitsForAnIdleInstance) {
  Make(static_cast<uint32_t>(GetParam().name.size()));
  for (int step = 0; step < 10'000 && !HasFatalFailure(); ++step) {
    switch (Below(8)) {
      case 0:
        CancelOne();
        break;
      case 1:
      case 2:
      case 3:
        EndSome();
        break;
      default:
        Submit();
    }
    Settle();
  }
  base::MutexLock lock(mutex_);
  EXPECT_GT(executions_, 500u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, IdleSequenceStorm,
                         testing::Values(PreferredSizes(), SlotUtilization(), Backlog(true),
                                         Backlog(false)),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace nereid::schedule
