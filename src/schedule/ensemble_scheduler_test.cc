// SPDX-License-Identifier: Apache-2.0
// Ensembles of models that the test plays, on as many threads as a case needs.
#include "schedule/ensemble_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/testing/fakes.h"
#include "schedule/testing/ensemble_fixture.h"

namespace nereid::schedule {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class EnsembleSchedulerTest : public EnsembleFixture {};

TEST_F(EnsembleSchedulerTest, RunsStepsAsTheirInputsAppear) {
  AddCounting("m");
  AddCounting("join", {"I", "J"});
  Make({"in"}, {"out"},
       {{"join", {{"I", "b"}, {"J", "c"}}, {{"O", "out"}}},
        {"m", {{"I", "in"}}, {{"O", "a"}}},
        {"m", {{"I", "a"}}, {{"O", "b"}}},
        {"m", {{"I", "a"}}, {{"O", "c"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("out=10"));
  EXPECT_THAT(order_, ElementsAre("m", "m", "m", "join"));
  EXPECT_EQ(client.finals, 1u);
  EXPECT_EQ(client.released, 1u);
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, MovesTensorsByReference) {
  std::vector<const std::byte*> read;
  std::vector<const std::byte*> made;
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    read.push_back(request->inputs[0].first.data);
    core::ResponsePtr response = Respond(*request, 1);
    made.push_back(response->output(0).data);
    Complete(std::move(request), std::move(response));
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_THAT(read, ElementsAre(data_.data(), made[0]));
  EXPECT_THAT(client.data, ElementsAre(made[1]));
}

TEST_F(EnsembleSchedulerTest, FreesATensorWhenItsLastReaderIsDone) {
  AddHolding("m");
  AddHolding("n");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "x"}}}, {"n", {{"I", "x"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  ASSERT_EQ(held_.size(), 1u);
  core::RequestPtr request = std::move(held_[0]);
  held_.clear();
  core::ResponsePtr response = Respond(*request, 1);
  Complete(std::move(request), std::move(response));
  ASSERT_EQ(held_.size(), 1u);
  // The response exists, and with it the pin of its request.
  EXPECT_EQ(engine_.model("m").pin_count(), 1u);
  request = std::move(held_[0]);
  held_.clear();
  response = Respond(*request, 2);
  core::ResponseSink& sink = request->sink();
  request.reset();
  EXPECT_EQ(engine_.model("m").pin_count(), 0u);
  sink.Send(std::move(response), true);
  EXPECT_THAT(client.responses, ElementsAre("out=2"));
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, RunsOnlyWhatTheRequestedOutputsNeed) {
  AddCounting("m");
  AddCounting("n");
  Make({"in"}, {"one", "two"},
       {{"m", {{"I", "in"}}, {{"O", "one"}}}, {"n", {{"I", "one"}}, {{"O", "two"}}}});
  Client client;
  Run(client, {"one"});
  EXPECT_THAT(client.responses, ElementsAre("one=8"));
  EXPECT_THAT(order_, ElementsAre("m"));
}

TEST_F(EnsembleSchedulerTest, StartsStepsWithoutOptionalInputsThatWereLeftOut) {
  AddCounting("m");
  size_t inputs = 99;
  engine_.Add(MakeModel("n", {"I", "J"}, {"O"}), [&](core::RequestPtr request) {
    inputs = request->inputs.size();
    core::ResponsePtr response = Respond(*request, 5);
    Complete(std::move(request), std::move(response));
  });
  Make({"in", "optional"}, {"out"}, {{"n", {{"I", "in"}, {"J", "optional"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("out=5"));
  EXPECT_EQ(inputs, 1u);
}

TEST_F(EnsembleSchedulerTest, PassesOnWhatTheRequestCarries) {
  core::Request* seen = nullptr;
  AddHolding("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  core::RequestPtr request = Request(client);
  request->id = "id";
  request->priority = 3;
  request->timeout_us = 77;
  const auto caller = std::make_shared<const core::Caller>();
  request->caller = caller;
  request->flags = core::kSequenceStart;
  request->correlation_id = std::string_view("sequence");
  request->parameters.push_back({.name = "p", .value = int64_t{1}});
  ensemble_->scheduler().Enqueue(std::move(request));
  ASSERT_EQ(held_.size(), 1u);
  seen = held_[0].get();
  EXPECT_EQ(seen->id, "id");
  EXPECT_EQ(seen->priority, 3u);
  EXPECT_EQ(seen->timeout_us, 77u);
  EXPECT_EQ(seen->caller, caller);
  EXPECT_EQ(seen->flags, core::kSequenceStart);
  EXPECT_EQ(std::get<std::string_view>(seen->correlation_id), "sequence");
  EXPECT_EQ(seen->parameters.size(), 1u);
  core::RequestPtr step = std::move(held_[0]);
  core::ResponsePtr response = Respond(*step, 1);
  Complete(std::move(step), std::move(response));
}

TEST_F(EnsembleSchedulerTest, CarriesTheRoundOnlyOnItsThread) {
  std::vector<core::RoundExecutor*> rounds;
  core::FakeRounds executor;
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    rounds.push_back(request->round);
    if (rounds.size() == 2) {
      std::thread([&] {
        core::ResponsePtr response = Respond(*request, 1);
        Complete(std::move(request), std::move(response));
      }).join();
      return;
    }
    core::ResponsePtr response = Respond(*request, 1);
    Complete(std::move(request), std::move(response));
  });
  // The second step responds on another thread while this one is busy, and continues here.
  Make({"in"}, {"out"},
       {{"m", {{"I", "in"}}, {{"O", "a"}}},
        {"m", {{"I", "a"}}, {{"O", "b"}}},
        {"m", {{"I", "b"}}, {{"O", "out"}}}});
  Client client;
  core::RequestPtr request = Request(client);
  request->round = &executor;
  ensemble_->scheduler().Enqueue(std::move(request));
  EXPECT_THAT(rounds, ElementsAre(&executor, &executor, &executor));
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, LosesTheRoundOnOtherThreads) {
  AddHolding("m");
  std::vector<core::RoundExecutor*> rounds;
  core::FakeRounds executor;
  engine_.Add(MakeModel("n", {"I"}, {"O"}), [&](core::RequestPtr request) {
    rounds.push_back(request->round);
    core::ResponsePtr response = Respond(*request, 1);
    Complete(std::move(request), std::move(response));
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "a"}}}, {"n", {{"I", "a"}}, {{"O", "out"}}}});
  Client client;
  core::RequestPtr request = Request(client);
  request->round = &executor;
  ensemble_->scheduler().Enqueue(std::move(request));
  ASSERT_EQ(held_.size(), 1u);
  std::thread([&] {
    core::RequestPtr step = std::move(held_[0]);
    core::ResponsePtr response = Respond(*step, 1);
    Complete(std::move(step), std::move(response));
  }).join();
  EXPECT_THAT(rounds, ElementsAre(nullptr));
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, RespondsOnceWhenAStepFailsAndStartsNothingMore) {
  AddCounting("m");
  AddHolding("slow");
  engine_.Add(MakeModel("bad", {"I"}, {"O"}), [&](core::RequestPtr request) {
    core::CompleteWithError(std::move(request), base::InternalError("no luck"));
  });
  Make({"in"}, {"out", "other", "third"},
       {{"slow", {{"I", "in"}}, {{"O", "a"}}},
        {"bad", {{"I", "in"}}, {{"O", "out"}}},
        {"m", {{"I", "in"}}, {{"O", "third"}}},
        {"m", {{"I", "a"}}, {{"O", "other"}}}});
  Client client;
  Run(client);
  // The slow step is still running.
  EXPECT_THAT(client.responses, IsEmpty());
  ASSERT_EQ(held_.size(), 1u);
  const size_t started = order_.size();
  core::RequestPtr step = std::move(held_[0]);
  core::ResponsePtr response = Respond(*step, 1);
  Complete(std::move(step), std::move(response));
  EXPECT_THAT(client.responses, ElementsAre("in ensemble 'e', no luck"));
  EXPECT_EQ(order_.size(), started);
  EXPECT_EQ(client.gone, 1u);
  EXPECT_EQ(ensemble_->statistics().Read().fail.count, 1u);
}

TEST_F(EnsembleSchedulerTest, FailsWhenAModelIsGone) {
  Make({"in"}, {"out"}, {{"missing", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("in ensemble 'e', no model 'missing'"));
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, CancelsCallsInFlight) {
  AddHolding("m");
  AddCounting("n");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "x"}}}, {"n", {{"I", "x"}}, {{"O", "out"}}}});
  engine_.on_cancel = [&](core::Request& request) {
    ASSERT_EQ(&request, held_[0].get());
    core::CompleteWithError(std::move(held_[0]), base::CancelledError("Request cancelled"));
  };
  Client client;
  core::RequestPtr request = Request(client);
  core::RequestRef kept(*request);
  ensemble_->scheduler().Enqueue(std::move(request));
  ASSERT_EQ(held_.size(), 1u);
  kept->Cancel();
  ensemble_->scheduler().OnCancelled(*kept);
  EXPECT_THAT(client.responses, ElementsAre("in ensemble 'e', Request cancelled"));
  EXPECT_THAT(order_, IsEmpty());
  // For requests that have ended or were never here nothing happens.
  ensemble_->scheduler().OnCancelled(*kept);
  kept.Reset();
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, StartsNothingForAClientThatHasGone) {
  AddHolding("m");
  AddCounting("n");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "x"}}}, {"n", {{"I", "x"}}, {{"O", "out"}}}});
  Client client;
  core::RequestPtr request = Request(client);
  core::RequestRef kept(*request);
  ensemble_->scheduler().Enqueue(std::move(request));
  kept->Cancel();
  ensemble_->scheduler().OnCancelled(*kept);
  // The model ignores the cancellation.
  core::ResponsePtr response = Respond(*held_[0], 1);
  Complete(std::move(held_[0]), std::move(response));
  EXPECT_THAT(client.responses,
              ElementsAre("in ensemble 'e', [request id: <id_unknown>] Request cancelled"));
  EXPECT_THAT(order_, IsEmpty());
  kept.Reset();
}

