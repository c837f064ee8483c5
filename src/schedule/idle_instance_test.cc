// SPDX-License-Identifier: Apache-2.0
// No request that may run waits while an instance is idle (A-1 of docs/scheduling.md): requests of
// random sizes, shapes, priorities and timeouts arrive, are cancelled, expire and end in random
// order. The test has its own implementation of the document's rules, and after every step it waits
// until they let nothing more run.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/testing/fakes.h"
#include "schedule/batch_scheduler.h"
#include "schedule/testing/context.h"

namespace nereid::schedule {
namespace {

using Action = config::QueuePolicy::TimeoutAction;
constexpr uint64_t kHourUs = UINT64_C(3'600'000'000);

// A request that is not executed yet, as its client knows it.
struct Waiting {
  size_t number = 0;  // in the order of arrival
  size_t rows = 1;
  int64_t width = 1;
  uint64_t level = 0;
  uint64_t expires_ns = 0;  // 0: never
};

struct Rules {
  size_t max_batch_size = 8;
  std::set<size_t> preferred;
  bool has_delay = false;  // of an hour: the delay never lets a batch run
  Action action = Action::kReject;
  bool has_own_rule = false;  // a batching library that never extends a batch after an odd number

  // Returns the requests in the order of execution, without those that are refused
  //
  std::vector<Waiting> Line(std::vector<Waiting> waiting, uint64_t now_ns) const {
    const auto is_late = [&](const Waiting& w) {
      return w.expires_ns != 0 && w.expires_ns <= now_ns;
    };
    if (action == Action::kReject) std::erase_if(waiting, is_late);
    std::ranges::sort(waiting, {}, [&](const Waiting& w) {
      return std::tuple(w.level, is_late(w) ? w.expires_ns : 0, w.number);
    });
    return waiting;
  }

  // Returns whether an idle instance has something to run (D-3 to D-9, D-15).
  bool IsRunnable(const std::vector<Waiting>& waiting, uint64_t now_ns) const {
    const std::vector<Waiting> line = Line(waiting, now_ns);
    if (line.empty()) return false;
    if (!has_delay) return true;
    const size_t largest = preferred.empty() ? max_batch_size : *preferred.rbegin();
    size_t rows = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      if (i > 0) {
        if (rows + line[i].rows > largest) return true;
        if (line[i].width != line.front().width) return true;
        if (has_own_rule && line[i].number % 2 != 0) return true;
      }
      rows += line[i].rows;
      if (preferred.contains(rows) || rows >= largest) return true;
    }
    return false;
  }
};

// The batching library of has_own_rule.
class OwnRule final : public core::BatchStrategy {
 public:
  void Begin() override {}
  bool Includes(core::Request& request) override {
    return std::stoull(std::string(request.id)) % 2 == 0;
  }
};

class IdleInstanceTest : public testing::TestWithParam<uint32_t> {
 protected:
  static constexpr int kSteps = 300;

  ~IdleInstanceTest() override {
    EndAll();
    scheduler_.reset();
    for (const std::unique_ptr<Client>& client : clients_) client->request.Reset();
  }

  size_t Below(size_t limit) { return random_() % limit; }

  void SetUp() override {
    BatchSchedulerOptions options;
    BatchPolicy& policy = options.policy;
    policy = {.is_dynamic = true, .max_batch_size = 8};
    rules_.has_delay = Below(4) != 0;
    if (rules_.has_delay) policy.max_queue_delay = std::chrono::hours(1);
    if (Below(3) != 0) rules_.preferred = {3 + Below(2), 6 + Below(3)};
    policy.preferred_batch_sizes.assign(rules_.preferred.begin(), rules_.preferred.end());
    rules_.action = Below(2) != 0 ? Action::kReject : Action::kDelay;
    policy.default_queue_policy = {.timeout_action = rules_.action,
                                   .default_timeout_microseconds = kHourUs,
                                   .allow_timeout_override = true};
    levels_ = Below(2) != 0 ? 3 : 0;
    policy.priority_levels = levels_;
    policy.default_priority_level = levels_ == 0 ? 0 : 2;
    rules_.has_own_rule = Below(3) == 0;
    if (rules_.has_own_rule) options.strategy = std::make_unique<OwnRule>();
    model_ = core::MakeFakeModel(8, {-1});
    instance_count_ = 1 + Below(3);
    const bool any_thread = Below(2) != 0;
    std::vector<NewInstance> instances;
    for (size_t i = 0; i < instance_count_; ++i) {
      instances.emplace_back(std::make_unique<core::FakeInstance>(
          "instance_" + std::to_string(i), any_thread,
          [this](std::span<core::RequestPtr> batch) { Execute(batch); }));
    }
    auto made =
        BatchScheduler::Create(*model_, context_.Get(), std::move(options), std::move(instances));
    ASSERT_TRUE(made.ok());
    scheduler_ = std::move(made).value();
  }

  // A client's request, which stays here until it has completed.
  struct Client final : core::ResponseSink {
    Client(IdleInstanceTest& test, size_t number) : test(test), id(std::to_string(number)) {}
    void Send(core::ResponsePtr /*response*/, bool /*is_final*/) override { test.Forget(*this); }

    IdleInstanceTest& test;
    const std::string id;
    Waiting waiting;
    core::RequestRef request;  // while it waits
    bool is_waiting = false;   // guarded by the test's lock, as is `waiting`
  };

