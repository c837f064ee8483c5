// SPDX-License-Identifier: Apache-2.0
#include "schedule/sequence_scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "schedule/testing/context.h"
#include "schedule/testing/sequences.h"

namespace nereid::schedule {
namespace {

using Strategy = config::SequenceBatching;
constexpr uint32_t kStart = core::kSequenceStart;
constexpr uint32_t kEnd = core::kSequenceEnd;

class SequenceSchedulerTest : public testing::Test {
 protected:
  ~SequenceSchedulerTest() override { scheduler_.reset(); }

  void Make(SequenceModelOptions model, SequenceSchedulerOptions options = {},
            core::FakeInstance::Hook hook = {}) {
    model_ = MakeSequenceModel(std::move(model));
    auto instance = std::make_unique<core::FakeInstance>(
        "instance", false, [this, hook](std::span<core::RequestPtr> batch) {
          batches_.push_back(Describe(batch));
          if (hook) hook(batch);
        });
    instance_ = instance.get();
    std::vector<NewInstance> instances;
    instances.emplace_back(std::move(instance));
    auto made = SequenceScheduler::Create(*model_, context_.Get(), std::move(options),
                                          std::move(instances));
    ASSERT_TRUE(made.ok());
    scheduler_ = std::move(made).value();
  }
  void Send(core::CorrelationId id, uint32_t flags = 0, uint64_t timeout_us = 0) {
    core::RequestPtr request = MakeSequenceRequest(*model_, sink_, id, flags);
    request->timeout_us = timeout_us;
    scheduler_->Enqueue(std::move(request));
  }
  // Returns the response to a request that is sent alone.
  std::string Ask(core::CorrelationId id, uint32_t flags = 0) {
    const size_t before = sink_.results().size();
    Send(id, flags);
    sink_.WaitForGone(before + 1);
    return sink_.results().back();
  }
  void WaitUntilIdle() {
    EXPECT_TRUE(scheduler_->WaitUntilIdleForTest(std::chrono::steady_clock::now() +
                                                 std::chrono::minutes(1)));
  }
  uint64_t Failures(core::FailureReason reason) {
    return model_->statistics().Read().failures[static_cast<size_t>(reason)];
  }

  core::FakeSink sink_;
  TestContext context_;
  std::unique_ptr<core::Model> model_;
  std::unique_ptr<SequenceScheduler> scheduler_;
  const core::Instance* instance_ = nullptr;  // the one that Make has made
  std::vector<std::string> batches_;          // of the only instance, in order
};

SequenceModelOptions Direct(int32_t max_batch_size = 4) {
  return {.max_batch_size = max_batch_size, .batching = AllControls()};
}

SequenceModelOptions Oldest(int32_t candidates) {
  SequenceModelOptions options{.batching = AllControls()};
  options.batching.strategy_choice =
      Strategy::StrategyOldest{.max_candidate_sequences = candidates};
  return options;
}

SequenceModelOptions Iterative(SequenceModelOptions options) {
  options.batching.iterative_sequence = true;
  return options;
}

// Stands for an embedder's function that asks the server something about each activity.
class AskingRecorder final : public observe::TraceRecorder {
 public:
  explicit AskingRecorder(std::function<void()> ask) : ask_(std::move(ask)) {}

  uint32_t levels() const override { return observe::kTraceTimestamps; }
  uint64_t NextId() override { return 1; }
  void Report(observe::Trace&, observe::TraceActivity activity, std::string_view,
              uint64_t) override {
    if (activity == observe::TraceActivity::kQueueStart) ++queue_starts_;
    ask_();
  }
  void ReportTensor(const observe::Trace&, observe::TraceActivity,
                    const observe::TensorView&) override {}
  int queue_starts() const { return queue_starts_; }

 private:
  const std::function<void()> ask_;
  std::atomic<int> queue_starts_{0};
};

// Blocks an instance's execution until the test releases it.
class Gate {
 public:
  void Enter() {
    entered_.set_value();
    leave_.get_future().wait();
  }
  void WaitUntilEntered() { entered_.get_future().wait(); }
  void Leave() { leave_.set_value(); }

