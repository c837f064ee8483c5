// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/model_file.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::onnxruntime {
namespace {

using testing::HasSubstr;

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value > 0x7F; value >>= 7) {
    bytes.push_back(static_cast<char>(0x80 | (value & 0x7F)));
  }
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string Number(uint32_t field, uint64_t value) { return Varint(field << 3) + Varint(value); }

std::string Message(uint32_t field, const std::string& content) {
  return Varint(field << 3 | 2) + Varint(content.size()) + content;
}

std::string External(const char* name, const char* location) {
  return Message(8, name) + Message(13, Message(1, "location") + Message(2, location)) +
         Message(13, Message(1, "offset") + Message(2, "64")) + Number(14, 1);
}

class ModelFileTest : public testing::Test {
 protected:
  ~ModelFileTest() override { ::unlink(path_.c_str()); }

  backend::Result<ModelFile> Read(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return ModelFile::Read(path_);
  }

 private:
  const std::string path_ = testing::TempDir() + "model_file_test_" + std::to_string(::getpid());
};

// Of the graph, of a constant's attribute, of a graph in an attribute, of a function and of a
// sparse tensor.
std::string WholeModel() {
  const std::string inner = Message(5, External("inner", "inner.bin"));
  const std::string node =
      Message(4, "If") + Message(5, Message(1, "then_branch") + Message(6, inner)) +
      Message(5, Message(1, "value") + Message(5, External("constant", "constant.bin")));
  const std::string sparse = Message(15, Message(1, External("sparse", "sparse.bin")));
  const std::string graph = Message(1, node) + Message(5, External("weights", "weights.bin")) +
                            Message(5, Message(8, "here") + Message(9, std::string(200000, 'x'))) +
                            sparse;
  const std::string function = Message(7, Message(5, Message(5, External("called", "called.bin"))));
  return Number(1, 10) + Message(7, graph) + Message(25, function);
}

TEST_F(ModelFileTest, FindsTheExternalTensorsOfAllGraphs) {
  auto model = Read(WholeModel());
  ASSERT_TRUE(model.ok()) << model.TakeError().message();
  std::vector<std::string> locations;
  for (const ExternalTensor& tensor : model.value().external_tensors) {
    locations.push_back(tensor.name + "=" + tensor.location);
    EXPECT_EQ(tensor.offset, 64u);
    EXPECT_EQ(tensor.length, 0u);
  }
  EXPECT_THAT(locations, testing::UnorderedElementsAre("inner=inner.bin", "constant=constant.bin",
                                                       "weights=weights.bin", "sparse=sparse.bin",
                                                       "called=called.bin"));
}

TEST_F(ModelFileTest, SaysThatAFileIsCutOffWhereverItIsCut) {
  const std::string whole = WholeModel();
  for (const size_t size : {size_t{3}, size_t{60}, whole.size() / 2, whole.size() - 1}) {
    auto model = Read(whole.substr(0, size));
    ASSERT_FALSE(model.ok()) << size;
    EXPECT_THAT(model.TakeError().message(), HasSubstr("is not an ONNX model")) << size;
  }
}

TEST_F(ModelFileTest, RefusesGraphsThatAreNestedWithoutEnd) {
  std::string graph;
  for (int depth = 0; depth < 1000; ++depth) {
    graph = Message(1, Message(5, Message(6, graph)));
  }
  auto model = Read(Message(7, graph));
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.TakeError().message(), HasSubstr("nested more than"));
}

TEST_F(ModelFileTest, StandsWhateverBytesThereAre) {
  std::mt19937 random(7);
  const std::string whole = WholeModel();
  for (int round = 0; round < 300; ++round) {
    std::string content = whole.substr(0, 600);
    for (int change = 0; change < 8; ++change) {
      content[random() % content.size()] = static_cast<char>(random());
    }
    if (auto model = Read(content); !model.ok()) {
      model.TakeError().Ignore();
    }
  }
}

}  // namespace
}  // namespace nereid::onnxruntime
