// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/model_config.h"

namespace nereid::schedule {
namespace {

using config::ModelConfig;
using testing::ElementsAre;

ModelConfig Model(const std::string& name, int32_t max_batch_size, std::vector<int64_t> dims,
                  tensor::DataType type = tensor::DataType::kFp32) {
  ModelConfig model;
  model.name = name;
  model.max_batch_size = max_batch_size;
  model.input.push_back({.name = "I", .data_type = type, .dims = dims});
  model.output.push_back({.name = "O", .data_type = type, .dims = dims});
  return model;
}

// An ensemble "e" from steps of (model, input tensors as I0, I1, ..., output tensors as O0, ...).
struct StepText {
  std::string model;
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
};

ModelConfig Ensemble(std::vector<std::string> inputs, std::vector<std::string> outputs,
                     std::vector<StepText> steps, int32_t max_batch_size = 0) {
  ModelConfig ensemble;
  ensemble.name = "e";
  ensemble.max_batch_size = max_batch_size;
  for (const std::string& name : inputs) {
    ensemble.input.push_back({.name = name, .data_type = tensor::DataType::kFp32, .dims = {16}});
  }
  for (const std::string& name : outputs) {
    ensemble.output.push_back({.name = name, .data_type = tensor::DataType::kFp32, .dims = {16}});
  }
  config::Ensembling scheduling;
  for (StepText& step : steps) {
    scheduling.step.push_back({.model_name = step.model,
                               .model_version = -1,
                               .input_map = step.inputs,
                               .output_map = step.outputs});
  }
  ensemble.scheduling_choice = scheduling;
  return ensemble;
}

std::vector<StepModel> Models(const std::vector<bool>& decoupled) {
  std::vector<StepModel> models;
  for (const bool is_decoupled : decoupled) models.push_back({.is_decoupled = is_decoupled});
  return models;
}

EnsemblePlan Compile(const ModelConfig& config, const std::vector<StepModel>& models) {
  auto plan = EnsemblePlan::Compile(config, models);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan).value();
}

ModelConfig Diamond() {
  return Ensemble({"in"}, {"left", "out"},
                  {{"a", {{"I", "in"}}, {{"O", "x"}}},
                   {"b", {{"I", "x"}}, {{"O", "left"}}},
                   {"c", {{"I", "x"}}, {{"O", "right"}}},
                   {"d", {{"I", "left"}, {"J", "right"}}, {{"O", "out"}}}});
}

TEST(EnsemblePlan, LinksStepsThroughTheirTensors) {
  const EnsemblePlan plan = Compile(Diamond(), Models({false, false, false, false}));
  EXPECT_THAT(plan.steps()[0].producers, ElementsAre());
  EXPECT_THAT(plan.steps()[1].producers, ElementsAre(0));
  EXPECT_THAT(plan.steps()[3].producers, ElementsAre(1, 2));
  EXPECT_FALSE(plan.is_decoupled());
  EXPECT_THAT(plan.all().steps, ElementsAre(1, 1, 1, 1));
  // x is read by two steps, left by a step and the response.
  EXPECT_THAT(plan.all().readers, ElementsAre(2, 2, 1, 1));
}

TEST(EnsemblePlan, LeavesOutStepsThatNoRequestedOutputNeeds) {
  const EnsemblePlan plan = Compile(Diamond(), Models({false, false, false, false}));
  EnsembleNeeds needs;
  needs.outputs = {1, 0};  // left
  plan.Prune(needs);
  EXPECT_THAT(needs.steps, ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(needs.readers, ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(needs.output_count, 1u);
}

TEST(EnsemblePlan, CountsATensorThatAStepReadsTwiceOnce) {
  const EnsemblePlan plan = Compile(Ensemble({"in"}, {"out"},
                                             {{"a", {{"I", "in"}}, {{"O", "x"}}},
                                              {"b", {{"I", "x"}, {"J", "x"}}, {{"O", "out"}}}}),
                                    Models({false, false}));
  EXPECT_THAT(plan.steps()[1].input_tensors, testing::SizeIs(1));
  EXPECT_THAT(plan.all().readers, ElementsAre(1, 1));
}

TEST(EnsemblePlan, OpensAGroupBehindEachDecoupledStep) {
  const EnsemblePlan plan = Compile(Ensemble({"in"}, {"out"},
                                             {{"a", {{"I", "in"}}, {{"O", "x"}}},
                                              {"b", {{"I", "x"}}, {{"O", "y"}}},
                                              {"c", {{"I", "y"}}, {{"O", "out"}}}}),
                                    Models({false, true, false}));
  EXPECT_TRUE(plan.is_decoupled());
  EXPECT_EQ(plan.steps()[1].group, 0u);
  EXPECT_EQ(plan.steps()[1].output_group, 1u);
  EXPECT_EQ(plan.steps()[2].group, 1u);
  EXPECT_EQ(plan.output_group(), 1u);
}

TEST(EnsemblePlan, RefusesStepsBehindTwoDecoupledModels) {
  const auto plan = EnsemblePlan::Compile(Ensemble({"in"}, {"out"},
                                                   {{"a", {{"I", "in"}}, {{"O", "x"}}},
                                                    {"b", {{"I", "in"}}, {{"O", "y"}}},
                                                    {"c", {{"I", "x"}, {"J", "y"}}, {{"O", "z"}}},
                                                    {"d", {{"I", "z"}}, {{"O", "out"}}}}),
                                          Models({true, true, false, false}));
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().message(),
            "in ensemble e, step of model 'c' receives inputs originated from different decoupled "
            "models");
}

TEST(EnsemblePlan, FindsProducersThatMustNotWaitForThemselves) {
  const EnsemblePlan plan = Compile(Ensemble({"in"}, {"out"},
                                             {{"a", {{"I", "in"}}, {{"O", "x"}}},
                                              {"b", {{"I", "x"}}, {{"O", "y"}}},
                                              {"a", {{"I", "y"}}, {{"O", "out"}}}}),
                                    Models({true, true, true}));
  EXPECT_FALSE(plan.steps()[0].may_wait);
  EXPECT_TRUE(plan.steps()[1].may_wait);
  EXPECT_TRUE(plan.steps()[2].may_wait);
}

TEST(EnsemblePlan, MakesOnlyDecoupledModelsWait) {
  const EnsemblePlan plan = Compile(Diamond(), Models({true, false, false, false}));
  EXPECT_THAT(plan.steps()[0].behind, testing::UnorderedElementsAre(1, 2, 3));
  EXPECT_THAT(plan.steps()[1].behind, ElementsAre(3));
  EXPECT_THAT(plan.steps()[3].behind, ElementsAre());
  EXPECT_TRUE(plan.steps()[0].may_wait);
  EXPECT_FALSE(plan.steps()[1].may_wait);
}

TEST(EnsemblePlan, FindsProducersThatWouldWaitForModelsWithinALaterStep) {
  using Parts = std::vector<std::string>;
  const auto may_wait = [](const Parts& first, const Parts& second) {
    const EnsemblePlan plan =
        Compile(Ensemble({"in"}, {"out"},
                         {{"a", {{"I", "in"}}, {{"O", "x"}}}, {"b", {{"I", "x"}}, {{"O", "out"}}}}),
                {{.is_decoupled = true, .parts = first}, {.parts = second}});
    return plan.steps()[0].may_wait;
  };
  EXPECT_TRUE(may_wait({}, {}));
  EXPECT_TRUE(may_wait({"c"}, {"d"}));
  EXPECT_FALSE(may_wait({}, {"d", "a"})) << "the later step contains the producer";
  EXPECT_FALSE(may_wait({"c", "b"}, {})) << "the producer contains the later step";
  EXPECT_FALSE(may_wait({"c", "e"}, {"d", "e"})) << "both contain a model";
}

TEST(EnsemblePlan, MakesNoProducerWaitThatHoldsAResource) {
  const ModelConfig config = Ensemble(
      {"in"}, {"out"}, {{"a", {{"I", "in"}}, {{"O", "x"}}}, {"b", {{"I", "x"}}, {{"O", "out"}}}});
  const auto may_wait = [&config](bool first, bool second) {
    const EnsemblePlan plan = Compile(
        config, {{.is_decoupled = true, .holds_resources = first}, {.holds_resources = second}});
    return plan.steps()[0].may_wait;
  };
  EXPECT_TRUE(may_wait(false, false));
  EXPECT_TRUE(may_wait(false, true));
  EXPECT_FALSE(may_wait(true, false)) << "others may stand in line in front of the later step";
  EXPECT_FALSE(may_wait(true, true));
}

std::string CheckError(const ModelConfig& ensemble, std::vector<ModelConfig> models) {
  std::vector<const ModelConfig*> pointers;
  for (const ModelConfig& model : models) pointers.push_back(&model);
  return std::string(CheckEnsembleSteps(ensemble, pointers).message());
}

ModelConfig OneStep(std::map<std::string, std::string> inputs = {{"I", "in"}},
                    std::map<std::string, std::string> outputs = {{"O", "out"}},
                    int32_t max_batch_size = 0) {
  return Ensemble({"in"}, {"out"}, {{"m", inputs, outputs}}, max_batch_size);
}

TEST(CheckEnsembleSteps, AcceptsWhatFits) {
  EXPECT_EQ(CheckError(OneStep(), {Model("m", 0, {16})}), "");
  EXPECT_EQ(CheckError(OneStep(), {Model("m", 0, {-1})}), "");
  // A model with batching takes tensors of one that has the batch among its dimensions, and vice
  // versa.
  EXPECT_EQ(CheckError(OneStep({{"I", "in"}}, {{"O", "out"}}, 8), {Model("m", 0, {-1, 16})}), "");
  EXPECT_EQ(CheckError(OneStep({{"I", "in"}}, {{"O", "out"}}, 8), {Model("m", 8, {16})}), "");
}

TEST(CheckEnsembleSteps, NamesWhatDoesNotFit) {
  EXPECT_EQ(CheckError(OneStep(), {Model("m", 0, {4})}),
            "in ensemble e, ensemble tensor in: inconsistent shape: [16] is inferred from model e "
            "while [4] is inferred from model m");
  EXPECT_EQ(CheckError(OneStep(), {Model("m", 0, {16}, tensor::DataType::kInt8)}),
            "in ensemble e, ensemble tensor in: inconsistent data type: TYPE_FP32 is inferred from "
            "model e while TYPE_INT8 is inferred from model m");
  EXPECT_EQ(CheckError(OneStep({{"X", "in"}}), {Model("m", 0, {16})}),
            "in ensemble e, ensemble tensor in is mapping to non-existing input X in model m");
  EXPECT_EQ(CheckError(OneStep({{"I", "in"}}, {{"X", "out"}}), {Model("m", 0, {16})}),
            "in ensemble e, ensemble tensor out is mapped from non-existing output X in model m");
  EXPECT_EQ(CheckError(OneStep({{"I", "in"}}, {{"O", "out"}}, 8), {Model("m", 4, {16})}),
            "ensemble e allows maximum batch size 8, but it contains model m which only allows "
            "maximum batch size to be 4");
}

TEST(CheckEnsembleSteps, AsksForEveryInputThatIsNotOptional) {
  ModelConfig model = Model("m", 0, {16});
  model.input.push_back({.name = "J", .data_type = tensor::DataType::kFp32, .dims = {16}});
  EXPECT_EQ(CheckError(OneStep(), {model}),
            "in ensemble e, input J in model m is not mapped to any ensemble tensors");
  model.input.back().optional = true;
  EXPECT_EQ(CheckError(OneStep(), {model}), "");
}

}  // namespace
}  // namespace nereid::schedule
