// SPDX-License-Identifier: Apache-2.0
#include "cloud/sagemaker_models.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "http/testing/fake_service.h"

namespace nereid::cloud {
namespace {

namespace fs = std::filesystem;

class SagemakerModelsTest : public testing::Test {
 protected:
  SagemakerModelsTest() { fs::create_directory(options_.links); }
  ~SagemakerModelsTest() override { fs::remove_all(folder_.path); }

  // Makes a model folder below the archives, such as "abc/model"; returns its path.
  std::string Unpack(const std::string& path, const std::string& config) {
    const fs::path folder = fs::path(options_.archives) / path;
    fs::create_directories(folder / "1");
    std::ofstream(folder / "config.pbtxt") << config;
    return folder.string();
  }
  // Returns the models that the server finds in its repository, each with the folder that it links
  // to.
  std::map<std::string, std::string> Links() const {
    std::map<std::string, std::string> links;
    for (const fs::directory_entry& entry : fs::directory_iterator(options_.links)) {
      links[entry.path().filename().string()] = fs::read_symlink(entry.path()).string();
    }
    return links;
  }

  const base::TemporaryFolder folder_ = std::move(*base::MakeTemporaryFolder("test"));
  const SagemakerModelOptions options_{.archives = folder_.path + "/archives",
                                       .links = folder_.path + "/links"};
  // The service loads "m" and fails to load anything else.
  http::FakeService service_{http::MakeModel({})};
  SagemakerModels models_{options_, service_};
};

TEST_F(SagemakerModelsTest, LinksTheModelWhileItIsLoaded) {
  const std::string url = Unpack("abc/model", "backend: \"identity\"\n");
  EXPECT_TRUE(models_.Load("hash", url, "m").ok());
  EXPECT_EQ(Links(), (std::map<std::string, std::string>{{"m", url}}));
  EXPECT_EQ(service_.operations, (std::vector<std::string>{"load m"}));
  EXPECT_EQ(models_.Find("hash")->target, "m");
  EXPECT_FALSE(models_.Find("m"));
  ASSERT_TRUE(models_.Unload("hash"));
  EXPECT_TRUE(Links().empty());
  EXPECT_EQ(service_.operations.back(), "unload m dependents");
  EXPECT_FALSE(models_.Find("hash"));
  EXPECT_FALSE(models_.Unload("hash"));
}

TEST_F(SagemakerModelsTest, RenamesModelsThatTheirAuthorsCalledOtherwise) {
  const std::string url = Unpack("abc/model", "name: \"theirs\"\nbackend: \"identity\"\n");
  EXPECT_TRUE(models_.Load("hash", url, "m").ok());
  ASSERT_EQ(service_.operations.size(), 1u);
  EXPECT_TRUE(service_.operations[0].starts_with(R"(load m config={"name":"m",)"))
      << service_.operations[0];
}

TEST_F(SagemakerModelsTest, ForgetsAModelThatDoesNotLoad) {
  const std::string url = Unpack("abc/model", "backend: \"identity\"\n");
  EXPECT_EQ(models_.Load("hash", url, "broken").message(), "failed to load 'broken'");
  EXPECT_TRUE(Links().empty());
  EXPECT_FALSE(models_.Find("hash"));
  EXPECT_TRUE(models_.Load("hash", url, "m").ok());
}

TEST_F(SagemakerModelsTest, LinksTheEnsembleOfAnArchiveAndItsParts) {
  const std::string part = Unpack("abc/model/part", "backend: \"identity\"\n");
  const std::string whole = Unpack("abc/model/mine", "platform: \"ensemble\"\n");
  const std::string zeal = Unpack("abc/model/zeal", "backend: \"identity\"\n");
  const std::string url = options_.archives + "/abc/model";
  EXPECT_TRUE(models_.Load("hash", url, "m").ok());
  EXPECT_EQ(Links(),
            (std::map<std::string, std::string>{{"m", whole}, {"part", part}, {"zeal", zeal}}));
  EXPECT_EQ(models_.Find("hash")->url, url);
  ASSERT_TRUE(models_.Unload("hash"));
  EXPECT_TRUE(Links().empty());
}

TEST_F(SagemakerModelsTest, RefusesPartsThatAreThereAlready) {
  Unpack("abc/model/part", "backend: \"identity\"\n");
  Unpack("abc/model/mine", "platform: \"ensemble\"\n");
  const std::string taken = Unpack("def/model", "backend: \"identity\"\n");
  fs::create_directory_symlink(taken, options_.links + "/part");
  const base::Status status = models_.Load("hash", options_.archives + "/abc/model", "m");
  EXPECT_EQ(status.code(), base::StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(), "model 'part' is already loaded");
  EXPECT_EQ(Links(), (std::map<std::string, std::string>{{"part", taken}}));
  EXPECT_TRUE(service_.operations.empty());
}

TEST_F(SagemakerModelsTest, LoadsNothingOutsideOfArchives) {
  Unpack("abc/model", "backend: \"identity\"\n");
  const std::string& archives = options_.archives;
  for (const std::string& url :
       {std::string("/etc"), std::string("../abc/model"), std::string(), archives + "/abc",
        archives + "/abc/other", archives + "/abc/model/a/b", archives + "/a-b/model",
        archives + "/../archives2/model", archives + "/abc/../../etc/model"}) {
    const base::Status status = models_.Load("hash", url, "m");
    EXPECT_EQ(status.code(), base::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "Invalid \"url\" '" + url + "': expected a path of the form " +
                                    archives + "/<hash>/model[/<subdir>]");
  }
  EXPECT_EQ(models_.Load("hash", archives + "/none/model", "m").message(),
            "Invalid \"url\" '" + archives + "/none/model': there is no model");
  EXPECT_TRUE(service_.operations.empty());
}

TEST_F(SagemakerModelsTest, TakesPathsThatAreWrittenInOtherWays) {
  Unpack("abc/model", "backend: \"identity\"\n");
  EXPECT_TRUE(models_.Load("hash", options_.archives + "/./abc//model/", "m").ok());
  EXPECT_EQ(Links().size(), 1u);
}

TEST_F(SagemakerModelsTest, MakesNoLinksForNamesThatAreNoFolders) {
  const std::string url = Unpack("abc/model", "backend: \"identity\"\n");
  for (const std::string& name :
       {std::string("../evil"), std::string("a/b"), std::string(".."), std::string()}) {
    EXPECT_FALSE(models_.Load("hash", url, name).ok());
  }
  EXPECT_TRUE(Links().empty());
  EXPECT_FALSE(fs::exists(folder_.path + "/evil"));
}

}  // namespace
}  // namespace nereid::cloud
