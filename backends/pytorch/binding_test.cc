// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pytorch_backend/output_binding.h"

namespace nereid::pytorch {
namespace {

using ::testing::HasSubstr;
using Kind = ValueType::Kind;

ValueType Leaf(Kind kind = Kind::kTensor, std::string text = "Tensor") {
  return {.kind = kind, .text = std::move(text)};
}
ValueType Of(Kind kind, std::vector<ValueType> elements, std::vector<std::string> fields = {}) {
  return {.kind = kind, .elements = std::move(elements), .fields = std::move(fields), .text = "T"};
}

Signature Takes(std::vector<Argument> arguments) {
  return {.arguments = std::move(arguments), .result = Leaf()};
}
Signature Returns(ValueType result) { return {.arguments = {}, .result = std::move(result)}; }

// The inputs in the order in which the arguments take them, as "x=1 y=0", with "(…)" for what is
// nested.
std::string Describe(const ValueNode& node) {
  if (node.is_absent()) return "-";
  if (node.input >= 0) return std::to_string(node.input);
  std::string text;
  for (size_t c = 0; c < node.children.size(); ++c) {
    text += (c == 0 ? "" : " ") + (node.keys.empty() ? "" : node.keys[c] + ":") +
            Describe(node.children[c]);
  }
  return "(" + text + ")";
}

std::string Bind(const Signature& signature, std::vector<InputName> inputs) {
  auto bound = BindInputs(signature, inputs, "m");
  if (!bound.ok()) return bound.TakeError().message();
  std::string text;
  for (const ValueNode& node : bound.value()) {
    text += (text.empty() ? "" : " ") + Describe(node);
  }
  return text;
}
std::string Bind(const Signature& signature, std::initializer_list<const char*> names) {
  std::vector<InputName> inputs;
  for (const char* name : names) inputs.push_back({.name = name});
  return Bind(signature, std::move(inputs));
}

std::string Outputs(const Signature& signature, std::vector<std::string> names) {
  auto places = BindOutputs(signature, names);
  if (!places.ok()) return places.TakeError().message();
  std::string text;
  for (const OutputPlace& place : places.value()) {
    text += (text.empty() ? "" : " ") + place.path + "#" + std::to_string(place.index);
  }
  return text;
}

TEST(BindInputs, TakesNamesOfArgumentsInAnyOrder) {
  EXPECT_EQ(Bind(Takes({{"x", Leaf()}, {"y", Leaf()}}), {"y", "x"}), "1 0");
}

TEST(BindInputs, TakesNumbersBehindTwoUnderscores) {
  const Signature two = Takes({{"x", Leaf()}, {"y", Leaf()}});
  EXPECT_EQ(Bind(two, {"INPUT__1", "INPUT__0"}), "1 0");
  EXPECT_EQ(Bind(two, {"a__0", "b__1"}), "0 1");
}

TEST(BindInputs, TakesTheOrderOfTheConfigurationIfNamesSayNothing) {
  EXPECT_EQ(Bind(Takes({{"x", Leaf()}, {"y", Leaf()}}), {"second", "first"}), "0 1");
  // One name without a number takes the others' meaning away, as in Triton.
  EXPECT_EQ(Bind(Takes({{"x", Leaf()}, {"y", Leaf()}}), {"INPUT__1", "first"}), "0 1");
}

TEST(BindInputs, TakesKeysOfTheOnlyDictionary) {
  const Signature dict = Takes({{"x", Of(Kind::kDict, {Leaf()})}});
  EXPECT_EQ(Bind(dict, {"b", "a"}), "(b:0 a:1)");
  EXPECT_EQ(Bind(dict, {"INPUT__0", "INPUT__1"}), "(INPUT__0:0 INPUT__1:1)");
  EXPECT_EQ(Bind(dict, {"x[b]", "x[a]"}), "(b:0 a:1)");
}

TEST(BindInputs, NamesPartsOfNestedArguments) {
  const Signature nested = Takes({{"x", Leaf()},
                                  {"pair", Of(Kind::kTuple, {Leaf(), Of(Kind::kDict, {Leaf()})})},
                                  {"many", Of(Kind::kList, {Leaf()})}});
  EXPECT_EQ(Bind(nested, {"many[1]", "pair[1][mask]", "x", "pair[0]", "many[0]"}),
            "2 (3 (mask:1)) (4 0)");
  EXPECT_EQ(Bind(nested, {"ARGS[0]", "ARGS[1][0]", "ARGS[1][1][k]", "KWARGS[many][0]"}),
            "0 (1 (k:2)) (3)");
}

TEST(BindInputs, CountsPartsOfTuplesAndGivesAListTheRest) {
  const Signature nested = Takes({{"pair", Of(Kind::kTuple, {Leaf(), Leaf()})},
                                  {"many", Of(Kind::kList, {Leaf()})},
                                  {"last", Leaf()}});
  EXPECT_EQ(Bind(nested, {"I__0", "I__1", "I__2", "I__3", "I__4"}), "(0 1) (2 3) 4");
  EXPECT_EQ(Bind(nested, {"a", "b", "c"}), "(0 1) - 2");
}

TEST(BindInputs, LeavesOptionalArgumentsAbsent) {
  const Signature optional = Takes({{"x", Leaf()},
                                    {"mask", Of(Kind::kOptional, {Leaf()})},
                                    {"scale", Leaf(Kind::kFloat, "float"), true}});
  EXPECT_EQ(Bind(optional, {"x"}), "0 - -");
  EXPECT_EQ(Bind(optional, {"x", "scale"}), "0 - 1");
  EXPECT_EQ(Bind(optional, {"INPUT__0", "INPUT__1"}), "0 1 -");
}

TEST(BindInputs, RefusesTooFewAndTooManyInputs) {
  const Signature two = Takes({{"x", Leaf()}, {"y", Leaf()}});
  EXPECT_THAT(
      Bind(two, {"INPUT__0"}),
      HasSubstr("unable to load model 'm', configuration expects 1 inputs, model provides 2"));
  EXPECT_THAT(Bind(two, {"INPUT__0", "INPUT__1", "INPUT__2"}),
              HasSubstr("configuration expects 3 inputs, model provides 2"));
  EXPECT_THAT(Bind(two, {"x"}),
              HasSubstr("configuration expects 1 inputs, model provides 2: no input is for 'y'"));
  EXPECT_THAT(Bind(two, {"INPUT__0", "INPUT__2"}), HasSubstr("input 'INPUT__2' has no place in"));
}

TEST(BindInputs, RefusesPositionsAmongDictionaries) {
  const Signature two = Takes({{"x", Leaf()}, {"d", Of(Kind::kDict, {Leaf()})}});
  EXPECT_THAT(Bind(two, {"x", "key"}),
              HasSubstr("Multiple inputs of kind DictType were detected. Only a single input of "
                        "type Dict(str, Tensor) is supported, unless inputs are named"));
  EXPECT_EQ(Bind(two, {"x", "d[key]"}), "0 (key:1)");
}

TEST(BindInputs, RefusesTwoInputsForOneArgument) {
  EXPECT_THAT(Bind(Takes({{"x", Leaf()}, {"y", Leaf()}}), {"INPUT__0", "B__0"}),
              HasSubstr("'B__0' and another input are the same argument"));
}

TEST(BindInputs, RefusesOneInputForANestedArgument) {
  EXPECT_THAT(Bind(Takes({{"x", Of(Kind::kTuple, {Leaf(), Leaf()})}}), {"x"}),
              HasSubstr("name its parts, for example 'x[0]'"));
}

TEST(BindInputs, RefusesArgumentsThatNoRequestCanCarry) {
  EXPECT_THAT(Bind(Takes({{"x", Leaf(Kind::kOther, "Device")}}), {"x"}),
              HasSubstr("An input of type 'Device' was detected in the model"));
  EXPECT_EQ(Bind(Takes({{"x", Leaf()}, {"d", Leaf(Kind::kOther, "Device"), true}}), {"x"}), "0 -");
}

TEST(BindInputs, FindsControlsAndStatesByNumberOrName) {
  const Signature three = Takes({{"x", Leaf()}, {"start", Leaf()}, {"state", Leaf()}});
  EXPECT_EQ(Bind(three, {{.name = "x"},
                         {.name = "START__1", .is_listed = false},
                         {.name = "state", .is_listed = false}}),
            "0 1 2");
  EXPECT_THAT(Bind(three, {{.name = "x"}, {.name = "START", .is_listed = false}}),
              HasSubstr("'START' does not follow <name>__<index> naming convention."));
}

TEST(BindInputs, BoundsNumbersFromOutside) {
  EXPECT_THAT(Bind(Takes({{"x", Of(Kind::kList, {Leaf()})}}), {"x[999999]"}),
              HasSubstr("has no place"));
  EXPECT_EQ(Bind(Takes({{"x", Leaf()}}), {"INPUT__99999999999999999999"}), "0");
}

TEST(BindOutputs, TakesNumbersOrElseTheOrder) {
  const Signature pair = Returns(Of(Kind::kTuple, {Leaf(), Leaf()}));
  EXPECT_EQ(Outputs(pair, {"OUTPUT__1", "OUTPUT__0"}), "#1 #0");
  EXPECT_EQ(Outputs(pair, {"label", "OUTPUT__0"}), "#0 #1");
  EXPECT_EQ(Outputs(Returns(Leaf()), {"RESULT"}), "#0");
}

TEST(BindOutputs, TakesKeysFieldsAndPaths) {
  EXPECT_EQ(Outputs(Returns(Of(Kind::kDict, {Leaf()})), {"scores", "boxes[0]", "RESULT[a][b]"}),
            "[scores]#-1 [boxes][0]#-1 [a][b]#-1");
  EXPECT_EQ(Outputs(Returns(Of(Kind::kDict, {Leaf()})), {"OUTPUT__1"}), "[OUTPUT__1]#1");
  EXPECT_EQ(Outputs(Returns(Of(Kind::kTuple, {Leaf(), Leaf()}, {"a", "b"})), {"b", "OUTPUT__0"}),
            "[b]#-1 #0");
}

TEST(BindOutputs, RefusesANumberBeyondTheResult) {
  EXPECT_THAT(Outputs(Returns(Leaf()), {"OUTPUT__1"}),
              HasSubstr("The output OUTPUT__1 in the model configuration refers to an output index "
                        "which doesn't exist. This model has 1 outputs"));
  EXPECT_THAT(Outputs(Returns(Of(Kind::kTuple, {Leaf(), Leaf()})), {"a", "b", "c"}),
              HasSubstr("This model has 2 outputs"));
  // How many a list has is known when it is there.
  EXPECT_EQ(Outputs(Returns(Of(Kind::kList, {Leaf()})), {"OUTPUT__7"}), "#7");
}

TEST(ParsePath, ReadsNamesAndBrackets) {
  EXPECT_EQ(ParsePath("x[0][key]"), (Path{"x", "0", "key"}));
  EXPECT_EQ(ParsePath("[key]"), (Path{"key"}));
  EXPECT_EQ(ParsePath("plain name"), (Path{"plain name"}));
  for (const char* wrong : {"x[", "x[]", "x[0", "x]0[", "x[0]y", "x[0]]"}) {
    EXPECT_EQ(ParsePath(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace nereid::pytorch
