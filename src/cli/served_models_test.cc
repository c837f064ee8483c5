// SPDX-License-Identifier: Apache-2.0
#include "cli/served_models.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/file_test.h"
#include "config/print.h"

namespace nereid::cli {
namespace {

using config::ModelConfig;
using testing::ElementsAre;
using testing::HasSubstr;

class ServedModelsTest : public FileTest {
 protected:
  std::unique_ptr<ServedModels> Serve(const std::vector<std::string>& names,
                                      const ModelSettings& settings = {}) {
    std::vector<ModelFile> models;
    for (const std::string& name : names) models.push_back(*RecognizeModelFile(Path(name)));
    return *ServedModels::Create(std::move(models), settings);
  }
  std::vector<std::string> Names(const repository::Store& store, const std::string& folder) {
    std::vector<std::string> names;
    const auto entries = store.List(folder);
    EXPECT_TRUE(entries.ok());
    for (const repository::Entry& entry : *entries) names.push_back(entry.name);
    return names;
  }
};

TEST_F(ServedModelsTest, TheServerSeesOnlyWhatBelongsToAModelAndItsBackendTheWholeFolder) {
  Write("net.onnx");
  Write("net.onnx.data");
  Write("weights/part");
  Write("other.onnx");
  const auto served = Serve({"net.onnx"});
  const std::string folder = served->repositories().at(0) + "/net";
  const auto store = served->store().make();
  EXPECT_THAT(Names(*store, folder), ElementsAre("1", "config.pbtxt"));
  EXPECT_THAT(Names(*store, folder + "/1"), ElementsAre("net.onnx", "net.onnx.data"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/1/weights/part"));
  EXPECT_TRUE(folder.starts_with(served->store().prefix));
}

TEST_F(ServedModelsTest, AFileBesideTheModelIsNoChangeOfIt) {
  Write("net.onnx");
  const auto served = Serve({"net.onnx"});
  const auto store = served->store().make();
  const std::string version = served->repositories().at(0) + "/net/1";
  const int64_t before = *store->ModifiedNs(version);
  Write("other.txt");
  std::filesystem::last_write_time(
      Path(""), std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(*store->ModifiedNs(version), before);
  EXPECT_GT(*store->ModifiedNs(version + "/net.onnx"), 0);
}

TEST_F(ServedModelsTest, FilesWithoutNeighboursAreLinkedOneByOne) {
  Write("net.pt");
  Write("models/a/config.pbtxt");
  Write("b/config.pbtxt");
  Write("b/1/model.onnx");
  const auto served = Serve({"net.pt", "models", "b"});
  EXPECT_EQ(served->repositories().size(), 2u);
  EXPECT_EQ(served->repositories().at(0), Path("models"));
  const std::string folder = served->repositories().at(1);
  EXPECT_EQ(std::filesystem::read_symlink(folder + "/net/1/net.pt"), Path("net.pt"));
  EXPECT_EQ(std::filesystem::read_symlink(folder + "/b"), Path("b"));
}

TEST_F(ServedModelsTest, TheFolderGoesAndTheFilesStay) {
  Write("net.onnx");
  Write("b/config.pbtxt");
  auto served = Serve({"net.onnx", "b"});
  const std::string folder = served->repositories().at(0);
  EXPECT_TRUE(std::filesystem::exists(folder));
  served.reset();
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_TRUE(std::filesystem::exists(Path("net.onnx")));
  EXPECT_TRUE(std::filesystem::exists(Path("b/config.pbtxt")));
}

TEST_F(ServedModelsTest, MessagesHaveThePathsOfTheUser) {
  Write("net.onnx");
  const auto served = Serve({"net.onnx"});
  const std::string folder = served->repositories().at(0);
  EXPECT_EQ(served->WithOwnPaths("cannot read '" + folder + "/net/1/net.onnx'"),
            "cannot read '" + Path("net.onnx") + "'");
  EXPECT_EQ(served->WithOwnPaths("cannot read 'net/1/net.onnx'"),
            "cannot read '" + Path("net.onnx") + "'");
}

TEST_F(ServedModelsTest, AConfigurationHasWhatTheFileAndTheOptionsSay) {
  Write("net.pt");
  const ModelFile model = *RecognizeModelFile(Path("net.pt"));
  const ModelSettings settings{
      .max_batch_size = 8, .inputs = {*ParseTensor("x:FP32:-1,3,-1"), *ParseTensor("n:INT64:-1")}};
  const ModelConfig config = *MakeModelConfig(model, settings);
  EXPECT_EQ(config.name, "net");
  EXPECT_EQ(config.backend, "pytorch");
  EXPECT_EQ(config.platform, "pytorch_libtorch");
  EXPECT_EQ(config.default_model_filename, "net.pt");
  EXPECT_EQ(config.max_batch_size, 8);
  EXPECT_NE(config.dynamic_batching(), nullptr);
  EXPECT_THAT(config.input[0].dims, ElementsAre(3, -1));
  EXPECT_THAT(config.input[1].dims, ElementsAre(1));
  EXPECT_TRUE(config.input[1].reshape && config.input[1].reshape->empty());
}

TEST_F(ServedModelsTest, WithoutOptionsTheBackendDecides) {
  Write("net.onnx");
  const ModelConfig config = *MakeModelConfig(*RecognizeModelFile(Path("net.onnx")), {});
  EXPECT_FALSE(config.gives_max_batch_size);
  EXPECT_EQ(config.dynamic_batching(), nullptr);
  EXPECT_TRUE(config.input.empty());
}

TEST_F(ServedModelsTest, TheConfigurationOfTheUserIsKept) {
  Write("net.pt");
  ModelSettings settings;
  settings.config = ModelConfig{.name = "other", .max_batch_size = 2};
  settings.config->parameters["INFERENCE_MODE"] = "false";
  const ModelConfig config = *MakeModelConfig(*RecognizeModelFile(Path("net.pt")), settings);
  EXPECT_EQ(config.name, "net");
  EXPECT_EQ(config.max_batch_size, 2);
  EXPECT_EQ(config.parameters.at("INFERENCE_MODE"), "false");
}

TEST_F(ServedModelsTest, ABatchNeedsAFreeFirstDimension) {
  Write("net.pt");
  const ModelSettings settings{.max_batch_size = 8, .inputs = {*ParseTensor("x:FP32:3,224")}};
  const auto config = MakeModelConfig(*RecognizeModelFile(Path("net.pt")), settings);
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("expected -1, found 3"));
}

TEST_F(ServedModelsTest, ALibraryBesideTheModelIsNotRunInPlaceOfItsBackend) {
  Write("net.onnx");
  Write("libtriton_onnxruntime.so");
  const auto served = ServedModels::Create({*RecognizeModelFile(Path("net.onnx"))}, {});
  EXPECT_THAT(std::string(served.status().message()),
              HasSubstr("would be run in place of the server's backend"));
}

TEST(ParseTensor, ReadsNameTypeAndDimensions) {
  const auto tensor = ParseTensor("serving:x:0:TYPE_STRING:-1,2");
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->name, "serving:x:0");
  EXPECT_EQ(tensor->data_type, tensor::DataType::kBytes);
  EXPECT_THAT(tensor->dims, ElementsAre(-1, 2));
}

TEST(ParseTensor, SaysWhatIsWrong) {
  const auto why = [](const char* text) {
    return std::string(ParseTensor(text).status().message());
  };
  EXPECT_THAT(why("x"), HasSubstr("there is no type"));
  EXPECT_THAT(why("x:FP32"), HasSubstr("there are no dimensions"));
  EXPECT_THAT(why("x:FP32:"), HasSubstr("there are no dimensions"));
  EXPECT_THAT(why(":FP32:1"), HasSubstr("there is no name"));
  EXPECT_THAT(why("x:float:1"), HasSubstr("'float' is not a type"));
  EXPECT_THAT(why("x:FP32:1,two"), HasSubstr("'two' is not a dimension"));
  EXPECT_THAT(why("x:FP32:0"), HasSubstr("'0' is not a dimension"));
  EXPECT_THAT(why("x:FP32:1"), "");
}

}  // namespace
}  // namespace nereid::cli
