// SPDX-License-Identifier: Apache-2.0
#include "config/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "config/labels.h"

namespace nereid::config {
namespace {

namespace fs = std::filesystem;

// A temporary repository with the models "m" and "m_evil".
class ConfigPaths : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "nereid-paths-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "m" / "1");
    fs::create_directories(root_ / "m_evil");
    Write("m/labels.txt", "cat\ndog\n");
    Write("m_evil/labels.txt", "secret\n");
    fs::create_symlink(root_ / "m_evil", root_ / "m" / "link");
    fs::create_symlink(root_ / "m_evil" / "labels.txt", root_ / "m" / "1" / "model.onnx");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::ofstream(root_ / path) << text;
  }
  std::string Model() const { return (root_ / "m").string(); }

  ModelConfig WithLabels(const std::string& file) const {
    ModelConfig config{.name = "m"};
    config.output.push_back({.name = "O", .label_filename = file});
    return config;
  }

  fs::path root_;
};

TEST(ModelName, IsOnePathComponent) {
  for (const char* name : {"m", "...", "..my_model", "model..1", "model.version1", "a b", " m ",
                           "%2e%2e%2f", "a\\b", "..."}) {
    EXPECT_TRUE(ValidateModelName(name).ok()) << name;
  }
  for (const char* name : {"../etc", "a/../b", "/etc/passwd", "model/..", "model/sub", "model/",
                           "..", " ..", ".. ", "/", ".", "..\n"}) {
    EXPECT_EQ(ValidateModelName(name).message(),
              std::string("invalid model name '") + name +
                  "', model name must not contain path traversal characters");
  }
  for (const char* name : {"", " ", "\t\n\v\f\r"}) {
    EXPECT_EQ(ValidateModelName(name).message(),
              "Model name cannot be empty. Please enter a valid name to deploy.");
  }
  EXPECT_FALSE(ValidateModelName(std::string_view("a\0b", 3)).ok());
  EXPECT_TRUE(ValidateModelName("modèle").ok());
  EXPECT_EQ(ValidateModelName("mod\xe8le").message(),
            "invalid model name, model name must be UTF-8");
}

TEST_F(ConfigPaths, EscapeIsCheckedAfterResolvingLinksAndDots) {
  EXPECT_FALSE(*PathEscapes(Model(), Model()));
  EXPECT_FALSE(*PathEscapes(Model() + "/", Model()));
  EXPECT_FALSE(*PathEscapes(Model(), Model() + "/"));
  EXPECT_FALSE(*PathEscapes(Model() + "/not/there", Model()));
  EXPECT_FALSE(*PathEscapes(Model() + "/1/../labels.txt", Model()));
  EXPECT_TRUE(*PathEscapes(Model() + "_evil/labels.txt", Model()));
  EXPECT_TRUE(*PathEscapes(Model() + "/../m_evil", Model()));
  EXPECT_TRUE(*PathEscapes(Model() + "/link/labels.txt", Model()));
  EXPECT_TRUE(*PathEscapes(root_.string(), Model()));
  EXPECT_TRUE(*PathEscapes("/etc/passwd", Model()));
  EXPECT_FALSE(PathEscapes("", Model()).ok());
  EXPECT_FALSE(PathEscapes(Model(), root_.string() + "/missing").ok());
  EXPECT_FALSE(PathEscapes(std::string("/a\0b", 4), Model()).ok());
}