TEST_F(EnsembleSchedulerTest, RespondsToEachResponseOfADecoupledStep) {
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true), [&](core::RequestPtr request) {
    for (int i = 10; i < 13; ++i) request->sink().Send(Respond(*request, i), false);
    core::ResponseSink& sink = request->sink();
    const core::RequestRef kept(*request);
    request.reset();
    sink.Send(nullptr, true);
  });
  AddCounting("m");
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("out=11", "out=12", "out=13"));
  EXPECT_EQ(client.finals, 1u);
  EXPECT_EQ(client.gone, 1u);
  EXPECT_EQ(ensemble_->statistics().Read().success.count, 1u);
}

TEST_F(EnsembleSchedulerTest, EndsWithTheFinalFlagAloneWhenADecoupledStepGivesNothing) {
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true), [&](core::RequestPtr request) {
    const core::RequestRef kept(*request);
    core::ResponseSink& sink = request->sink();
    request.reset();
    sink.Send(nullptr, true);
  });
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("end"));
}

TEST_F(EnsembleSchedulerTest, SaysSoWhenNoStepGivesAnOutput) {
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    const core::RequestRef kept(*request);
    core::ResponseSink& sink = request->sink();
    request.reset();
    sink.Send(nullptr, true);
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses,
              ElementsAre("in ensemble 'e', [request id: <id_unknown>] unexpected deadlock, at "
                          "least one output is not set while no more ensemble steps can be made"));
}

