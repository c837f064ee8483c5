// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend_kit/config.h"
#include "tensorflow_backend/completion.h"
#include "tensorflow_backend/types.h"

namespace nereid::tensorflow {
namespace {

using backend::ModelConfig;
using testing::HasSubstr;

TensorInfo Info(const std::string& place, std::vector<int64_t> dims, int type = 1) {
  return {.place = place, .type = type, .has_rank = true, .dims = std::move(dims)};
}
TensorInfo Unranked(const std::string& place) { return {.place = place, .type = 1, .dims = {}}; }

Signature OneToOne(TensorInfo input, TensorInfo output) {
  return {.inputs = {{"x", std::move(input)}}, .outputs = {{"y", std::move(output)}}};
}

ModelConfig Config(const std::string& json) {
  auto config = ModelConfig::Parse("{" + json + "}");
  return std::move(config).value();
}
std::string Io(const std::string& key, const std::string& name, const std::string& dims,
               const std::string& type = "TYPE_FP32", const std::string& more = "") {
  return backend::StrCat("\"", key, "\":[{\"name\":\"", name, "\",\"data_type\":\"", type,
                         "\",\"dims\":[", dims, "]", more, "}]");
}

std::string Check(const ModelConfig& config, const Signature& signature) {
  auto ports = backend::Ports::FromConfig(config);
  const backend::Error error =
      CheckSignature(ports.value(), signature, config.max_batch_size(), "m");
  return error.message();
}

TEST(TensorFlowBinding, TakesWhatFits) {
  const Signature signature = OneToOne(Info("x:0", {-1, 3}), Info("y:0", {-1, -1}));
  EXPECT_EQ(
      Check(Config("\"max_batch_size\":4," + Io("input", "x", "3") + "," + Io("output", "y", "7")),
            signature),
      "");
  EXPECT_EQ(Check(Config(Io("input", "x", "2,3") + "," + Io("output", "y", "-1,-1")), signature),
            "");
}

TEST(TensorFlowBinding, TakesAnyShapeForAnUnknownRankAndOneElementForNone) {
  EXPECT_EQ(Check(Config(Io("input", "x", "2,3") + "," + Io("output", "y", "1")),
                  OneToOne(Unranked("x:0"), Info("y:0", {}))),
            "");
}

TEST(TensorFlowBinding, GivesAnInputWithoutDimensionsThoseOfTheConfiguration) {
  const auto opened = [](const std::string& max_batch_size, const std::string& dims) {
    const ModelConfig config = Config("\"max_batch_size\":" + max_batch_size + "," +
                                      Io("input", "x", dims) + "," + Io("output", "y", "-1"));
    Signature signature = OneToOne(Info("x:0", {}), Info("y:0", {-1, -1}));
    auto ports = backend::Ports::FromConfig(config);
    OpenScalars(ports.value(), config.max_batch_size(), &signature);
    return !signature.inputs["x"].has_rank;
  };
  EXPECT_TRUE(opened("0", "16"));
  EXPECT_TRUE(opened("8", "16"));
  EXPECT_TRUE(opened("8", "1")) << "one element for each row";
  EXPECT_FALSE(opened("0", "1")) << "one element is what a scalar has";
}

TEST(TensorFlowBinding, RefusesShapesInTritonsWords) {
  const Signature signature = OneToOne(Info("x:0", {-1, 3}), Info("y:0", {-1}));
  EXPECT_EQ(Check(Config(Io("input", "x", "3") + "," + Io("output", "y", "-1")), signature),
            "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,3]) but the model "
            "configuration specifies 1 dimensions (shape [3])");
  EXPECT_EQ(
      Check(Config("\"max_batch_size\":4," + Io("input", "x", "4") + "," + Io("output", "y", "1")),
            signature),
      "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,3]) but the model "
      "configuration specifies 2 dimensions (an initial batch dimension because "
      "max_batch_size > 0 followed by the explicit tensor shape, making complete shape "
      "[-1,4])");
  EXPECT_THAT(
      Check(Config("\"max_batch_size\":4," + Io("input", "x", "3") + "," + Io("output", "y", "1")),
            OneToOne(Info("x:0", {2, 3}), Info("y:0", {-1}))),
      HasSubstr("the first dimension must be -1; but shape expected by the model is [2,3]"));
}

TEST(TensorFlowBinding, RefusesNamesCountsAndTypesInTritonsWords) {
  Signature signature = OneToOne(Info("x:0", {-1}), Info("y:0", {-1}));
  EXPECT_EQ(Check(Config(Io("input", "z", "-1") + "," + Io("output", "y", "-1")), signature),
            "unexpected inference input 'z', allowed inputs are: x");
  EXPECT_EQ(Check(Config(Io("input", "x", "-1") + "," + Io("output", "z", "-1")), signature),
            "unexpected inference output 'z', allowed outputs are: y");
  signature.inputs["other"] = Info("other:0", {-1});
  EXPECT_EQ(Check(Config(Io("input", "x", "-1") + "," + Io("output", "y", "-1")), signature),
            "unable to load model 'm', configuration expects 1 inputs, model provides 2");
}

TEST(TensorFlowBinding, RefusesSparseTensors) {
  EXPECT_THAT(Check(Config(Io("input", "x", "-1") + "," + Io("output", "y", "-1")),
                    OneToOne(Info("", {-1}), Info("y:0", {-1}))),
              HasSubstr("is a sparse or composite tensor"));
}

TEST(TensorFlowBinding, RefusesControlsThatTheModelLacks) {
  const auto config = Config(Io("input", "x", "-1") + "," + Io("output", "y", "-1") +
                             R"(,"sequence_batching":{"control_input":[{"name":"start","control":[
         {"kind":"CONTROL_SEQUENCE_START","fp32_false_true":[0,1]}]}]})");
  EXPECT_EQ(Check(config, OneToOne(Info("x:0", {-1}), Info("y:0", {-1}))),
            "configuration specified sequence control 'start', but model does not provide that "
            "input");
}

