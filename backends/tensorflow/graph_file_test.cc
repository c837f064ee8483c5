// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/graph_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backend_kit/testing/test_folder.h"

namespace nereid::tensorflow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A protobuf field with bytes, or with a number below 128.
std::string Bytes(int number, const std::string& content) {
  std::string field{static_cast<char>(number << 3 | 2)};
  size_t size = content.size();
  for (; size > 127; size >>= 7) field.push_back(static_cast<char>((size & 127) | 128));
  field.push_back(static_cast<char>(size));
  return field + content;
}
std::string Number(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

std::string Node(const std::string& name, const std::string& operation,
                 const std::vector<std::string>& inputs = {}, const std::string& attributes = "") {
  std::string node = Bytes(1, name) + Bytes(2, operation);
  for (const std::string& input : inputs) {
    node += Bytes(3, input);
  }
  return node + attributes;
}
std::string Attribute(const std::string& name, const std::string& value) {
  return Bytes(5, Bytes(1, name) + Bytes(2, value));
}
std::string Shape(const std::vector<int>& dims) {
  std::string shape;
  for (const int dim : dims) {
    shape += Bytes(2, Number(1, dim));
  }
  return shape;
}
std::string Info(const std::string& place, int type, const std::string& shape) {
  return Bytes(1, place) + Number(2, type) + Bytes(3, shape);
}
std::string Entry(int number, const std::string& key, const std::string& value) {
  return Bytes(number, Bytes(1, key) + Bytes(2, value));
}

const std::string kGraph =
    Bytes(1, Node("x", "Placeholder", {},
                  Attribute("dtype", Number(6, 1)) + Attribute("shape", Bytes(7, Shape({2, 3}))))) +
    Bytes(1, Node("w", "VarHandleOp")) + Bytes(1, Node("y", "Add", {"x:0", "w:1"})) +
    Bytes(1, Node("z", "Neg", {"^w"}));

std::string Tensor(int type, const std::vector<int>& dims, const std::string& values = "") {
  return Bytes(8, Number(1, type) + Bytes(2, Shape(dims)) + values);
}
std::string Constant(const std::string& name, const std::string& tensor) {
  return Node(name, "Const", {}, Attribute("value", tensor));
}
std::string Variable(const std::string& operation, int type, const std::vector<int>& dims) {
  return Node("v", operation, {},
              Attribute("dtype", Number(6, type)) + Attribute("shape", Bytes(7, Shape(dims))));
}

// Writes files into a folder of its own.
class TensorFlowFile : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }
  std::string Refusal(const std::string& content) {
    auto graph = ReadGraphDef(Write("model.graphdef", content));
    return graph.ok() ? std::string("accepted") : std::string(graph.TakeError().message());
  }
  backend::Result<std::vector<MetaGraph>> Saved(const std::string& content) {
    Write("saved_model.pb", content);
    return ReadSavedModel(folder_.string());
  }

  const backend::TestFolder own_;
  const std::filesystem::path& folder_ = own_.path();
};

TEST_F(TensorFlowFile, HasPlaceholdersAndNodes) {
  auto graph = ReadGraphDef(Write("model.graphdef", kGraph));
  ASSERT_TRUE(graph.ok());
  const auto inputs = graph.value().Placeholders();
  ASSERT_EQ(inputs.size(), 1U);
  EXPECT_EQ(inputs.at("x").type, 1);
  EXPECT_THAT(inputs.at("x").dims, ElementsAre(2, 3));
  EXPECT_THAT(graph.value().OtherNodes(), ElementsAre("w", "y", "z"));
  EXPECT_THAT(graph.value().LastNodes(), ElementsAre("y", "z"));
}

TEST_F(TensorFlowFile, TellsWhatAnOutputDependsOn) {
  auto graph = ReadGraphDef(Write("model.graphdef", kGraph));
  ASSERT_TRUE(graph.ok());
  EXPECT_THAT(graph.value().OperationsOf({"y:0"}),
              ElementsAre("Add", "Placeholder", "VarHandleOp"));
  EXPECT_THAT(graph.value().OperationsOf({"z"}), ElementsAre("Neg", "VarHandleOp"));
}

TEST_F(TensorFlowFile, TellsWhatFunctionsDo) {
  const auto function = [](const std::string& name, const std::string& node) {
    return Bytes(1, Bytes(1, Bytes(1, name)) + Bytes(3, node));
  };
  const std::string calls = Attribute("f", Bytes(10, Bytes(1, "outer")));
  const std::string library = function("outer", Node("n", "inner")) +
                              function("inner", Node("m", "Assign")) +
                              function("unused", Node("m", "Enqueue"));
  auto graph = ReadGraphDef(Write(
      "model.graphdef", Bytes(1, Node("y", "PartitionedCall", {}, calls)) + Bytes(2, library)));
  ASSERT_TRUE(graph.ok());
  EXPECT_THAT(graph.value().OperationsOf({"y"}), ElementsAre("Assign", "PartitionedCall"));
}

