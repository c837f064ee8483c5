// SPDX-License-Identifier: Apache-2.0
// The decisions of the two strategies, on clock readings.
#include <gtest/gtest.h>

#include "core/sequence_states.h"
#include "schedule/direct_source.h"
#include "schedule/oldest_source.h"
#include "schedule/testing/sequences.h"

namespace nereid::schedule {
namespace {

using Strategy = config::SequenceBatching;
constexpr uint32_t kStart = core::kSequenceStart;
constexpr uint32_t kEnd = core::kSequenceEnd;

class SequenceSourceTest : public testing::Test {
 protected:
  void Make(SequenceModelOptions model, size_t instances = 1, size_t hold = 0,
            size_t hold_backlog = 0) {
    std::shared_ptr<const core::StatePlan> states;
    if (!model.batching.state.empty()) {
      auto compiled = core::StatePlan::Compile(model.batching, model.max_batch_size, {});
      ASSERT_TRUE(compiled.ok());
      states = std::move(compiled).value();
    }
    model_ = MakeSequenceModel(std::move(model));
    plan_ = std::make_unique<SequencePlan>(model_->config());
    table_ = std::make_unique<SequenceTable>(
        SequenceTable::Options{.instance_count = instances,
                               .slots_per_instance = plan_->slots_per_instance(),
                               .idle_ns = plan_->idle_ns()});
    SequenceSourceOptions options{.model = *model_,
                                  .plan = *plan_,
                                  .table = *table_,
                                  .states = std::move(states),
                                  .hold_until_waiting = hold,
                                  .hold_until_backlog = hold_backlog};
    if (plan_->is_oldest()) {
      source_ = std::make_unique<OldestSource>(std::move(options));
    } else {
      source_ = std::make_unique<DirectSource>(std::move(options));
    }
  }
  void Push(uint64_t id, uint32_t flags = 0, uint64_t now_ns = 1, int64_t size = 1) {
    Sequence* const sequence = table_->Find(id, (flags & kStart) != 0);
    ASSERT_NE(sequence, nullptr);
    core::RequestPtr request = MakeSequenceRequest(*model_, sink_, id, flags, size);
    request->times.queue_start_ns = now_ns;
    table_->Admit(*sequence, std::move(request), now_ns);
  }
  // Returns what an instance runs now, in the form of Describe; "wait" or "wait until N" if it runs
  // nothing.
  std::string Run(uint64_t now_ns = 1, size_t instance = 0) {
    const BatchDecision decision = source_->Decide(instance, now_ns);
    if (decision.request_count == 0) {
      return decision.look_again_at_ns ? "wait until " + std::to_string(*decision.look_again_at_ns)
                                       : "wait";
    }
    reason_ = decision.reason;
    std::vector<core::RequestPtr> batch;
    source_->Take(instance, decision, batch);
    const std::string text = Describe(batch);
    for (core::RequestPtr& request : batch) {
      if (request->is_padding) {
        const core::RequestInput& input = request->inputs[0];
        for (size_t i = 0; i < input.first.size; ++i) EXPECT_EQ(input.first.data[i], std::byte{0});
        continue;
      }
      Sequence& sequence = Sequence::Of(*request);
      table_->OnReleased(sequence, *request, now_ns);
      request.reset();
      table_->OnGone(sequence, now_ns);
    }
    return text;
  }

  // Takes what an instance runs now, and ends all of it but the padding at `position`, which it
  // returns as a backend that keeps it does.
  core::RequestPtr KeepPadding(size_t position) {
    std::vector<core::RequestPtr> batch;
    source_->Take(0, source_->Decide(0, 1), batch);
    core::RequestPtr padding = std::move(batch.at(position));
    EXPECT_TRUE(padding->is_padding);
    for (core::RequestPtr& request : batch) {
      if (request == nullptr || request->is_padding) continue;
      Sequence& sequence = Sequence::Of(*request);
      table_->OnReleased(sequence, *request, 1);
      request.reset();
      table_->OnGone(sequence, 1);
    }
    return padding;
  }