TEST_F(EnsembleSchedulerTest, StepsCompletedByManyThreadsAtOnceGiveOneResponseEach) {
  base::Mutex mutex;
  std::vector<std::thread> threads;
  const auto complete_elsewhere = [&](core::RequestPtr request) {
    base::MutexLock lock(mutex);
    threads.emplace_back([request = std::move(request)]() mutable {
      core::ResponsePtr response = Respond(*request, 3);
      Complete(std::move(request), std::move(response));
    });
  };
  engine_.Add(MakeModel("m", {"I"}, {"O"}), complete_elsewhere);
  engine_.Add(MakeModel("join", {"I", "J"}, {"O"}), complete_elsewhere);
  Make({"in"}, {"out"},
       {{"m", {{"I", "in"}}, {{"O", "a"}}},
        {"m", {{"I", "in"}}, {{"O", "b"}}},
        {"join", {{"I", "a"}, {"J", "b"}}, {{"O", "out"}}}});
  core::FakeSink sink;
  for (int i = 0; i < 100; ++i) {
    core::RequestPtr request = Request(sink);
    core::RequestRef kept(*request);
    ensemble_->scheduler().Enqueue(std::move(request));
    // Cancelling some of them races with everything else.
    if (i % 5 == 0) {
      kept->Cancel();
      ensemble_->scheduler().OnCancelled(*kept);
    }
  }
  EXPECT_TRUE(sink.WaitForGone(100));
  EXPECT_EQ(sink.final_count(), 100u);
  for (size_t i = 0;; ++i) {
    std::thread thread;
    {
      base::MutexLock lock(mutex);
      if (i == threads.size()) break;
      thread = std::move(threads[i]);
    }
    thread.join();
  }
}

