// SPDX-License-Identifier: Apache-2.0
// Ensembles whose steps are limited (max_inflight_requests).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <random>
#include <thread>

#include "base/no_wait.h"
#include "core/testing/fakes.h"
#include "schedule/ensemble_scheduler.h"
#include "schedule/testing/ensemble_fixture.h"

namespace nereid::schedule {
namespace {

using testing::ElementsAre;

class LimitedEnsemble : public EnsembleFixture {};

TEST_F(LimitedEnsemble, HoldsStepsBackAboveTheLimitAndContinuesInOrder) {
  AddHolding("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}}, 2);
  std::array<Client, 5> clients;
  for (Client& client : clients) Run(client);
  EXPECT_EQ(held_.size(), 2u);
  for (size_t i = 0; i < clients.size(); ++i) {
    ASSERT_GT(held_.size(), i);
    EXPECT_LE(held_.size() - i, 2u);
    core::RequestPtr step = std::move(held_[i]);
    core::ResponsePtr response = Respond(*step, 1);
    Complete(std::move(step), std::move(response));
    EXPECT_EQ(clients[i].finals, 1u);
    EXPECT_EQ(clients[i].gone, 1u);
  }
}

TEST_F(LimitedEnsemble, CancelledRequestsLeaveTheLineOfTheLimit) {
  AddHolding("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}}, 1);
  std::array<Client, 3> clients;
  Run(clients[0]);
  core::RequestPtr request = Request(clients[1]);
  core::RequestRef kept(*request);
  ensemble_->scheduler().Enqueue(std::move(request));
  Run(clients[2]);
  kept->Cancel();
  ensemble_->scheduler().OnCancelled(*kept);
  kept.Reset();
  EXPECT_EQ(clients[1].finals, 1u);
  EXPECT_EQ(clients[1].gone, 1u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(held_.size(), i + 1);
    core::RequestPtr step = std::move(held_[i]);
    core::ResponsePtr response = Respond(*step, 1);
    Complete(std::move(step), std::move(response));
  }
  EXPECT_THAT(clients[2].responses, ElementsAre("out=1"));
}

TEST_F(LimitedEnsemble, AHeldStepHasTheRoundOfTheThreadThatSubmitsIt) {
  AddHolding("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}}, 1);
  core::FakeRounds executor;
  std::array<Client, 3> clients;
  for (Client& client : clients) {
    core::RequestPtr request = Request(client);
    request->round = &executor;
    ensemble_->scheduler().Enqueue(std::move(request));
  }
  ASSERT_EQ(held_.size(), 1u);
  EXPECT_EQ(held_[0]->round, &executor);
  std::thread([&] { Answer(std::move(held_[0]), 1); }).join();
  ASSERT_EQ(held_.size(), 2u);
  EXPECT_EQ(held_[1]->round, nullptr);
  Answer(std::move(held_[1]), 1);
  ASSERT_EQ(held_.size(), 3u);
  EXPECT_EQ(held_[2]->round, &executor);
  Answer(std::move(held_[2]), 1);
}

// O-1, O-6
TEST_F(LimitedEnsemble, AStepThatWaitsForItsPlaceIsRefusedWhenTheDeadlinePasses) {
  AddHolding("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}}, 1);
  Client first;
  Run(first);
  core::FakeSink late;
  core::FakeSink patient;
  core::RequestPtr request = Request(late);
  request->deadline_ns = base::NowNs() + 50'000'000;
  ensemble_->scheduler().Enqueue(std::move(request));
  request = Request(patient);
  request->deadline_ns = base::NowNs() + 3'600'000'000'000;
  ensemble_->scheduler().Enqueue(std::move(request));
  ASSERT_TRUE(late.WaitForGone(1));
  EXPECT_THAT(late.results(),
              ElementsAre("in ensemble 'e', [request id: <id_unknown>] the deadline of the request "
                          "passed before model 'm' could execute it"));
  const core::StatisticsSnapshot statistics = ensemble_->statistics().Read();
  EXPECT_THAT(statistics.failures, ElementsAre(1u, 0u, 0u, 0u));
  EXPECT_EQ(statistics.refusals[static_cast<size_t>(core::Refusal::kExpired)], 1u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(held_.size(), i + 1);
    Answer(std::move(held_[i]), 1);
  }
  EXPECT_TRUE(patient.WaitForGone(1));
  EXPECT_THAT(patient.results(), ElementsAre(""));
}

TEST_F(LimitedEnsemble, AStepThatWouldWaitAfterTheDeadlineIsRefused) {
  AddHolding("m");
  AddHolding("n");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "a"}}}, {"n", {{"I", "a"}}, {{"O", "out"}}}},
       1);
  Client first;
  Run(first);
  Answer(std::move(held_[0]), 1);
  ASSERT_EQ(held_.size(), 2u);
  core::FakeSink late;
  core::RequestPtr request = Request(late);
  request->deadline_ns = base::NowNs();
  ensemble_->scheduler().Enqueue(std::move(request));
  // Whether the first step executes is its model's business.
  ASSERT_EQ(held_.size(), 3u);
  Answer(std::move(held_[2]), 1);
  ASSERT_TRUE(late.WaitForGone(1));
  EXPECT_THAT(late.results(), ElementsAre(testing::HasSubstr("before model 'n' could execute it")));
  Answer(std::move(held_[1]), 1);
}

// A-1, E-13: whatever ends, fails or is cancelled, no request waits while its step has a place.
TEST_F(LimitedEnsemble, NoStepWaitsWhileThereIsAPlaceForIt) {
  constexpr size_t kLimit = 2;
  core::FakeRounds executor;
  const std::thread::id home = std::this_thread::get_id();
  for (const char* const model : {"m", "n"}) {
    engine_.Add(MakeModel(model, {"I"}, {"O"}), [&](core::RequestPtr request) {
      const bool is_home = std::this_thread::get_id() == home;
      ASSERT_EQ(request->round, is_home ? &executor : nullptr);
      held_.push_back(std::move(request));
    });
  }
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "a"}}}, {"n", {{"I", "a"}}, {{"O", "out"}}}},
       kLimit);
  std::mt19937 random(1);
  struct Run {
    Client client;
    std::string id;
    core::RequestRef request;
    size_t step = 0;  // the current step
  };
  std::vector<std::unique_ptr<Run>> runs;
  size_t completed = 0;
  const auto complete_one = [&] {
    if (held_.empty()) return;
    const size_t i = random() % held_.size();
    core::RequestPtr step = std::move(held_[i]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    ++runs[std::stoull(std::string(step->id))]->step;
    ++completed;
    if (random() % 16 == 0) return step.reset();  // released without a response
    core::ResponsePtr response = Respond(*step, 1);
    if (random() % 8 == 0) response->SetError(base::InternalError("no"));
    const auto complete = [&] { Complete(std::move(step), std::move(response)); };
    if (random() % 4 != 0) return complete();
    std::thread(complete).join();
  };
  const auto cancel_one = [&] {
    Run& run = *runs[runs.size() - 1 - random() % std::min<size_t>(runs.size(), 8)];
    if (run.client.finals > 0) return;
    run.request->Cancel();
    ensemble_->scheduler().OnCancelled(*run.request);
  };
  for (int turn = 0; turn < 3000; ++turn) {
    const unsigned choice = random() % 8;
    if (choice < 3 || runs.empty()) {
      Run& run = *runs.emplace_back(std::make_unique<Run>());
      run.id = std::to_string(runs.size() - 1);
      core::RequestPtr request = Request(run.client);
      request->id = run.id;
      request->round = &executor;
      run.request = core::RequestRef(*request);
      ensemble_->scheduler().Enqueue(std::move(request));
    } else if (choice == 3) {
      cancel_one();
    } else {
      complete_one();
    }
    std::array<size_t, 2> want{};
    std::array<size_t, 2> have{};
    for (const auto& run : runs) {
      if (run->client.finals == 0) ++want.at(run->step);
    }
    for (const core::RequestPtr& step : held_) ++have[step->model->name() == "m" ? 0 : 1];
    for (size_t step = 0; step < 2; ++step) {
      ASSERT_EQ(have[step], std::min(want[step], kLimit)) << "turn " << turn << ", step " << step;
    }
  }
  EXPECT_GT(completed, 500u);
  while (!held_.empty()) complete_one();
  for (const auto& run : runs) {
    EXPECT_EQ(run->client.finals, 1u);
    run->request.Reset();
    EXPECT_EQ(run->client.gone, 1u);
  }
}