TEST(JoinPath, PutsOneSlashBetween) {
  EXPECT_EQ(JoinPath("/a", "b"), "/a/b");
  EXPECT_EQ(JoinPath("/a/", "b"), "/a/b");
  EXPECT_EQ(JoinPath("/a", "/b"), "/a/b");
  EXPECT_EQ(JoinPath("/a/", "/b"), "/a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

TEST_F(ConfigPaths, AcceptsWhatLiesInTheModel) {
  ModelConfig config = WithLabels("labels.txt");
  config.default_model_filename = "model.onnx";  // a link to elsewhere, as shared stores make them
  config.cc_model_filenames["7.5"] = "../1/other.onnx";
  config.model_warmup.push_back(
      {.inputs = {{"I", {.input_data_type = ModelWarmup::DataFile{"f"}}}}});
  config.parameters["TRITON_BATCH_STRATEGY_PATH"] = Model() + "/batchstrategy.so";
  EXPECT_EQ(ValidatePaths(config, Model()).message(), "");
  EXPECT_TRUE(ValidatePaths(WithLabels("/labels.txt"), Model()).ok());
  EXPECT_TRUE(ValidatePaths(WithLabels("not_there.txt"), Model()).ok());
}

TEST_F(ConfigPaths, RefusesLabelsFromOutside) {
  for (const char* file : {"../../../etc/passwd", "../m_evil/labels.txt", "link/labels.txt"}) {
    const base::Status status = ValidatePaths(WithLabels(file), Model(), "c");
    EXPECT_EQ(status.code(), base::StatusCode::kUnsupported);
    EXPECT_EQ(status.message(), "label file path '" + Model() + "/" + file +
                                    "' for output 'O' in model 'm' is outside model directory\n"
                                    "  c: output[0].label_filename: found '" +
                                    file + "', expected a path inside the model's folder");
    EXPECT_EQ(Labels::Load(WithLabels(file), Model()).status().code(),
              base::StatusCode::kUnsupported);
  }
}

TEST_F(ConfigPaths, RefusesEveryOtherPathFromOutside) {
  ModelConfig config{.name = "m"};
  config.default_model_filename = "../../m_evil/labels.txt";
  config.cc_model_filenames["7.5"] = "../../../etc/passwd";
  config.model_warmup.push_back(
      {.inputs = {{"I", {.input_data_type = ModelWarmup::DataFile{"../../m_evil/x"}}}}});
  SequenceBatching sequence;
  sequence.state.push_back(
      {.initial_state = {{.state_data = SequenceBatching::DataFile{"../../m_evil/x"}}}});
  config.scheduling_choice = sequence;
  const std::string message(ValidatePaths(config, Model()).message());
  for (const char* part :
       {"model file path '../../m_evil/labels.txt' of model 'm' is outside model directory",
        "model file path '../../../etc/passwd' of model 'm' is outside model directory",
        "warmup data file path", "initial state data file path"}) {
    EXPECT_THAT(message, testing::HasSubstr(part));
  }
  ModelConfig batching{.name = "m"};
  batching.parameters["TRITON_BATCH_STRATEGY_PATH"] = Model() + "_evil/batchstrategy.so";
  EXPECT_THAT(std::string(ValidatePaths(batching, Model()).message()),
              testing::StartsWith("Batching library path escapes model repository."));
  batching.scheduling_choice = SequenceBatching();
  EXPECT_THAT(std::string(ValidatePaths(batching, Model()).message()),
              testing::StartsWith("TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence "
                                  "batcher, using default batching strategy"));
}

TEST_F(ConfigPaths, LabelsAreTheLinesOfTheFile) {
  const auto labels = Labels::Load(WithLabels("labels.txt"), Model());
  ASSERT_TRUE(labels.ok()) << labels.status().message();
  EXPECT_THAT(labels->Of("O"), testing::ElementsAre("cat", "dog"));
  EXPECT_THAT(labels->Of("P"), testing::IsEmpty());
}

TEST_F(ConfigPaths, LabelsThatCannotBeReadAreAnError) {
  EXPECT_EQ(
      Labels::Load(WithLabels("none.txt"), Model()).status().message(),
      "failed to open text file for read " + Model() + "/none.txt: No such file or directory");
  EXPECT_FALSE(Labels::Load(WithLabels("1"), Model()).ok());
  ModelConfig twice = WithLabels("labels.txt");
  twice.output.push_back(twice.output[0]);
  EXPECT_EQ(Labels::Load(twice, Model()).status().message(), "multiple label files for 'O'");
}

}  // namespace
}  // namespace nereid::config
