// SPDX-License-Identifier: Apache-2.0
#include "repository/advice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nereid::repository {
namespace {

using Entries = std::vector<Entry>;

Entry File(const char* name) { return {.name = name, .is_folder = false}; }
Entry Folder(const char* name) { return {.name = name, .is_folder = true}; }

std::string NoVersion(const Entries& entries, const config::ModelConfig& config = {}) {
  return NoVersionAdvice("/r/m", entries, config);
}

TEST(NoVersionAdvice, SaysWhereTheModelFileBelongs) {
  EXPECT_EQ(NoVersion({File("model.onnx")}),
            "There is no version folder in '/r/m': move 'model.onnx' to '/r/m/1/model.onnx'.");
  EXPECT_EQ(NoVersion({File("config.pbtxt"), File("net.onnx"), Folder("docs")}),
            "There is no version folder in '/r/m': move 'net.onnx' to '/r/m/1/model.onnx'.");
  EXPECT_EQ(NoVersion({File("model.py")}),
            "There is no version folder in '/r/m': move 'model.py' to '/r/m/1/model.py'.");
  EXPECT_EQ(NoVersion({File("net.onnx")}, {.default_model_filename = "net.onnx"}),
            "There is no version folder in '/r/m': move 'net.onnx' to '/r/m/1/net.onnx'.");
}

TEST(NoVersionAdvice, SaysWhatNamesVersionsHave) {
  EXPECT_EQ(
      NoVersion({File("config.pbtxt"), Folder("v1")}),
      "Found the folder 'v1' in '/r/m', expected the folder of a version: its name is a number "
      "without leading zeros, such as '1'.");
  EXPECT_EQ(
      NoVersion({Folder("01"), Folder("latest"), Folder("warmup")}),
      "Found the folders '01' and 'latest' in '/r/m', expected the folder of a version: its name "
      "is a number without leading zeros, such as '1'.");
  EXPECT_EQ(NoVersion({File("1")}), "'/r/m/1' is a file, expected the folder of a version.");
}

TEST(NoVersionAdvice, SaysThatThereIsNone) {
  EXPECT_EQ(NoVersion({}),
            "There is no version folder in '/r/m', expected at least one, such as '/r/m/1'.");
  config::ModelConfig ensemble;
  ensemble.scheduling_choice = config::Ensembling();
  EXPECT_EQ(
      NoVersion({File("config.pbtxt")}, ensemble),
      "There is no version folder in '/r/m', expected at least one, such as '/r/m/1'; that of an "
      "ensemble may be empty, but git does not keep empty folders.");
}

TEST(PolicyAdvice, NamesTheRequiredAndTheAvailableVersions) {
  using Policy = config::VersionPolicy;
  EXPECT_EQ(PolicyAdvice("/r/m", {Policy::Specific{{3}}}, {1, 2}),
            "The policy asks for version '3', and '/r/m' has '1' and '2'.");
  EXPECT_EQ(PolicyAdvice("/r/m", {Policy::Specific{{3, 4}}}, {1}),
            "The policy asks for versions '3' and '4', and '/r/m' has '1'.");
  EXPECT_EQ(PolicyAdvice("/r/m", {Policy::Latest{0}}, {1}),
            "The policy asks for no version, and '/r/m' has '1'.");
}

TEST(NoBackendAdvice, SaysHowToServeAFileOfAnotherName) {
  EXPECT_EQ(
      NoBackendAdvice("/r/m", "1", {File("linreg.onnx")}),
      "Found 'linreg.onnx' in '/r/m/1', expected 'model.onnx': rename it, or write backend: "
      "\"onnxruntime\" and default_model_filename: \"linreg.onnx\" into '/r/m/config.pbtxt'.");
  EXPECT_EQ(NoBackendAdvice("/r/m", "2", {}),
            "'/r/m/2' is empty, expected a model file such as 'model.onnx' or 'model.py'.");
  EXPECT_EQ(NoBackendAdvice("/r/m", "1", {File("m.joblib"), Folder("x")}),
            "Found 'm.joblib' and 'x' in '/r/m/1', expected a model file such as 'model.onnx' or "
            "'model.py', or the name of a backend in '/r/m/config.pbtxt'.");
}

std::string Misplaced(const Entries& entries, const Entries& contents = {}) {
  return MisplacedConfigAdvice("/r/m", entries, "1", contents);
}

TEST(MisplacedConfigAdvice, NamesTheFileThatIsProbablyMeant) {
  for (const char* name : {"config.pbtxt.txt", "config.pbtext", "config.pbtx", "Config.pbtxt",
                           "config.json", "config.prototxt", "config", "model.pbtxt"}) {
    EXPECT_EQ(Misplaced({Folder("1"), File(name)}),
              std::string("'/r/m/") + name +
                  "' is not read, expected the configuration in '/r/m/config.pbtxt'.");
  }
  EXPECT_EQ(
      Misplaced({Folder("1")}, {File("config.pbtxt")}),
      "'/r/m/1/config.pbtxt' is not read, expected the configuration in '/r/m/config.pbtxt'.");
}

TEST(MisplacedConfigAdvice, LeavesOtherFilesAlone) {
  EXPECT_EQ(Misplaced({Folder("1"), Folder("configs"), File("labels.txt"), File("model.onnx")}),
            "");
  // Other libraries have such a file beside their models.
  EXPECT_EQ(Misplaced({Folder("1")}, {File("config.json"), File("model.onnx")}), "");
}

TEST(WithAdvice, MakesSentencesOfBoth) {
  EXPECT_EQ(WithAdvice("no model 'm'", "Do this."), "no model 'm'. Do this.");
  EXPECT_EQ(WithAdvice("No model.", "Do this."), "No model. Do this.");
  EXPECT_EQ(WithAdvice("no model", ""), "no model");
}

}  // namespace
}  // namespace nereid::repository