TEST_F(LimitedEnsemble, AModelThatRespondsToNothingGivesItsPlaceBack) {
  AddSilent("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}}, 1);
  std::array<Client, 2> clients;
  for (Client& client : clients) {
    Run(client);
    EXPECT_EQ(client.finals, 1u);
    EXPECT_EQ(client.gone, 1u);
  }
}

TEST_F(LimitedEnsemble, AProducerThatIsLostWaitsForTheStepsBehindIt) {
  // Nothing but its second response keeps the request when it sends that.
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true), [](core::RequestPtr request) {
    std::thread([request = std::move(request)]() mutable {
      core::ResponseSink& sink = request->sink();
      core::ResponsePtr first = Respond(*request, 1);
      core::ResponsePtr second = Respond(*request, 2);
      request.reset();
      sink.Send(std::move(first), false);
      sink.Send(std::move(second), false);
    }).detach();
  });
  base::Mutex mutex;
  base::CondVar changed;
  std::vector<core::RequestPtr> waiting;
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    base::MutexLock lock(mutex);
    waiting.push_back(std::move(request));
    changed.NotifyAll();
  });
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}},
       1);
  core::FakeSink sink;
  Run(sink);
  for (size_t i = 0; i < 2; ++i) {
    core::RequestPtr step;
    {
      base::MutexLock lock(mutex);
      while (waiting.empty()) changed.Wait(mutex);
      step = std::move(waiting.back());
      waiting.pop_back();
    }
    Answer(std::move(step), 1);
  }
  ASSERT_TRUE(sink.WaitForGone(1));
  EXPECT_EQ(sink.final_count(), 1u);
  EXPECT_EQ(sink.results().back(),
            "in ensemble 'e', model 'd' released a request without its last response");
}