TEST(TensorFlowGraphDef, NamesWhatCouldBeThere) {
  Graph graph;
  graph.nodes = {{.name = "x", .operation = "Placeholder", .info = Info("x", {-1})},
                 {.name = "y", .operation = "Neg", .inputs = {"x"}}};
  const auto check = [&](const std::string& json) {
    auto ports = backend::Ports::FromConfig(Config(json));
    const backend::Error error = CheckNodes(ports.value(), graph, "m");
    return std::string(error.message());
  };
  EXPECT_EQ(check(Io("input", "x:0", "-1") + "," + Io("output", "y", "-1")), "");
  EXPECT_EQ(check(Io("input", "y", "-1") + "," + Io("output", "y", "-1")),
            "unexpected inference input 'y', allowed inputs are: x");
  EXPECT_EQ(check(Io("input", "x", "-1") + "," + Io("output", "x", "-1")),
            "unexpected inference output 'x', allowed outputs are: y");
  graph.nodes.clear();
  EXPECT_EQ(check(Io("input", "x", "-1")), "model m has an empty network");
}

TEST(TensorFlowCompletion, SeesBatchesInDimensionsOfTheConfiguration) {
  const Signature signature = OneToOne(Info("x:0", {-1, 3}), Info("y:0", {-1, 3}));
  const auto hint = [&](const std::string& json) {
    auto found = HintOf(Config(json), signature, "m");
    return found.ok() ? std::optional(found.value()) : std::nullopt;
  };
  EXPECT_EQ(hint(""), BatchHint::kNone);
  EXPECT_EQ(hint(Io("input", "x", "3")), BatchHint::kBatched);
  EXPECT_EQ(hint(Io("output", "y", "-1,3")), BatchHint::kUnbatched);
  EXPECT_EQ(hint(Io("input", "x", "3") + "," + Io("output", "y", "-1,3")), std::nullopt);
}

TEST(TensorFlowCompletion, SeesNoHintInATensorWithoutDimensions) {
  const Signature signature = OneToOne(Info("x:0", {}), Info("y:0", {-1, 3}));
  auto hint = HintOf(Config(Io("input", "x", "3") + "," + Io("output", "y", "3")), signature, "m");
  ASSERT_TRUE(hint.ok());
  EXPECT_EQ(hint.value(), BatchHint::kBatched);
  EXPECT_FALSE(CanBatch(signature));
  EXPECT_EQ(FindUnbatched(signature), std::nullopt);
  EXPECT_EQ(FindUnbatched(OneToOne(Info("x:0", {-1}), Info("y:0", {2, 3}))), "y");
}

TEST(TensorFlowCompletion, FillsWhatIsLeftOut) {
  Signature signature = OneToOne(Info("x:0", {-1, 3}), Info("y:0", {-1}));
  signature.inputs["z"] = Info("z:0", {-1, -1});
  ModelConfig config = Config(R"("max_batch_size":2,"input":[{"name":"x"}])");
  ASSERT_TRUE(Complete(signature, "m", &config).ok());
  auto ports = backend::Ports::FromConfig(config);
  ASSERT_EQ(ports.value().inputs.size(), 2U);
  EXPECT_EQ(ports.value().inputs[0].dims, std::vector<int64_t>{3});
  EXPECT_EQ(ports.value().inputs[1].name, "z");
  EXPECT_EQ(ports.value().inputs[1].dims, std::vector<int64_t>{-1});
  EXPECT_EQ(ports.value().outputs[0].dims, std::vector<int64_t>{}) << "one element per row";
  EXPECT_NE(backend::Find(config.json(), "dynamic_batching"), nullptr);
}

TEST(TensorFlowCompletion, LeavesOutputsOutThatAreNotListed) {
  Signature signature = OneToOne(Info("x:0", {-1}), Info("y:0", {-1}));
  signature.outputs["z"] = Info("z:0", {-1});
  ModelConfig config = Config(R"("output":[{"name":"z"}])");
  ASSERT_TRUE(Complete(signature, "m", &config).ok());
  EXPECT_EQ(config.tensors("output").Size(), 1U);
}

TEST(TensorFlowCompletion, CannotTellWhatHasNoRankOrNoTypeOfTritons) {
  ModelConfig config = Config("");
  backend::Error error = Complete(OneToOne(Unranked("x:0"), Info("y:0", {-1})), "m", &config);
  EXPECT_THAT(error.message(),
              HasSubstr("Unable to autofill for 'm': the rank of model tensor 'x'"));
  ModelConfig batched = Config("\"max_batch_size\":8");
  error = Complete(OneToOne(Info("x:0", {}), Info("y:0", {-1})), "m", &batched);
  EXPECT_THAT(error.message(),
              HasSubstr("Unable to autofill for 'm': the rank of model tensor 'x'"));
  error = Complete(OneToOne(Info("x:0", {-1}, 8), Info("y:0", {-1})), "m", &config);
  EXPECT_STREQ(error.message(),
               "unable to process input 'x' for 'm', unsupported datatype 'DT_COMPLEX64'");
}

}  // namespace
}  // namespace nereid::tensorflow