TEST_F(EnsembleSchedulerTest, TakesResponsesInOrderWhicheverThreadsSendThem) {
  constexpr int kResponses = 200;
  base::Mutex mutex;
  base::CondVar changed;
  std::vector<int> seen;
  std::vector<core::RequestPtr> waiting;
  core::RequestPtr producer;
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true),
              [&](core::RequestPtr request) { producer = std::move(request); });
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&](core::RequestPtr request) {
    base::MutexLock lock(mutex);
    seen.push_back(static_cast<int>(*request->inputs[0].first.data));
    waiting.push_back(std::move(request));
    changed.NotifyAll();
  });
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}});
  core::FakeSink sink;
  Run(sink);
  // Two threads send responses in turns while a third one, which completes the next steps, is often
  // driving the strand.
  std::atomic<int> turn{0};
  const auto produce = [&](int first) {
    for (int i = first; i < kResponses; i += 2) {
      while (turn.load() != i) std::this_thread::yield();
      producer->sink().Send(Respond(*producer, i), false);
      turn.store(i + 1);
    }
  };
  std::thread even(produce, 0);
  std::thread odd(produce, 1);
  for (int i = 0; i < kResponses; ++i) {
    core::RequestPtr step;
    {
      base::MutexLock lock(mutex);
      while (waiting.empty()) changed.Wait(mutex);
      step = std::move(waiting.back());
      waiting.pop_back();
    }
    core::ResponsePtr response = Respond(*step, 1);
    Complete(std::move(step), std::move(response));
  }
  even.join();
  odd.join();
  {
    core::ResponseSink& responses = producer->sink();
    const core::RequestRef kept(*producer);
    producer.reset();
    responses.Send(nullptr, true);
  }
  EXPECT_TRUE(sink.WaitForGone(1));
  ASSERT_EQ(seen.size(), static_cast<size_t>(kResponses));
  EXPECT_TRUE(std::ranges::is_sorted(seen));
}

constexpr const char* kLost =
    "in ensemble 'e', model 'silent' released a request without its last response";