TEST_F(TensorFlowFile, TellsTheBytesOfItsWeights) {
  const auto bytes = [this](const std::string& node) {
    auto graph = ReadGraphDef(Write("model.graphdef", Bytes(1, node)));
    return graph.ok() ? std::optional(graph.value().weight_bytes) : std::nullopt;
  };
  EXPECT_EQ(bytes(Constant("c", Tensor(1, {3, 5}))), 60U) << "also if one value stands for all";
  EXPECT_EQ(bytes(Constant("c", Tensor(2, {}))), 8U);
  EXPECT_EQ(bytes(Constant("c", Tensor(1, {3, 0}))), 0U);
  EXPECT_EQ(
      bytes(Constant("c", Tensor(7, {2}, Bytes(8, "short") + Bytes(8, std::string(30, 'a'))))),
      2 * 24U + 30U);
  for (const char* operation : {"VarHandleOp", "VariableV2", "Variable"}) {
    EXPECT_EQ(bytes(Variable(operation, 19, {7, 2})), 28U);
  }
  EXPECT_EQ(bytes(Variable("Placeholder", 1, {7, 2})), 0U);
  EXPECT_EQ(bytes(Node("n", "Other", {}, Attribute("value", Tensor(1, {3, 5})))), 0U);
  EXPECT_EQ(bytes(Node("v", "VarHandleOp", {}, Attribute("dtype", Number(6, 1)))), 0U)
      << "the shape is not known";
  const std::string function =
      Bytes(1, Bytes(1, Bytes(1, "f")) + Bytes(3, Constant("c", Tensor(1, {4}))));
  auto graph = ReadGraphDef(Write("model.graphdef", kGraph + Bytes(2, function)));
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph.value().weight_bytes, 16U);
}

TEST_F(TensorFlowFile, HasSignaturesOfEachGraph) {
  const std::string signature =
      Entry(1, "x", Info("in:0", 1, Shape({3}))) + Entry(2, "y", Info("out:1", 7, Number(3, 1)));
  auto graphs = Saved(Number(1, 1) + Bytes(2, Bytes(1, Bytes(4, "serve") + Bytes(4, "gpu")) +
                                                  Bytes(2, kGraph) + Entry(5, "main", signature)));
  ASSERT_TRUE(graphs.ok());
  ASSERT_EQ(graphs.value().size(), 1U);
  const MetaGraph& graph = graphs.value()[0];
  EXPECT_THAT(graph.tags, ElementsAre("serve", "gpu"));
  EXPECT_EQ(graph.signatures.at("main").inputs.at("x").place, "in:0");
  EXPECT_THAT(graph.signatures.at("main").inputs.at("x").dims, ElementsAre(3));
  EXPECT_FALSE(graph.signatures.at("main").outputs.at("y").has_rank);
  EXPECT_EQ(graph.signatures.at("main").outputs.at("y").type, 7);
  EXPECT_EQ(graph.graph.nodes.size(), 4U);
}

TEST_F(TensorFlowFile, IsRefusedWithWhatItIs) {
  EXPECT_THAT(Refusal(""), HasSubstr("it is empty"));
  EXPECT_THAT(Refusal(std::string(1000, '\0')), HasSubstr("nothing but zeros"));
  EXPECT_THAT(Refusal(kGraph.substr(0, kGraph.size() - 2)), HasSubstr("damaged, cut off"));
  EXPECT_THAT(Refusal("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("Git LFS"));
  EXPECT_THAT(Refusal("<!DOCTYPE html><html></html>"), HasSubstr("a web page"));
  EXPECT_THAT(Refusal("PK\x03\x04 and so on"), HasSubstr("an archive"));
  EXPECT_THAT(Refusal("\x89HDF\r\n"), HasSubstr("HDF5"));
  EXPECT_THAT(Refusal("node {\n name: \"x\"\n}"), HasSubstr("it is text"));
  EXPECT_THAT(Refusal(std::string("\x1c\0\0\0TFL3....", 12)), HasSubstr("TensorFlow Lite"));
  EXPECT_THAT(Refusal(Bytes(1, Bytes(7, "no node"))), HasSubstr("something else"));
}

TEST_F(TensorFlowFile, OfASavedModelIsInAFolder) {
  auto file = ReadSavedModel(Write("file", kGraph));
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.TakeError().message(), HasSubstr("a SavedModel is a folder"));
  auto empty = ReadSavedModel(folder_.string());
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.TakeError().message(), HasSubstr("has no saved_model.pb"));
  Write("saved_model.pbtxt", "saved_model_schema_version: 1");
  auto text = ReadSavedModel(folder_.string());
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.TakeError().message(), HasSubstr("as_text=False"));
}

TEST_F(TensorFlowFile, WithoutAGraphIsNoSavedModel) {
  auto graphs = Saved(Number(1, 1));
  ASSERT_FALSE(graphs.ok());
  EXPECT_THAT(graphs.TakeError().message(), HasSubstr("is not the graph of a SavedModel"));
}

}  // namespace
}  // namespace nereid::tensorflow