  void Forget(Client& client) {
    base::MutexLock lock(mutex_);
    client.is_waiting = false;
    changed_.NotifyAll();
  }

  // Keeps its instance busy until the test releases it.
  void Execute(std::span<core::RequestPtr> batch) {
    std::promise<void> leave;
    std::future<void> left = leave.get_future();
    {
      base::MutexLock lock(mutex_);
      for (const core::RequestPtr& request : batch) {
        clients_[std::stoull(std::string(request->id))]->is_waiting = false;
      }
      running_.push_back(&leave);
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
    Client* client = nullptr;
    size_t number = 0;
    {
      base::MutexLock lock(mutex_);
      number = clients_.size();
      client = clients_.emplace_back(std::make_unique<Client>(*this, number)).get();
    }
    const auto rows = static_cast<int64_t>(1 + Below(3));
    const int64_t width = Below(8) == 0 ? 2 : 1;
    core::RequestPtr request = core::MakeFakeRequest(*model_, *client, {rows, width});
    request->id = client->id;
    request->priority = levels_ == 0 ? 0 : 1 + Below(levels_);
    if (Below(3) == 0) request->timeout_us = 200 + Below(5000);
    core::Request& submitted = *request;
    client->request = core::RequestRef(submitted);
    const uint64_t timeout_us =
        std::min(submitted.timeout_us == 0 ? kHourUs : submitted.timeout_us, kHourUs);
    {
      base::MutexLock lock(mutex_);
      client->is_waiting = true;
      client->waiting = {.number = number,
                         .rows = static_cast<size_t>(rows),
                         .width = width,
                         .level = submitted.priority,
                         .expires_ns = UINT64_MAX};
    }
    scheduler_->Enqueue(std::move(request));
    base::MutexLock lock(mutex_);
    client->waiting.expires_ns = submitted.times.queue_start_ns + timeout_us * 1000;
  }

  void CancelOne() {
    Client* chosen = nullptr;
    {
      base::MutexLock lock(mutex_);
      std::vector<Client*> waiting;
      for (const auto& client : clients_) {
        if (client->is_waiting) waiting.push_back(client.get());
      }
      if (waiting.empty()) return;
      chosen = waiting[Below(waiting.size())];
    }
    chosen->request->Cancel();
    scheduler_->OnCancelled(*chosen->request);
  }

  void EndSome() {
    base::MutexLock lock(mutex_);
    if (!running_.empty()) EndOne(Below(running_.size()));
  }

  // Returns whether the rules let every idle instance run nothing now, and no expired request that
  // must be refused still waits.
  bool IsSettled() NEREID_REQUIRES(mutex_) {
    const uint64_t now_ns = base::NowNs();
    std::vector<Waiting> waiting;
    for (const auto& client : clients_) {
      if (client->is_waiting) waiting.push_back(client->waiting);
    }
    if (rules_.Line(waiting, now_ns).size() != waiting.size()) return false;
    return running_.size() >= instance_count_ || !rules_.IsRunnable(waiting, now_ns);
  }
  // With `times_out`, waits until no request is left that will expire soon.
  void Settle(bool times_out) {
    const base::TimePoint deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    base::MutexLock lock(mutex_);
    while (!IsSettled() || (times_out && HasHasty())) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << Describe();
      // Requests also expire as time passes.
      changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
    }
  }
  bool HasHasty() NEREID_REQUIRES(mutex_) {
    const uint64_t now_ns = base::NowNs();
    return std::ranges::any_of(clients_, [&](const auto& client) {
      return client->is_waiting && client->waiting.expires_ns > now_ns &&
             client->waiting.expires_ns - now_ns < UINT64_C(60'000'000'000);
    });
  }
  std::string Describe() NEREID_REQUIRES(mutex_) {
    std::string text = std::to_string(instance_count_ - running_.size()) + " idle, waiting:";
    for (const auto& client : clients_) {
      if (!client->is_waiting) continue;
      text += " " + client->id + "(" + std::to_string(client->waiting.rows) + " rows of " +
              std::to_string(client->waiting.width) + ", level " +
              std::to_string(client->waiting.level) + ")";
    }
    return text;
  }

  void EndAll() {
    base::MutexLock lock(mutex_);
    is_over_ = true;
    while (!running_.empty()) EndOne(0);
  }

  std::mt19937 random_{GetParam()};
  Rules rules_;
  uint64_t levels_ = 0;
  size_t instance_count_ = 1;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::unique_ptr<Client>>
      clients_;  // the test's own thread adds to them, under the lock
  std::vector<std::promise<void>*> running_ NEREID_GUARDED_BY(mutex_);
  bool is_over_ NEREID_GUARDED_BY(mutex_) = false;
  TestContext context_;
  std::unique_ptr<core::Model> model_;
  std::unique_ptr<BatchScheduler> scheduler_;
};

TEST_P(IdleInstanceTest, HasNothingThatMayRunWaitingForIt) {
  for (int step = 0; step < kSteps && !HasFatalFailure(); ++step) {
    switch (Below(8)) {
      case 0:
      case 1:
        CancelOne();
        break;
      case 2:
      case 3:
        EndSome();
        break;
      default:
        Submit();
    }
    Settle(/*times_out=*/Below(8) == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, IdleInstanceTest, testing::Range(1u, 25u));

}  // namespace
}  // namespace nereid::schedule
