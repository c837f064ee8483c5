// SPDX-License-Identifier: Apache-2.0
#include "check/new_model.h"

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
  const auto model = PlanNewModel(folder.path() + "/" + file, "models", "");
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
  EXPECT_EQ(Planned({{"adder/model.py", "x"}}, "adder/model.py"),
            "adder python models/adder/1/model.py");
  EXPECT_EQ(Planned({{"adder/3/model.py", "x"}}, "adder/3/model.py"),
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
  const auto model = PlanNewModel(folder.path() + "/a.xml", "models", "");
  ASSERT_TRUE(model.ok());
  ASSERT_EQ(model->copies.size(), 2);
  EXPECT_EQ(model->copies[1].second, "models/a/1/model.bin");
}

TEST(CopyFiles, OverwritesOnlyIfAsked) {
  const RepositoryFolder folder({{"a.onnx", "new"}, {"models/a/1/model.onnx", "old"}});
  const auto model = PlanNewModel(folder.path() + "/a.onnx", folder.path() + "/models", "");
  ASSERT_TRUE(model.ok());
  const std::string target = folder.path() + "/models/a/1/model.onnx";
  const base::Status refused = CopyFiles(*model, false);
  EXPECT_EQ(refused.code(), base::StatusCode::kAlreadyExists);
  EXPECT_THAT(refused.message(), HasSubstr("--force"));
  EXPECT_EQ(fs::file_size(target), 3);
  ASSERT_TRUE(CopyFiles(*model, true).ok());
  std::string text;
  std::ifstream(target) >> text;
  EXPECT_EQ(text, "new");
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