TEST_F(LimitedEnsemble, AProducerOnAThreadThatMustNotWaitRunsAhead) {
  std::promise<void> sent;
  std::thread thread;
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true), [&](core::RequestPtr request) {
    thread = std::thread([&, request = std::move(request)]() mutable {
      const base::NoWaitScope no_wait;
      for (int i = 0; i < 3; ++i) request->sink().Send(Respond(*request, i), false);
      sent.set_value();
      const core::RequestRef kept(*request);
      core::ResponseSink& sink = request->sink();
      request.reset();
      sink.Send(nullptr, true);
    });
  });
  AddHolding("m");
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}},
       1);
  Client client;
  Run(client);
  const bool ran_ahead =
      sent.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  EXPECT_TRUE(ran_ahead);
  if (ran_ahead) thread.join();
  for (size_t i = 0; i < held_.size(); ++i) Answer(std::move(held_[i]), 1);
  if (!ran_ahead) thread.join();
  EXPECT_EQ(client.responses.size(), 3u);
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(LimitedEnsemble, AClientThatReadsSlowlyKeepsNoOtherFromItsPlace) {
  // All but the first request are answered within Submit.
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true),
              [this, count = 0](core::RequestPtr request) mutable {
                if (count++ == 0) return held_.push_back(std::move(request));
                Answer(std::move(request), 1);
              });
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "out"}}}}, 1);
  class Slow final : public core::ResponseSink {
   public:
    explicit Slow(core::FakeSink& other) : other_(other) {}
    void Send(core::ResponsePtr, bool) override { EXPECT_TRUE(other_.WaitForGone(1)); }
    void OnRequestGone() override { is_gone = true; }
    bool is_gone = false;

   private:
    core::FakeSink& other_;
  };
  core::FakeSink other;
  Slow slow(other);
  Client first;
  Run(first);
  Run(slow);
  Run(other);
  Answer(std::move(held_[0]), 1);
  EXPECT_EQ(first.gone, 1u);
  EXPECT_TRUE(slow.is_gone);
  EXPECT_THAT(other.results(), ElementsAre(""));
}

// A decoupled model with a thread that sends three responses to its only request.
class Producer {
 public:
  void Start(core::RequestPtr request) {
    thread_ = std::thread([request = std::move(request)]() mutable {
      for (int i = 0; i < 3; ++i) request->sink().Send(Respond(*request, i), false);
      const core::RequestRef kept(*request);
      core::ResponseSink& sink = request->sink();
      request.reset();
      sink.Send(nullptr, true);
    });
  }
  // Returns the thread's id once it has ended.
  std::thread::id Join() {
    const std::thread::id id = thread_.get_id();
    thread_.join();
    return id;
  }

