// SPDX-License-Identifier: Apache-2.0
#include "check/new_model.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/starter_config.h"
#include "check/testing/repository_folder.h"
#include "config/parse.h"

namespace nereid::check {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The names that a file gets: "name backend file".
std::string Planned(const Files& files, const std::string& file) {
  const RepositoryFolder folder(files);
  const auto model = PlanNewModel(folder.path() + "/" + file, "models", {});
  if (!model.ok()) return std::string(model.status().message());
  return model->config.name + " " + model->config.backend + " " + model->copies[0].second;
}

TEST(PlanNewModel, TakesTheNameOfTheFileAndTheUsualPlace) {
  EXPECT_EQ(Planned({{"resnet.onnx", "x"}}, "resnet.onnx"),
            "resnet onnxruntime models/resnet/1/model.onnx");
  EXPECT_EQ(Planned({{"net.pt2", "x"}}, "net.pt2"), "net pytorch models/net/1/model.pt2");
  EXPECT_EQ(Planned({{"m.graphdef", "x"}}, "m.graphdef"), "m tensorflow models/m/1/model.graphdef");
}

TEST(PlanNewModel, TakesTheNameOfTheFolderIfTheFileHasTheUsualOne) {
  EXPECT_EQ(Planned({{"adder/model.py", "class TritonPythonModel"}}, "adder/model.py"),
            "adder python models/adder/1/model.py");
  EXPECT_EQ(Planned({{"adder/3/model.py", "class TritonPythonModel"}}, "adder/3/model.py"),
            "adder python models/adder/1/model.py");
}

TEST(PlanNewModel, KnowsASavedModelByItsContents) {
  EXPECT_EQ(Planned({{"flowers/saved_model.pb", "x"}}, "flowers/"),
            "flowers tensorflow models/flowers/1/model.savedmodel");
}

TEST(PlanNewModel, RefusesWhatIsNoModel) {
  EXPECT_THAT(Planned({{"notes.txt", "x"}}, "notes.txt"), HasSubstr("is of no known kind"));
  EXPECT_THAT(Planned({}, "none.onnx"), HasSubstr("there is no file or folder"));
}

TEST(PlanNewModel, TakesTheWeightsBesideTheFileAlong) {
  const RepositoryFolder folder({{"a.xml", "x"}, {"a.bin", "y"}});
  const auto model = PlanNewModel(folder.path() + "/a.xml", "models", {});
  ASSERT_TRUE(model.ok());
  ASSERT_EQ(model->copies.size(), 2);
  EXPECT_EQ(model->copies[1].second, "models/a/1/model.bin");
}

TEST(PlanNewModel, RefusesFilesThatAreEmptyAndNamesThatAreNone) {
  EXPECT_THAT(Planned({{"a.onnx", ""}}, "a.onnx"), HasSubstr("a.onnx' is empty"));
  EXPECT_THAT(Planned({{"m/model.py", "x = 1"}}, "m/model.py"),
              HasSubstr("no class TritonPythonModel"));
  const RepositoryFolder folder(Files{{"a.onnx", "x"}});
  EXPECT_EQ(PlanNewModel(folder.path() + "/a.onnx", "models", "").status().code(),
            base::StatusCode::kInvalidArgument);
}

TEST(PlanNewModel, KnowsEndingsInAnyCase) {
  EXPECT_EQ(Planned({{"UP.ONNX", "x"}}, "UP.ONNX"), "UP onnxruntime models/UP/1/model.onnx");
}

// A repository, its files with what they contain, before or after a model was put into it.
using Contents = std::map<std::string, std::string>;

Contents ContentsOf(const std::string& folder) {
  Contents contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    std::string text;
    if (entry.is_regular_file()) std::ifstream(entry.path()) >> text;
    contents[fs::relative(entry.path(), folder).string()] = text;
  }
  return contents;
}