TEST_F(EnsembleSchedulerTest, FailsWhenAModelReleasesARequestWithoutAResponse) {
  AddSilent("silent");
  AddCounting("m");
  Make({"in"}, {"out"},
       {{"silent", {{"I", "in"}}, {{"O", "x"}}}, {"m", {{"I", "x"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre(kLost));
  EXPECT_EQ(client.finals, 1u);
  EXPECT_EQ(client.released, 1u);
  EXPECT_EQ(client.gone, 1u);
  EXPECT_EQ(engine_.model("silent").pin_count(), 0u);
}

TEST_F(EnsembleSchedulerTest, FailsWhenADecoupledModelReleasesARequestWithoutAnEnd) {
  AddSilent("silent", /*decoupled=*/true);
  Make({"in"}, {"out"}, {{"silent", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre(kLost));
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, FailsWhenADecoupledModelStopsAmongItsResponses) {
  engine_.Add(MakeModel("silent", {"I"}, {"O"}, true),
              [](core::RequestPtr request) { request->sink().Send(Respond(*request, 1), false); });
  Make({"in"}, {"out"}, {{"silent", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_THAT(client.responses, ElementsAre("out=1", kLost));
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, CancelsADecoupledModelThatHasReleasedItsRequest) {
  core::RequestRef producer;
  engine_.Add(MakeModel("d", {"I"}, {"O"}, true),
              [&](core::RequestPtr request) { producer = core::RequestRef(*request); });
  Make({"in"}, {"out"}, {{"d", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  core::RequestPtr request = Request(client);
  core::RequestRef kept(*request);
  ensemble_->scheduler().Enqueue(std::move(request));
  EXPECT_FALSE(producer->is_cancelled());
  kept->Cancel();
  ensemble_->scheduler().OnCancelled(*kept);
  EXPECT_TRUE(producer->is_cancelled());
  producer->sink().Send(nullptr, true);
  producer.Reset();
  EXPECT_THAT(client.responses, ElementsAre("end"));
  kept.Reset();
  EXPECT_EQ(client.gone, 1u);
}

TEST_F(EnsembleSchedulerTest, StopRefusesNewRequestsAndWaitsForTheOthers) {
  AddHolding("m");
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  EXPECT_FALSE(ensemble_->scheduler().Stop(std::chrono::steady_clock::now()));
  Client late;
  Run(late);
  ASSERT_EQ(late.responses.size(), 1u);
  EXPECT_THAT(late.responses[0], testing::HasSubstr("stopped accepting new inference requests"));
  core::RequestPtr step = std::move(held_[0]);
  core::ResponsePtr response = Respond(*step, 1);
  Complete(std::move(step), std::move(response));
  EXPECT_TRUE(
      ensemble_->scheduler().Stop(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
}

TEST_F(EnsembleSchedulerTest, CountsARunBeforeItsResponseIsSent) {
  // Like backends that report an execution before its response, and keep the request until after
  // it.
  bool fails = false;
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&fails](core::RequestPtr request) {
    core::ResponsePtr response = Respond(*request, 1);
    if (fails) response->SetError(base::InternalError("no"));
    request->sink().OnExecuted({100, 110, 130, 160});
    request->sink().Send(std::move(response), true);
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}});
  Client client;
  core::StatisticsSnapshot seen;
  client.on_response = [&] { seen = ensemble_->statistics().Read(); };
  Run(client);
  EXPECT_EQ(seen.success.count, 1u);
  EXPECT_EQ(seen.compute_infer.ns, 20u);
  fails = true;
  Client unlucky;
  unlucky.on_response = client.on_response;
  Run(unlucky);
  EXPECT_EQ(seen.fail.count, 1u);
  EXPECT_EQ(ensemble_->statistics().Read().success.count, 1u);
}

TEST_F(EnsembleSchedulerTest, CountsWhyARunFailed) {
  base::Status error;
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [&error](core::RequestPtr request) {
    core::CompleteWithError(std::move(request), error);
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "out"}}}});
  for (const base::Status& each :
       {base::CancelledError("c"), base::UnavailableError("u"), base::DeadlineExceededError("d"),
        base::ResourceExhaustedError("r"), base::InternalError("i")}) {
    error = each;
    Client client;
    Run(client);
  }
  // Rejected, cancelled, by the backend, other.
  EXPECT_THAT(ensemble_->statistics().Read().failures, ElementsAre(3u, 1u, 0u, 1u));
}

TEST_F(EnsembleSchedulerTest, AddsUpTheTimesOfItsSteps) {
  engine_.Add(MakeModel("m", {"I"}, {"O"}), [](core::RequestPtr request) {
    core::ResponsePtr response = Respond(*request, 1);
    request->sink().OnExecuted({100, 110, 130, 160});
    Complete(std::move(request), std::move(response));
  });
  Make({"in"}, {"out"}, {{"m", {{"I", "in"}}, {{"O", "a"}}}, {"m", {{"I", "a"}}, {{"O", "out"}}}});
  Client client;
  Run(client);
  const core::StatisticsSnapshot statistics = ensemble_->statistics().Read();
  EXPECT_EQ(statistics.success.count, 1u);
  EXPECT_EQ(statistics.inference_count, 1u);
  EXPECT_EQ(statistics.execution_count, 1u);
  EXPECT_EQ(statistics.queue.ns, 0u);
  EXPECT_EQ(statistics.compute_input.ns, 20u);
  EXPECT_EQ(statistics.compute_infer.ns, 40u);
  EXPECT_EQ(statistics.compute_output.ns, 60u);
}

}  // namespace
}  // namespace nereid::schedule