 private:
  std::promise<void> entered_;
  std::promise<void> leave_;
};

TEST_F(SequenceSchedulerTest, ReportsErrorsInTheWordsOfTriton) {
  Make(Direct());
  EXPECT_EQ(
      Ask(uint64_t{0}, kStart),
      "inference request to model 'model' must specify a non-zero or non-empty correlation ID");
  EXPECT_EQ(Ask(uint64_t{5}),
            "inference request for sequence 5 to model 'model' must specify the START flag on the "
            "first request of the sequence");
  core::RequestPtr two = core::MakeFakeRequest(*model_, sink_, {2, 1});
  two->correlation_id = uint64_t{5};
  two->flags = kStart;
  scheduler_->Enqueue(std::move(two));
  sink_.WaitForGone(3);
  EXPECT_EQ(sink_.results().back(),
            "inference request to model 'model' must specify batch-size 1 due to requirements of "
            "sequence batcher");
  EXPECT_EQ(Failures(core::FailureReason::kOther), 3u);
  EXPECT_EQ(scheduler_->SequenceCount(), 0u);
}

TEST_F(SequenceSchedulerTest, RunsASequenceFromStartToEnd) {
  Make(Direct());
  EXPECT_EQ(Ask(uint64_t{5}, kStart), "");
  EXPECT_EQ(Ask(uint64_t{5}), "");
  EXPECT_EQ(Ask(uint64_t{5}, kEnd), "");
  WaitUntilIdle();
  EXPECT_EQ(batches_, (std::vector<std::string>{"5s", "5", "5e"}));
  EXPECT_EQ(scheduler_->SequenceCount(), 0u);
  EXPECT_NE(Ask(uint64_t{5}), "");
}

TEST_F(SequenceSchedulerTest, StartsAgainInTheSameSlot) {
  Make(Direct());
  Ask(uint64_t{5}, kStart);
  Ask(uint64_t{6}, kStart);
  Ask(uint64_t{5}, kStart);
  Ask(uint64_t{6});
  WaitUntilIdle();
  EXPECT_EQ(batches_, (std::vector<std::string>{"5s", "- 6s", "5s", "- 6"}));
}

TEST_F(SequenceSchedulerTest, ServesTheBacklogWhenASequenceEnds) {
  Make(Direct(1));
  Ask(uint64_t{1}, kStart);
  Send(uint64_t{2}, kStart);
  Send(uint64_t{2}, kEnd);
  EXPECT_EQ(Ask(uint64_t{1}, kEnd), "");
  EXPECT_TRUE(sink_.WaitForGone(4));
  WaitUntilIdle();
  EXPECT_EQ(batches_, (std::vector<std::string>{"1s", "1e", "2s", "2e"}));
}

// S-14
TEST_F(SequenceSchedulerTest, CancellingOneRequestCancelsAllThatWaitOfItsSequence) {
  Gate gate;
  Make(Oldest(4), {}, [&](std::span<core::RequestPtr> batch) {
    if (batches_.size() == 1) gate.Enter();
    static_cast<void>(batch);
  });
  Send(uint64_t{1}, kStart);
  gate.WaitUntilEntered();
  Send(uint64_t{1});
  core::RequestPtr request = MakeSequenceRequest(*model_, sink_, uint64_t{1}, 0);
  core::RequestRef ref(*request);
  scheduler_->Enqueue(std::move(request));
  Send(uint64_t{2}, kStart | kEnd);
  ref->Cancel();
  scheduler_->OnCancelled(*ref);
  ref.Reset();
  EXPECT_TRUE(sink_.WaitForGone(2));
  EXPECT_EQ(sink_.results(),
            (std::vector<std::string>{"[request id: <id_unknown>] Request cancelled",
                                      "[request id: <id_unknown>] Request cancelled"}));
  EXPECT_NE(Ask(uint64_t{1}), "");
  gate.Leave();
  EXPECT_TRUE(sink_.WaitForGone(5));
  WaitUntilIdle();
  EXPECT_EQ(batches_, (std::vector<std::string>{"1s", "2se"}));
  EXPECT_EQ(Failures(core::FailureReason::kCancelled), 2u);
  EXPECT_EQ(scheduler_->FreeSlotCountForTest(), 4u);
}

// S-14 A-1: the request that comes to the front has another shape, so that the batch cannot grow.
TEST_F(SequenceSchedulerTest, RequestsBehindACancelledOneRun) {
  SequenceModelOptions model = Oldest(4);
  model.dims = {-1};
  model.batching.strategy_choice =
      Strategy::StrategyOldest{.max_candidate_sequences = 4,
                               .preferred_batch_size = {4},
                               .max_queue_delay_microseconds = UINT64_C(3'600'000'000)};
  Make(std::move(model));
  core::RequestPtr first = MakeSequenceRequest(*model_, sink_, uint64_t{1}, kStart, 1);
  core::RequestRef keep(*first);
  scheduler_->Enqueue(std::move(first));
  scheduler_->Enqueue(MakeSequenceRequest(*model_, sink_, uint64_t{1}, kStart, 2));
  scheduler_->Enqueue(MakeSequenceRequest(*model_, sink_, uint64_t{2}, kStart, 1));
  keep->Cancel();
  scheduler_->OnCancelled(*keep);
  keep.Reset();
  EXPECT_TRUE(sink_.WaitForGone(2));
  EXPECT_EQ(batches_, std::vector<std::string>{"1s"});
}

TEST_F(SequenceSchedulerTest, ARequestThatRunsIsNotStoppedByItsCancellation) {
  Gate gate;
  Make(Direct(), {}, [&](std::span<core::RequestPtr>) { gate.Enter(); });
  core::RequestPtr request = MakeSequenceRequest(*model_, sink_, uint64_t{1}, kStart);
  core::RequestRef ref(*request);
  scheduler_->Enqueue(std::move(request));
  gate.WaitUntilEntered();
  ref->Cancel();
  scheduler_->OnCancelled(*ref);
  ref.Reset();
  gate.Leave();
  EXPECT_TRUE(sink_.WaitForGone(1));
  EXPECT_EQ(sink_.results(), std::vector<std::string>{""});
  EXPECT_EQ(scheduler_->SequenceCount(), 1u);
}

TEST_F(SequenceSchedulerTest, GivesTheSlotOfAnIdleSequenceAway) {
  SequenceModelOptions options = Direct(1);
  options.batching.max_sequence_idle_microseconds = 1000;
  Make(std::move(options));
  Ask(uint64_t{1}, kStart);
  Send(uint64_t{2}, kStart | kEnd);
  EXPECT_TRUE(sink_.WaitForGone(2));
  EXPECT_NE(Ask(uint64_t{1}), "");
  WaitUntilIdle();
  EXPECT_EQ(batches_, (std::vector<std::string>{"1s", "2se"}));
}

TEST_F(SequenceSchedulerTest, RefusesASequenceThatWaitsTooLongInTheBacklog) {
  Make(Direct(1));
  Ask(uint64_t{1}, kStart);
  Send(uint64_t{2}, kStart);
  Send(uint64_t{2}, 0, 1000);
  EXPECT_TRUE(sink_.WaitForGone(3));
  const std::string expired = "timeout of the corresponding sequence has been expired";
  EXPECT_EQ(sink_.results(), (std::vector<std::string>{"", expired, expired}));
  EXPECT_EQ(Failures(core::FailureReason::kRejected), 2u);
  EXPECT_EQ(Ask(uint64_t{1}, kEnd), "");
}

TEST_F(SequenceSchedulerTest, RefusesASequenceThatWaitsTooLongWhileItsInstanceLeaves) {
  Gate gate;
  Make(Direct(1), {}, [&](std::span<core::RequestPtr>) { gate.Enter(); });
  Send(uint64_t{1}, kStart | kEnd);
  gate.WaitUntilEntered();
  InstanceChange change;
  change.removed.push_back(instance_);
  const auto nothing = [](std::span<core::RequestPtr>) {};
  change.added.push_back(
      {.instance = std::make_unique<core::FakeInstance>("other", false, nothing), .claim = {}});
  ASSERT_TRUE(scheduler_->ChangeInstances(std::move(change)).ok());
  EXPECT_EQ(Ask(uint64_t{2}, kStart), "");
  Send(uint64_t{1}, kStart, 1000);  // joins the backlog, since its instance is to leave
  EXPECT_TRUE(sink_.WaitForGone(2));
  EXPECT_EQ(sink_.results().back(), "timeout of the corresponding sequence has been expired");
  gate.Leave();
  EXPECT_TRUE(sink_.WaitForGone(3));
}

TEST_F(SequenceSchedulerTest, RunsAnIterativeSequenceUntilItsBackendHasEnough) {
  for (const SequenceModelOptions& strategy : {Direct(), Oldest(4)}) {
    scheduler_.reset();
    batches_.clear();
    int rounds = 0;
    Make(Iterative(strategy), {}, [&](std::span<core::RequestPtr> batch) {
      for (core::RequestPtr& request : batch) {
        if (++rounds > 3) {
          core::ResponsePtr response = core::Response::Create(*request);
          core::ResponseSink& sink = request->sink();
          request.reset();
          sink.Send(std::move(response), true);
        } else {
          EXPECT_TRUE(scheduler_->Reschedule(request));
        }
      }
    });
    const size_t before = sink_.results().size();
    Send(uint64_t{0});
    EXPECT_TRUE(sink_.WaitForGone(before + 1));
    WaitUntilIdle();
    EXPECT_EQ(batches_, (std::vector<std::string>{"1s", "1", "1", "1"}));
    EXPECT_EQ(scheduler_->SequenceCount(), 0u);
  }
}

TEST_F(SequenceSchedulerTest, ATraceMayAskTheSchedulerItself) {
  bool is_again = false;
  Make(Iterative(Direct()), {}, [&](std::span<core::RequestPtr> batch) {
    is_again = !is_again;
    if (is_again) {
      EXPECT_TRUE(scheduler_->Reschedule(batch[0]));
    }
  });
  const auto recorder = std::make_shared<AskingRecorder>([this] {
    scheduler_->ReadLoad();
    scheduler_->SequenceCount();
  });
  core::RequestPtr request = MakeSequenceRequest(*model_, sink_, uint64_t{7}, kStart);
  request->trace = std::make_shared<observe::Trace>(recorder, 1, 0);
  scheduler_->Enqueue(std::move(request));
  EXPECT_TRUE(sink_.WaitForGone(1));
  EXPECT_EQ(recorder->queue_starts(), 2);
  WaitUntilIdle();
}

// S-36
TEST_F(SequenceSchedulerTest, AnIterationMayTakeLongerThanASequenceMayBeIdle) {
  SequenceModelOptions model = Iterative(Direct());
  model.batching.max_sequence_idle_microseconds = 1;
  int rounds = 0;
  Make(std::move(model), {}, [&](std::span<core::RequestPtr> batch) {
    while (base::NowNs() - batch[0]->times.batch_start_ns <= 1000) std::this_thread::yield();
    if (++rounds < 3) {
      EXPECT_TRUE(scheduler_->Reschedule(batch[0]));
    }
  });
  EXPECT_EQ(Ask(uint64_t{0}), "");
  WaitUntilIdle();
  EXPECT_EQ(batches_, (std::vector<std::string>{"1s", "1", "1"}));
  EXPECT_EQ(scheduler_->SequenceCount(), 0u);
}

// S-34
TEST_F(SequenceSchedulerTest, ACancelledRequestThatComesBackIsNotRunAgain) {
  Make(Iterative(Direct()), {}, [&](std::span<core::RequestPtr> batch) {
    core::Request& request = *batch[0];
    request.Cancel();
    scheduler_->OnCancelled(request);
    EXPECT_TRUE(scheduler_->Reschedule(batch[0]));
  });
  EXPECT_EQ(Ask(uint64_t{0}), "[request id: <id_unknown>] Request cancelled");
  WaitUntilIdle();
  EXPECT_EQ(batches_, std::vector<std::string>{"1s"});
  EXPECT_EQ(scheduler_->SequenceCount(), 0u);
}

// S-34, S-14: what was started again with the same id belongs to another client.
TEST_F(SequenceSchedulerTest, ACancelledRequestThatComesBackLeavesANewStartAlone) {
  Gate gate;
  int rounds = 0;
  Make(Iterative(Direct()), {}, [&](std::span<core::RequestPtr> batch) {
    if (++rounds > 1) return;
    gate.Enter();
    batch[0]->Cancel();
    EXPECT_TRUE(scheduler_->Reschedule(batch[0]));
  });
  Send(uint64_t{1}, kStart);
  gate.WaitUntilEntered();
  Send(uint64_t{1}, kStart);
  gate.Leave();
  EXPECT_TRUE(sink_.WaitForGone(2));
  EXPECT_EQ(sink_.results(),
            (std::vector<std::string>{"[request id: <id_unknown>] Request cancelled", ""}));
  WaitUntilIdle();
  EXPECT_EQ(batches_, (std::vector<std::string>{"1s", "1s"}));
}

// S-31, S-34, S-14
TEST_F(SequenceSchedulerTest, ANewStartThatIsCancelledLeavesTheRequestOfAnotherClientAlone) {
  Gate gate;
  int rounds = 0;
  Make(Iterative(Direct()), {}, [&](std::span<core::RequestPtr> batch) {
    ++rounds;
    if (rounds == 1) gate.Enter();
    if (rounds < 3) {
      EXPECT_TRUE(scheduler_->Reschedule(batch[0]));
    }
  });
  Send(uint64_t{7}, kStart);
  gate.WaitUntilEntered();
  core::RequestPtr request = MakeSequenceRequest(*model_, sink_, uint64_t{7}, kStart);
  core::RequestRef cancelled(*request);
  scheduler_->Enqueue(std::move(request));
  cancelled->Cancel();
  scheduler_->OnCancelled(*cancelled);
  cancelled.Reset();
  EXPECT_TRUE(sink_.WaitForGone(1));
  gate.Leave();
  EXPECT_TRUE(sink_.WaitForGone(2));
  EXPECT_EQ(sink_.results(),
            (std::vector<std::string>{"[request id: <id_unknown>] Request cancelled", ""}));
  WaitUntilIdle();
  EXPECT_EQ(batches_, (std::vector<std::string>{"7s", "7", "7"}));
  EXPECT_EQ(scheduler_->SequenceCount(), 0u);
}

// S-13
TEST_F(SequenceSchedulerTest, AFailureEndsNoSequenceButAnEndThatFailsDoes) {
  Make(Direct(), {}, [](std::span<core::RequestPtr> batch) {
    for (core::RequestPtr& request : batch) {
      core::CompleteWithError(std::move(request), base::InternalError("no"));
    }
  });
  EXPECT_EQ(Ask(uint64_t{1}, kStart), "no");
  EXPECT_EQ(Ask(uint64_t{1}), "no");
  EXPECT_EQ(Ask(uint64_t{1}, kEnd), "no");
  WaitUntilIdle();
  EXPECT_EQ(batches_, (std::vector<std::string>{"1s", "1", "1e"}));
  EXPECT_EQ(scheduler_->FreeSlotCountForTest(), 4u);
}

// S-26
TEST_F(SequenceSchedulerTest, KeepsResponsesInOrderIfConfigured) {
  for (const bool preserves : {false, true}) {
    scheduler_.reset();
    SequenceModelOptions options{.batching = AllControls()};
    options.batching.strategy_choice =
        Strategy::StrategyOldest{.max_candidate_sequences = 4, .preserve_ordering = preserves};
    Make(std::move(options), {.hold_until_waiting = 3}, [](std::span<core::RequestPtr> batch) {
      for (size_t i = batch.size(); i-- > 0;) {
        core::CompleteWithError(std::move(batch[i]), base::InternalError(std::to_string(i)));
      }
    });
    const size_t before = sink_.results().size();
    for (uint64_t id = 1; id <= 3; ++id) Send(id, kStart | kEnd);
    EXPECT_TRUE(sink_.WaitForGone(before + 3));
    std::vector<std::string> results = sink_.results();
    results.erase(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(before));
    EXPECT_EQ(results, preserves ? (std::vector<std::string>{"0", "1", "2"})
                                 : (std::vector<std::string>{"2", "1", "0"}));
    WaitUntilIdle();
  }
}

// S-26: a request without START has not been in the line before.
TEST_F(SequenceSchedulerTest, KeepsTheOrderOfRequestsThatContinueAnIterativeSequence) {
  SequenceModelOptions options{.batching = AllControls()};
  options.batching.strategy_choice =
      Strategy::StrategyOldest{.max_candidate_sequences = 4, .preserve_ordering = true};
  Gate gate;
  int rounds = 0;
  const auto execute = [&](std::span<core::RequestPtr> batch) {
    if (++rounds == 1) gate.Enter();
    for (core::RequestPtr& request : batch) {
      const std::string text = Describe(*request);
      if (text.starts_with("1") && rounds < 4) {
        EXPECT_TRUE(scheduler_->Reschedule(request));
      } else {
        core::CompleteWithError(std::move(request), base::InternalError(text));
      }
    }
  };
  Make(Iterative(std::move(options)), {.hold_until_waiting = 2}, execute);
  Send(uint64_t{1}, kStart);
  Send(uint64_t{2}, kStart);
  gate.WaitUntilEntered();
  Send(uint64_t{2});
  gate.Leave();
  EXPECT_TRUE(sink_.WaitForGone(3));
  EXPECT_EQ(sink_.results(), (std::vector<std::string>{"1", "2s", "2"}));
  WaitUntilIdle();
}

// S-35
TEST_F(SequenceSchedulerTest, ReschedulesNothingElse) {
  bool was_taken = true;
  Make(Direct(), {}, [&](std::span<core::RequestPtr> batch) {
    was_taken = scheduler_->Reschedule(batch[0]);
    EXPECT_NE(batch[0], nullptr);
  });
  Ask(uint64_t{1}, kStart);
  EXPECT_FALSE(was_taken);
}

// S-16
TEST_F(SequenceSchedulerTest, StopLetsSequencesContinueAndStartsNone) {
  Make(Direct());
  Ask(uint64_t{1}, kStart);
  EXPECT_TRUE(scheduler_->Stop(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  EXPECT_EQ(Ask(uint64_t{2}, kStart),
            "Server is stopping, scheduler for model has stopped accepting new inference requests");
  EXPECT_EQ(Ask(uint64_t{1}, kEnd), "");
}

TEST_F(SequenceSchedulerTest, RejectsWaitingRequestsWhenItIsDestroyed) {
  Make(Direct(1), {.hold_until_waiting = 100});
  Send(uint64_t{1}, kStart);
  Send(uint64_t{2}, kStart);
  scheduler_.reset();
  EXPECT_EQ(sink_.final_count(), 2u);
  EXPECT_EQ(model_->statistics().Read().pending_count, 0u);
}

TEST_F(SequenceSchedulerTest, PaddingIsNotCounted) {
  Make(Direct(), {.hold_until_waiting = 1});
  Ask(uint64_t{1}, kStart);
  Ask(uint64_t{2}, kStart);
  EXPECT_EQ(sink_.final_count(), 2u);
  EXPECT_EQ(model_->statistics().Read().pending_count, 0u);
  EXPECT_EQ(model_->pin_count(), 0u);
}

}  // namespace
}  // namespace nereid::schedule
