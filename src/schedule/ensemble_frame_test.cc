// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_frame.h"

#include <array>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

enum Step : uint32_t { kFirst, kLeft, kRight };

// in -> first -> x; x -> left -> out; x and in -> right -> other
EnsemblePlan MakePlan() {
  config::ModelConfig ensemble;
  ensemble.name = "e";
  ensemble.input.push_back({.name = "in", .dims = {-1}});
  ensemble.output.push_back({.name = "out", .dims = {-1}});
  ensemble.output.push_back({.name = "other", .dims = {-1}});
  config::Ensembling steps;
  steps.step = {
      {.model_name = "first", .input_map = {{"I", "in"}}, .output_map = {{"O", "x"}}},
      {.model_name = "left", .input_map = {{"I", "x"}}, .output_map = {{"O", "out"}}},
      {.model_name = "right",
       .input_map = {{"I", "x"}, {"J", "in"}},
       .output_map = {{"O", "other"}}},
  };
  ensemble.scheduling_choice = steps;
  auto plan = EnsemblePlan::Compile(ensemble, std::vector<StepModel>(3));
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

class EnsembleFrameTest : public testing::Test {
 protected:
  ~EnsembleFrameTest() override { frame_->Unreference(); }

  // Makes a frame for a request of some outputs.
  void Need(std::vector<uint8_t> outputs) {
    frame_->Unreference();
    needs_.outputs = std::move(outputs);
    plan_.Prune(needs_);
    frame_ = &EnsembleFrame::Take(plan_, needs_, 0);
  }
  void SetInput() { frame_->Set(plan_.input_tensors()[0], {.input = &input_}); }
  std::vector<uint32_t> TakeReady() { return std::exchange(frame_->ready(), {}); }
  // Makes a response of one byte, and the request that it belongs to.
  core::ResponsePtr Respond(std::vector<core::Parameter> parameters = {}) {
    requests_.push_back(core::Request::Create(sink_));
    core::ResponsePtr response = core::Response::Create(*requests_.back());
    response->AddOutput("O", tensor::DataType::kUint8, std::array<int64_t, 1>{1});
    for (const core::Parameter& parameter : parameters) response->AddParameter(parameter);
    return response;
  }

  core::FakeSink sink_;
  std::vector<core::RequestPtr> requests_;
  core::RequestInput input_;
  const EnsemblePlan plan_ = MakePlan();
  EnsembleNeeds needs_;
  EnsembleFrame* frame_ = &EnsembleFrame::Take(plan_, plan_.all(), 0);
};

TEST_F(EnsembleFrameTest, ReadiesAStepWhenItsLastInputIsSet) {
  EXPECT_THAT(TakeReady(), IsEmpty());
  SetInput();
  EXPECT_THAT(TakeReady(), ElementsAre(kFirst));
  EXPECT_TRUE(frame_->TakeResponse(kFirst, Respond(), {}).ok());
  EXPECT_THAT(TakeReady(), ElementsAre(kLeft, kRight));
}

TEST_F(EnsembleFrameTest, ReadiesOnlyStepsThatTheRequestNeeds) {
  Need({1, 0});
  SetInput();
  EXPECT_TRUE(frame_->TakeResponse(kFirst, Respond(), {}).ok());
  EXPECT_THAT(TakeReady(), ElementsAre(kFirst, kLeft));
  EXPECT_FALSE(frame_->has_all_outputs());
  EXPECT_TRUE(frame_->TakeResponse(kLeft, Respond(), {}).ok());
  EXPECT_TRUE(frame_->has_all_outputs());
}

TEST_F(EnsembleFrameTest, HasAllOutputsWhenEachIsSet) {
  SetInput();
  EXPECT_TRUE(frame_->TakeResponse(kFirst, Respond(), {}).ok());
  EXPECT_TRUE(frame_->TakeResponse(kLeft, Respond(), {}).ok());
  EXPECT_FALSE(frame_->has_all_outputs());
  EXPECT_TRUE(frame_->TakeResponse(kRight, Respond(), {}).ok());
  EXPECT_TRUE(frame_->has_all_outputs());
}

TEST_F(EnsembleFrameTest, KeepsTheFirstValueOfATensor) {
  SetInput();
  core::RequestInput second;
  frame_->Set(plan_.input_tensors()[0], {.input = &second});
  EXPECT_EQ(&input_, frame_->value(plan_.input_tensors()[0]).input);
  EXPECT_THAT(TakeReady(), ElementsAre(kFirst)) << "once";
}

TEST_F(EnsembleFrameTest, DropsAResponseWithItsLastReader) {
  SetInput();
  EXPECT_TRUE(frame_->TakeResponse(kFirst, Respond(), {}).ok());
  EnsembleSource& source = frame_->source(kFirst);
  source.DropReader();
  EXPECT_NE(nullptr, source.response) << "one of two steps has read it";
  source.DropReader();
  EXPECT_EQ(nullptr, source.response);
}

TEST_F(EnsembleFrameTest, ContinuesTheSequenceOfTheRequestUnlessTheResponseNamesOne) {
  const EnsembleSequence own{.id = uint64_t{7}, .flags = core::kSequenceStart};
  EXPECT_TRUE(frame_->TakeResponse(kFirst, Respond(), own).ok());
  EXPECT_EQ(own, frame_->source(kFirst).sequence);
  EXPECT_TRUE(frame_
                  ->TakeResponse(kLeft,
                                 Respond({{.name = "sequence_id", .value = int64_t{8}},
                                          {.name = "sequence_end", .value = true}}),
                                 own)
                  .ok());
  EXPECT_EQ((EnsembleSequence{.id = uint64_t{8}, .flags = core::kSequenceEnd}),
            frame_->source(kLeft).sequence);
}

TEST_F(EnsembleFrameTest, RefusesSequenceParametersOfOtherTypes) {
  EXPECT_EQ(
      "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or "
      "TRITONSERVER_PARAMETER_STRING",
      frame_->TakeResponse(kFirst, Respond({{.name = "sequence_id", .value = true}}), {})
          .message());
  EXPECT_EQ(
      "expect parameter 'sequence_start' to be TRITONSERVER_PARAMETER_BOOL",
      frame_->TakeResponse(kLeft, Respond({{.name = "sequence_start", .value = int64_t{1}}}), {})
          .message());
}

}  // namespace
}  // namespace nereid::schedule
