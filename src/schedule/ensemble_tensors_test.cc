// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_tensors.h"

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

using testing::ElementsAre;

core::ModelTensor Tensor(const char* name, std::vector<int64_t> dims) {
  core::ModelTensor tensor;
  tensor.name = name;
  tensor.type = tensor::DataType::kUint8;
  tensor.dims = tensor::Shape(dims);
  tensor.model_dims = tensor::Shape(dims);
  return tensor;
}

std::unique_ptr<core::Model> MakeModel(const char* name, core::ModelTensor input,
                                       core::ModelTensor output, int64_t max_batch_size) {
  core::ModelOptions options;
  options.name = name;
  options.version = 1;
  options.config = std::make_shared<config::ModelConfig>();
  options.max_batch_size = max_batch_size;
  options.inputs = {std::move(input)};
  options.outputs = {std::move(output)};
  return std::make_unique<core::Model>(std::move(options));
}

// An ensemble of one step, "in" -> "out". A test chooses the batching of the ensemble and of its
// model.
class EnsembleTensorsTest : public testing::Test {
 protected:
  EnsembleTensorsTest() {
    config::ModelConfig config;
    config.name = "e";
    config.input.push_back({.name = "in", .dims = {2}});
    config.output.push_back({.name = "out", .dims = {2}});
    config::Ensembling steps;
    steps.step = {{.model_name = "m", .input_map = {{"I", "in"}}, .output_map = {{"O", "out"}}}};
    config.scheduling_choice = steps;
    auto plan = EnsemblePlan::Compile(config, std::vector<StepModel>(1));
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    plan_ = std::make_unique<EnsemblePlan>(std::move(plan).value());
    frame_ = &EnsembleFrame::Take(*plan_, plan_->all(), 0);
    client_ = core::Request::Create(sink_);
    step_request_ = core::Request::Create(sink_);
  }
  ~EnsembleTensorsTest() override { frame_->Unreference(); }

  void UseModel(int64_t max_batch_size) {
    model_ = MakeModel("m", Tensor("I", {2}), Tensor("O", {2}), max_batch_size);
    NEREID_CHECK(model_->TryPin());
    step_request_->model = core::ModelHandle(*model_);
  }
  void SetInput(const tensor::Shape& shape, uint32_t batch_size) {
    core::RequestInput& input = client_->AddInput("in", tensor::DataType::kUint8);
    input.shape = shape;
    input.Append({.data = data_.data(), .size = data_.size(), .where = {}});
    client_->batch_size = batch_size;
    frame_->Set(plan_->input_tensors()[0], {.input = &input, .batch_size = batch_size});
  }
  const core::RequestInput& FillInput() {
    FillStepInputs(*step_request_, plan_->steps()[0], *frame_);
    return step_request_->inputs.at(0);
  }
  // Makes the step's response to a request of `batch_size`.
  core::ResponseOutput* Respond(std::vector<int64_t> shape, uint32_t batch_size) {
    step_request_->batch_size = batch_size;
    core::ResponsePtr response = core::Response::Create(*step_request_);
    core::ResponseOutput* const output = response->AddOutput("O", tensor::DataType::kUint8, shape);
    EXPECT_TRUE(response->AllocateBuffer(*output, kSize, {}, false).ok());
    EXPECT_TRUE(frame_->TakeResponse(0, std::move(response), sequence_).ok());
    return &frame_->source(0).response->output(0);
  }

  static constexpr size_t kSize = 4096;  // more than a response keeps in its own memory
  const std::vector<std::byte> data_{2, std::byte{7}};
  core::FakeSink sink_;
  std::unique_ptr<EnsemblePlan> plan_;
  std::unique_ptr<core::Model> model_;
  std::unique_ptr<core::Model> ensemble_ = MakeModel("e", Tensor("in", {2}), Tensor("out", {2}), 0);
  EnsembleSequence sequence_;
  core::RequestPtr client_;
  core::RequestPtr step_request_;
  EnsembleFrame* frame_ = nullptr;
};

