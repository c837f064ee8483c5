// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/model_file.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnxruntime_backend/testing/messages.h"

namespace nereid::onnxruntime {
namespace {

using testing::HasSubstr;

std::string External(const char* name, const char* location) {
  return Bytes(8, name) + Bytes(13, Bytes(1, "location") + Bytes(2, location)) +
         Bytes(13, Bytes(1, "offset") + Bytes(2, "64")) + Number(14, 1);
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

// A model with external tensors everywhere: in its graph, in a constant's attribute, in a graph in
// an attribute, in a function and in a sparse tensor.
std::string WholeModel() {
  const std::string inner = Bytes(5, External("inner", "inner.bin"));
  const std::string node =
      Bytes(4, "If") + Bytes(5, Bytes(1, "then_branch") + Bytes(6, inner)) +
      Bytes(5, Bytes(1, "value") + Bytes(5, External("constant", "constant.bin")));
  const std::string sparse = Bytes(15, Bytes(1, External("sparse", "sparse.bin")));
  const std::string graph = Bytes(1, node) + Bytes(5, External("weights", "weights.bin")) +
                            Bytes(5, Bytes(8, "here") + Bytes(9, std::string(200000, 'x'))) +
                            sparse;
  const std::string function = Bytes(7, Bytes(5, Bytes(5, External("called", "called.bin"))));
  return Number(1, 10) + Bytes(7, graph) + Bytes(25, function);
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

TEST_F(ModelFileTest, ReportsATruncatedFileWhereverItIsTruncated) {
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
    graph = Bytes(1, Bytes(5, Bytes(6, graph)));
  }
  auto model = Read(Bytes(7, graph));
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.TakeError().message(), HasSubstr("nested more than"));
}

TEST_F(ModelFileTest, SurvivesArbitraryBytes) {
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