TEST(StagedModel, OverwritesOnlyIfAsked) {
  const RepositoryFolder folder({{"a.onnx", "new"}, {"models/a/1/model.onnx", "old"}});
  const auto model = PlanNewModel(folder.path() + "/a.onnx", folder.path() + "/models", {});
  ASSERT_TRUE(model.ok());
  const base::Status refused = StagedModel::Create(*model, false).status();
  EXPECT_EQ(refused.code(), base::StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.message(), HasSubstr("--force"));
  const std::string models = folder.path() + "/models";
  const Contents before = ContentsOf(models);
  {
    const auto staged = StagedModel::Create(*model, true);
    ASSERT_TRUE(staged.ok());
    EXPECT_EQ(ContentsOf((*staged)->repository())["a/1/model.onnx"], "new");
    EXPECT_EQ(ContentsOf(models)["a/1/model.onnx"], "old");
  }
  // A staged model that is not installed leaves nothing.
  EXPECT_EQ(ContentsOf(models), before);
  {
    const auto staged = StagedModel::Create(*model, true);
    ASSERT_TRUE(staged.ok());
    ASSERT_TRUE((*staged)->Install("text").ok());
  }
  EXPECT_EQ(
      ContentsOf(models),
      (Contents{{"a", ""}, {"a/1", ""}, {"a/1/model.onnx", "new"}, {"a/config.pbtxt", "text"}}));
}

TEST(StagedModel, LeavesNothingBehindIfItIsNotInstalled) {
  const RepositoryFolder folder(Files{{"a.onnx", "new"}});
  const auto model = PlanNewModel(folder.path() + "/a.onnx", folder.path() + "/x/models", {});
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(StagedModel::Create(*model, false).ok());
  EXPECT_EQ(ContentsOf(folder.path()), (Contents{{"a.onnx", "new"}}));
}

TEST(StagedModel, LeavesEverythingAsItWasIfAFileCannotBePut) {
  const RepositoryFolder folder({{"a.xml", "new"},
                                 {"a.bin", "new"},
                                 {"models/a/1/model.xml", "old"},
                                 {"models/a/1/model.bin", "old"},
                                 {"models/a/config.pbtxt", "old"}});
  const auto model = PlanNewModel(folder.path() + "/a.xml", folder.path() + "/models", {});
  ASSERT_TRUE(model.ok());
  const Contents before = ContentsOf(folder.path());
  {
    const auto staged = StagedModel::Create(*model, true);
    ASSERT_TRUE(staged.ok());
    fs::remove((*staged)->repository() + "/a/1/model.bin");
    const base::Status status = (*staged)->Install("text");
    EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write"));
  }
  EXPECT_EQ(ContentsOf(folder.path()), before);
}

TEST(StagedModel, NamesFilesInErrorsByTheirOwnPaths) {
  const RepositoryFolder folder(Files{{"a.onnx", "new"}});
  const auto model = PlanNewModel(folder.path() + "/a.onnx", folder.path() + "/models", {});
  ASSERT_TRUE(model.ok());
  const auto staged = StagedModel::Create(*model, false);
  ASSERT_TRUE(staged.ok());
  const std::string error = "'" + (*staged)->repository() + "/a/1/model.onnx' is wrong";
  EXPECT_TRUE((*staged)->IsNamedIn(error));
  EXPECT_FALSE((*staged)->IsNamedIn("it is wrong"));
  EXPECT_EQ((*staged)->WithOwnPaths(error), "'" + folder.path() + "/a.onnx' is wrong");
}

TEST(StarterConfig, SaysWhatTheModelIs) {
  config::ModelConfig config;
  config.name = "m \"1\"";
  config.backend = "onnxruntime";
  config.platform = "onnxruntime_onnx";
  config.max_batch_size = 4;
  config.gives_max_batch_size = true;
  config.input = {{.name = "x", .data_type = tensor::DataType::kFp32, .dims = {3, -1}}};
  config.output = {{.name = "y",
                    .data_type = tensor::DataType::kInt64,
                    .dims = {1},
                    .reshape = std::vector<int64_t>()}};
  config.scheduling_choice = config::DynamicBatching();
  config.instance_group = {{.kind = config::InstanceGroup::Kind::kCpu, .count = 2}};
  const std::string text = StarterConfig(config, {"m.onnx", ""});
  const auto parsed = config::ParseModelConfigText(text, "t");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message() << text;
  EXPECT_EQ(*parsed, config);
  EXPECT_THAT(text, HasSubstr("begun by `nereid init` from 'm.onnx'"));
}

TEST(StarterConfig, SaysWhatIsNotKnown) {
  config::ModelConfig config;
  config.name = "m";
  config.backend = "pytorch";
  config.gives_max_batch_size = true;
  const std::string text = StarterConfig(config, {"m.pt", "the file\nhas no types"});
  const auto parsed = config::ParseModelConfigText(text, "t");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(*parsed, config);
  EXPECT_THAT(text, HasSubstr("#   the file\n#   has no types\n"));
}

}  // namespace
}  // namespace nereid::check