TEST_F(EnsembleTensorsTest, PassesAnInputOnWithoutACopy) {
  UseModel(0);
  SetInput({2}, 0);
  const core::RequestInput& input = FillInput();
  EXPECT_EQ("I", input.name);
  EXPECT_THAT(input.shape.dims(), ElementsAre(2));
  EXPECT_EQ(data_.data(), input.first.data);
}

TEST_F(EnsembleTensorsTest, AddsTheBatchDimensionForAModelThatBatches) {
  UseModel(8);
  SetInput({2}, 0);
  EXPECT_THAT(FillInput().shape.dims(), ElementsAre(1, 2));
}

TEST_F(EnsembleTensorsTest, TakesTheBatchDimensionAwayForAModelThatDoesNotBatch) {
  UseModel(0);
  SetInput({1, 2}, 1);
  EXPECT_THAT(FillInput().shape.dims(), ElementsAre(2));
}

TEST_F(EnsembleTensorsTest, LeavesAShapeWhoseFirstDimensionIsNoBatchOfOne) {
  UseModel(0);
  SetInput({3, 2}, 1);
  EXPECT_THAT(FillInput().shape.dims(), ElementsAre(3, 2)) << "the step's model will refuse it";
}

TEST_F(EnsembleTensorsTest, LeavesAnOutputWithoutDimensionsAsItIs) {
  UseModel(8);
  Respond({}, 1);
  const base::Result<core::ResponsePtr> response =
      MakeEnsembleResponse(*client_, *ensemble_, *frame_);
  ASSERT_TRUE(response.ok());
  ASSERT_EQ(1u, (*response)->output_count());
  EXPECT_EQ(0u, (*response)->output(0).shape.rank());
}

TEST_F(EnsembleTensorsTest, LeavesOutAnInputWithoutData) {
  UseModel(0);
  frame_->Set(plan_->input_tensors()[0], {});
  FillStepInputs(*step_request_, plan_->steps()[0], *frame_);
  EXPECT_TRUE(step_request_->inputs.empty());
}

TEST_F(EnsembleTensorsTest, RespondsWithTheBytesOfTheStepsOutput) {
  UseModel(8);
  const std::byte* const data = Respond({1, 2}, 1)->data;
  const base::Result<core::ResponsePtr> response =
      MakeEnsembleResponse(*client_, *ensemble_, *frame_);
  ASSERT_TRUE(response.ok());
  ASSERT_EQ(1u, (*response)->output_count());
  EXPECT_EQ("out", (*response)->output(0).name);
  EXPECT_THAT((*response)->output(0).shape.dims(), ElementsAre(2)) << "the ensemble has no batch";
  EXPECT_EQ(data, (*response)->output(0).data);
  EXPECT_EQ(nullptr, frame_->source(0).response) << "the step's response is not read any more";
}

TEST_F(EnsembleTensorsTest, ReportsTheSequenceOfTheOutputs) {
  UseModel(0);
  sequence_ = {.id = uint64_t{5}, .flags = core::kSequenceEnd};
  Respond({2}, 0);
  const base::Result<core::ResponsePtr> response =
      MakeEnsembleResponse(*client_, *ensemble_, *frame_);
  ASSERT_TRUE(response.ok());
  const auto& parameters = (*response)->parameters();
  ASSERT_EQ(3u, parameters.size());
  EXPECT_EQ(int64_t{5}, std::get<int64_t>(parameters[0].value));
  EXPECT_FALSE(std::get<bool>(parameters[1].value)) << parameters[1].name;
  EXPECT_TRUE(std::get<bool>(parameters[2].value)) << parameters[2].name;
}

TEST_F(EnsembleTensorsTest, StartsAStepInTheClientsSequence) {
  client_->correlation_id = uint64_t{9};
  client_->flags = core::kSequenceStart;
  EXPECT_EQ((EnsembleSequence{.id = uint64_t{9}, .flags = core::kSequenceStart}),
            SequenceOfStep(*client_, plan_->steps()[0], *frame_));
}

}  // namespace
}  // namespace nereid::schedule