 private:
  std::thread thread_;
};

// A client that always reads too slowly, and which threads have waited for it.
class SlowClient final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr, bool) override { EXPECT_TRUE(base::NoWaitScope::IsHere()); }
  bool WouldWait() override { return true; }
  void AwaitRoom(const core::Request& request) override {
    EXPECT_EQ(&request.sink(), this);
    EXPECT_FALSE(base::NoWaitScope::IsHere());
    waiting.push_back(std::this_thread::get_id());
  }
  void OnRequestGone() override { is_gone = true; }

  std::vector<std::thread::id> waiting;
  bool is_gone = false;
};

// What has completed the response may be a model that many others wait for.
TEST_F(LimitedEnsemble, OnlyTheProducerWaitsForAClientThatReadsSlowly) {
  Producer producer;
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true),
              [&](core::RequestPtr request) { producer.Start(std::move(request)); });
  AddHolding("m");
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}});
  SlowClient slow;
  Run(slow);
  const std::thread::id id = producer.Join();
  EXPECT_THAT(slow.waiting, ElementsAre(id, id, id));
  ASSERT_EQ(held_.size(), 3u);
  for (core::RequestPtr& request : held_) {
    EXPECT_TRUE(request->sink().WouldWait());
    Answer(std::move(request), 1);
  }
  EXPECT_EQ(slow.waiting.size(), 3u);
  EXPECT_TRUE(slow.is_gone);
}

// Steps may need what the producer holds; its client does not.
TEST_F(LimitedEnsemble, AProducerThatHoldsAResourceWaitsForItsClientAndNotForSteps) {
  Producer producer;
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true, true),
              [&](core::RequestPtr request) { producer.Start(std::move(request)); });
  AddHolding("m");
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}},
       1);
  SlowClient slow;
  Run(slow);
  const std::thread::id id = producer.Join();
  EXPECT_THAT(slow.waiting, ElementsAre(id, id, id));
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(held_.size(), i + 1);
    Answer(std::move(held_[i]), 1);
  }
  EXPECT_TRUE(slow.is_gone);
}

TEST_F(LimitedEnsemble, AProducerOnItsOwnThreadWaitsForTheStepsBehindIt) {
  base::Mutex mutex;
  base::CondVar changed;
  size_t sent = 0;
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true), [&](core::RequestPtr request) {
    std::thread([&, request = std::move(request)]() mutable {
      for (int i = 0; i < 20; ++i) {
        request->sink().Send(Respond(*request, i), false);
        base::MutexLock lock(mutex);
        ++sent;
        changed.NotifyAll();
      }
      const core::RequestRef kept(*request);
      core::ResponseSink& sink = request->sink();
      request.reset();
      sink.Send(nullptr, true);
    }).detach();
  });
  std::vector<core::RequestPtr> waiting;
  size_t most = 0;
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    base::MutexLock lock(mutex);
    waiting.push_back(std::move(request));
    most = std::max(most, waiting.size());
    changed.NotifyAll();
  });
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}},
       3);
  class Waiting final : public core::ResponseSink {
   public:
    void Send(core::ResponsePtr response, bool) override {
      base::MutexLock lock(mutex);
      if (response != nullptr) ++responses;
    }
    void OnRequestGone() override {
      base::MutexLock lock(mutex);
      is_gone = true;
      changed.NotifyAll();
    }
    base::Mutex mutex;
    base::CondVar changed;
    size_t responses = 0;
    bool is_gone = false;
  } client;
  Run(client);
  for (size_t i = 0; i < 20; ++i) {
    core::RequestPtr step;
    {
      base::MutexLock lock(mutex);
      while (waiting.empty()) changed.Wait(mutex);
      step = std::move(waiting.front());
      waiting.erase(waiting.begin());
      // Three run; the fourth response waits for a place and blocks the producer.
      EXPECT_LE(sent, i + 3);
    }
    core::ResponsePtr response = Respond(*step, 1);
    Complete(std::move(step), std::move(response));
  }
  base::MutexLock lock(client.mutex);
  while (!client.is_gone) client.changed.Wait(client.mutex);
  EXPECT_EQ(client.responses, 20u);
  EXPECT_LE(most, 3u);
}

}  // namespace
}  // namespace nereid::schedule