  core::FakeSink sink_;
  std::unique_ptr<core::Model> model_;
  std::unique_ptr<SequencePlan> plan_;
  std::unique_ptr<SequenceTable> table_;
  std::unique_ptr<SequenceSource> source_;
  core::BatchClosed reason_{};
};

SequenceModelOptions Direct(float utilization = 0, uint64_t delay_us = 0) {
  SequenceModelOptions options{.batching = AllControls()};
  options.batching.strategy_choice = Strategy::StrategyDirect{
      .max_queue_delay_microseconds = delay_us, .minimum_slot_utilization = utilization};
  return options;
}

SequenceModelOptions Oldest(int32_t candidates, std::vector<int32_t> preferred = {},
                            uint64_t delay_us = 0) {
  SequenceModelOptions options{.batching = AllControls()};
  options.batching.strategy_choice =
      Strategy::StrategyOldest{.max_candidate_sequences = candidates,
                               .preferred_batch_size = std::move(preferred),
                               .max_queue_delay_microseconds = delay_us};
  return options;
}

TEST_F(SequenceSourceTest, DirectKeepsEachSequenceAtItsPosition) {
  Make(Direct());
  Push(11, kStart);
  Push(12, kStart);
  Push(13, kStart);
  Push(12);
  Push(13, kEnd);
  EXPECT_EQ(Run(), "11s 12s 13s");
  EXPECT_EQ(Run(), "- 12 13e");
  Push(11, kEnd);
  EXPECT_EQ(Run(), "11e");
  EXPECT_EQ(Run(), "wait");
}

TEST_F(SequenceSourceTest, DirectRunsOneRequestOfASequencePerBatch) {
  Make(Direct());
  Push(11, kStart);
  Push(11);
  Push(11, kEnd);
  EXPECT_EQ(Run(), "11s");
  EXPECT_EQ(Run(), "11");
  EXPECT_EQ(Run(), "11e");
}

TEST_F(SequenceSourceTest, DirectFillsAFreedSlotFromTheBacklog) {
  Make(Direct());
  for (uint64_t id = 1; id <= 4; ++id) Push(id, kStart | (id == 2 ? kEnd : 0));
  Push(5, kStart | kEnd);
  Push(4);
  EXPECT_EQ(Run(), "1s 2se 3s 4s");
  EXPECT_EQ(Run(), "- 5se - 4");
}

TEST_F(SequenceSourceTest, DirectWaitsForSlotsToFillOrTheDelay) {
  Make(Direct(0.5F, 1000));
  Push(1, kStart, 100);
  EXPECT_EQ(Run(200), "wait until 1000100");
  Push(2, kStart, 300);
  EXPECT_EQ(Run(300), "1s 2s");
  EXPECT_EQ(reason_, core::BatchClosed::kPreferred);
  Push(2, 0, 400);
  EXPECT_EQ(Run(500), "wait until 1000400");
  EXPECT_EQ(Run(1000400), "- 2");
  EXPECT_EQ(reason_, core::BatchClosed::kDelay);
}

TEST_F(SequenceSourceTest, DirectDoesNotWaitWithADelayAlone) {
  Make(Direct(0, 1000));
  Push(1, kStart);
  EXPECT_EQ(Run(), "1s");
}

TEST_F(SequenceSourceTest, DirectSplitsBatchesWhereShapesDiffer) {
  SequenceModelOptions options = Direct();
  options.dims = {-1};
  Make(std::move(options));
  Push(1, kStart, 1, 2);
  Push(2, kStart, 1, 3);
  Push(3, kStart, 1, 2);
  EXPECT_EQ(Run(), "1s - 3s");
  EXPECT_EQ(Run(), "- 2s");
}

// S-18
TEST_F(SequenceSourceTest, PaddingThatABackendKeepsHasStatesOfItsOwn) {
  SequenceModelOptions options = Direct();
  options.batching.state.push_back({.input_name = "STATE_IN",
                                    .output_name = "STATE_OUT",
                                    .data_type = tensor::DataType::kInt32,
                                    .dims = {1}});
  Make(std::move(options));
  Push(1, kStart);
  Push(2, kStart);
  EXPECT_EQ(Run(), "1s 2s");
  const int64_t shape[] = {1, 1};
  const auto write = [&shape](core::Request& padding, int32_t value) {
    const auto state = padding.states->New("STATE_OUT", tensor::DataType::kInt32, shape);
    ASSERT_TRUE(state.ok());
    const auto buffer = (*state)->Buffer(sizeof value);
    ASSERT_TRUE(buffer.ok());
    std::memcpy(*buffer, &value, sizeof value);
    ASSERT_TRUE((*state)->Update().ok());
  };
  std::vector<core::RequestPtr> kept;
  for (int32_t i = 0; i < 3; ++i) {
    Push(2);
    kept.push_back(KeepPadding(0));
    write(*kept.back(), i + 1);
  }
  for (int32_t i = 0; i < 3; ++i) {
    core::Request& padding = *kept[static_cast<size_t>(i)];
    EXPECT_EQ(ControlValue(padding, "STATE_IN"), 0) << "what it reads";
    int32_t written = 0;
    ASSERT_EQ(padding.states->value(0).byte_size, sizeof written);
    std::memcpy(&written, padding.states->value(0).data(), sizeof written);
    EXPECT_EQ(written, i + 1) << "what it has written";
  }
  // The states of padding that is gone are used again, as zeros.
  const core::SequenceStates* const first = kept.front()->states;
  kept.erase(kept.begin());
  Push(2);
  kept.push_back(KeepPadding(0));
  EXPECT_EQ(kept.back()->states, first);
  EXPECT_EQ(ControlValue(*kept.back(), "STATE_IN"), 0);
  kept.clear();
  EXPECT_EQ(model_->pin_count(), 0u);
}

TEST_F(SequenceSourceTest, DirectWithoutBatchesRunsOneSequencePerInstance) {
  SequenceModelOptions options = Direct();
  options.max_batch_size = 0;
  Make(std::move(options), 2);
  Push(1, kStart);
  Push(2, kStart);
  EXPECT_EQ(Run(1, 0), "1s");
  EXPECT_EQ(Run(1, 1), "2s");
}

TEST_F(SequenceSourceTest, HoldsUntilEnoughWait) {
  Make(Direct(), 1, 4, 1);
  for (uint64_t id = 1; id <= 4; ++id) Push(id, kStart | kEnd);
  EXPECT_EQ(Run(), "wait");
  Push(5, kStart | kEnd);
  EXPECT_EQ(Run(), "1se 2se 3se 4se");
  EXPECT_EQ(Run(), "5se");
}

TEST_F(SequenceSourceTest, ControlsHaveTheShapeOfOneElement) {
  Make(Direct());
  core::RequestPtr request = MakeSequenceRequest(*model_, sink_, uint64_t{5}, 0);
  plan_->AttachControls(*request);
  for (const char* name : {"START", "END", "READY", "CORRID"}) {
    const core::RequestInput* const input = request->FindInput(name);
    ASSERT_NE(input, nullptr);
    EXPECT_EQ(tensor::ToString(input->shape), "[1,1]") << name;
    EXPECT_EQ(input->model_index, core::kServerInput);
  }
}

TEST_F(SequenceSourceTest, OldestTakesThoseThatWereReadyFirst) {
  Make(Oldest(8));
  for (uint64_t id = 1; id <= 5; ++id) Push(id, kStart);
  Push(1);
  EXPECT_EQ(Run(), "1s 2s 3s 4s");
  EXPECT_EQ(reason_, core::BatchClosed::kFull);
  EXPECT_EQ(Run(), "5s 1");
}

TEST_F(SequenceSourceTest, OldestHasNoMoreSequencesThanCandidates) {
  Make(Oldest(2));
  Push(1, kStart | kEnd);
  Push(2, kStart);
  Push(3, kStart);
  EXPECT_EQ(Run(), "1se 2s");
  EXPECT_EQ(Run(), "3s");
}

TEST_F(SequenceSourceTest, OldestWaitsForPreferredSizesUpToItsDelay) {
  Make(Oldest(8, {2, 3}, 1000));
  Push(1, kStart, 100);
  EXPECT_EQ(Run(200), "wait until 1000100");
  Push(2, kStart, 300);
  EXPECT_EQ(Run(300), "1s 2s");
  for (uint64_t id = 3; id <= 6; ++id) Push(id, kStart, 400);
  EXPECT_EQ(Run(400), "3s 4s 5s");
  EXPECT_EQ(Run(400), "wait until 1000400");
  EXPECT_EQ(Run(1000400), "6s");
}

TEST_F(SequenceSourceTest, OldestCountsTheDelayFromTheEndOfThePreviousRequest) {
  Make(Oldest(8, {2}, 1000));
  Push(1, kStart, 100);
  Push(1, 0, 100);
  EXPECT_EQ(Run(1000100), "1s");
  EXPECT_EQ(Run(1000100), "wait until 2000100");
}

TEST(SequencePlan, NamesTheTypeOfTheWrongKindOfId) {
  core::FakeSink sink;
  const auto model = MakeSequenceModel(Direct());
  const SequencePlan plan(model->config());
  core::RequestPtr request = MakeSequenceRequest(*model, sink, std::string_view("name"), kStart);
  EXPECT_EQ(
      plan.CheckCorrelationId(*request).message(),
      "[request id: <id_unknown>] sequence batching control 'CORRID' data-type is 'BYTES', but "
      "model 'model' expects 'UINT64'");
}

TEST(SequencePlan, ShowsTextsAsOneElement) {
  core::FakeSink sink;
  SequenceModelOptions options = Direct();
  options.batching.control_input.back().control[0].data_type = tensor::DataType::kBytes;
  const auto model = MakeSequenceModel(std::move(options));
  const SequencePlan plan(model->config());
  core::RequestPtr request = MakeSequenceRequest(*model, sink, std::string_view("abc"), kStart);
  plan.AttachControls(*request);
  const core::DataChunk& chunk = request->FindInput("CORRID")->first;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(chunk.data), chunk.size),
            std::string("\3\0\0\0abc", 7));
  core::RequestPtr padding = MakeSequenceRequest(*model, sink, uint64_t{0}, 0);
  plan.AttachNotReady(*padding);
  EXPECT_EQ(padding->FindInput("CORRID")->byte_size, 4u);
}

}  // namespace
}  // namespace nereid::schedule
