// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/call_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pytorch_backend/output_binding.h"

namespace nereid::pytorch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kLeaf = R"({"type": null, "context": null, "children_spec": []})";

// As PyTorch writes it for forward(x, {"add": y}, bias=z).
const std::string& Arguments() {
  static const std::string text =
      R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)"
      R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" +
      std::string(kLeaf) +
      R"(, {"type": "builtins.dict", "context": "[\"add\"]", "children_spec": [)" +
      std::string(kLeaf) +
      R"(]}]}, {"type": "builtins.dict", "context": "[\"bias\"]", "children_spec": [)" +
      std::string(kLeaf) + "]}]}]";
  return text;
}

const std::string& OneTensor() {
  static const std::string text = "[1, " + std::string(kLeaf) + "]";
  return text;
}

Signature ReadGood(const std::string& arguments, const std::string& result) {
  auto signature = ReadCallSpec(arguments, result);
  EXPECT_TRUE(signature.ok());
  return signature.ok() ? std::move(signature).value() : Signature();
}

// The numbers of the inputs with these names, in the order in which the model takes them.
std::vector<int> Bind(const std::vector<std::string>& names) {
  const Signature signature = ReadGood(Arguments(), OneTensor());
  std::vector<InputName> inputs;
  for (const std::string& name : names) inputs.push_back({.name = name});
  auto bound = BindInputs(signature, inputs, "m");
  if (bound.ok()) return FlatInputs(bound.value());
  ADD_FAILURE() << bound.TakeError().message();
  return {};
}

TEST(CallSpec, ReadsArgumentsWithAndWithoutNames) {
  const Signature signature = ReadGood(Arguments(), OneTensor());
  EXPECT_EQ(signature.ToString(),
            "forward(ARGS[0]: Tensor, ARGS[1]: Dict[add: Tensor], bias: Tensor) -> Tensor");
  EXPECT_EQ(CountValues(signature), 3U);
}

TEST(CallSpec, InputsHaveTritonsNames) {
  EXPECT_THAT(Bind({"INPUT__0", "INPUT__1", "INPUT__2"}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Bind({"INPUT__2", "INPUT__0", "INPUT__1"}), ElementsAre(1, 2, 0));
  EXPECT_THAT(Bind({"KWARGS[bias]", "ARGS[1][add]", "ARGS[0]"}), ElementsAre(2, 1, 0));
  EXPECT_THAT(Bind({"bias", "ARGS[0]", "ARGS[1][add]"}), ElementsAre(1, 2, 0));
}

TEST(CallSpec, AnInputThatIsMissingOrUnknownIsRefused) {
  const Signature signature = ReadGood(Arguments(), OneTensor());
  const std::vector<InputName> two = {{.name = "ARGS[0]"}, {.name = "KWARGS[bias]"}};
  EXPECT_FALSE(BindInputs(signature, two, "m").ok());
  const std::vector<InputName> other = {
      {.name = "ARGS[0]"}, {.name = "ARGS[1][sub]"}, {.name = "KWARGS[bias]"}};
  auto bound = BindInputs(signature, other, "m");
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(bound.TakeError().message(), HasSubstr("'ARGS[1][sub]' has no place in"));
}

TEST(CallSpec, NestedResultsHavePaths) {
  const Signature signature = ReadGood(
      Arguments(), R"([1, {"type": "builtins.dict", "context": "[\"y\", \"pair\"]",)"
                   R"("children_spec": [{"type": null}, {"type": "builtins.tuple", "context":)"
                   R"("null", "children_spec": [{"type": null}, {"type": null}]}]}])");
  EXPECT_THAT(FlatPaths(signature.result), ElementsAre("[y]", "[pair][0]", "[pair][1]"));
  const std::vector<std::string> names = {"RESULT[pair][1]", "OUTPUT__0", "y"};
  auto places = BindOutputs(signature, names);
  ASSERT_TRUE(places.ok());
  EXPECT_EQ(places.value()[0].path, "[pair][1]");
  EXPECT_EQ(places.value()[1].index, 0);
  EXPECT_EQ(places.value()[2].path, "[y]");
}

TEST(CallSpec, RefusesWhatIsNoSpecification) {
  std::string deep = "[1, ";
  for (int i = 0; i < 1000; ++i) deep += R"({"type": "builtins.tuple", "children_spec": [)";
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), std::string("[1, 2]"),
        std::string("[1, [2]"), OneTensor(), deep, deep + std::string(1000, ']')}) {
    EXPECT_FALSE(ReadCallSpec(text, OneTensor()).ok()) << text.substr(0, 40);
  }
  for (size_t size = 0; size < Arguments().size(); ++size) {
    EXPECT_FALSE(ReadCallSpec(Arguments().substr(0, size), OneTensor()).ok());
  }
}

}  // namespace
}  // namespace nereid::pytorch
