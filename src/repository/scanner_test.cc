// SPDX-License-Identifier: Apache-2.0
#include "repository/scanner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "repository/changes.h"
#include "repository/local_store.h"

namespace nereid::repository {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

constexpr const char* kIdentity =
    "backend: 'identity' max_batch_size: 4 "
    "input { name: 'I' data_type: TYPE_FP32 dims: [ 1 ] } "
    "output { name: 'O' data_type: TYPE_FP32 dims: [ 1 ] } ";

// Agents that leave models in place, and refuse those whose first agent is called "refuse".
class FakeAgents final : public ModelAgents {
 public:
  base::Result<LocalFolder> Load(const config::ModelConfig& config, LocalFolder folder,
                                 const ReadConfig& /*read_config*/) override {
    shown.push_back(fs::path(folder.path).filename());
    if (config.model_repository_agents->front().name == "refuse") {
      return base::UnavailableError("no key for this model");
    }
    return folder;
  }

  std::vector<std::string> shown;  // names of models
};

// A temporary folder with the repositories "a" and "b".
class Repositories : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "nereid-repository-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "a");
    fs::create_directories(root_ / "b");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void Model(const std::string& path, const std::string& config = kIdentity) {
    fs::create_directories(root_ / path / "1");
    Write(path + "/config.pbtxt", config);
  }
  ScanOptions Options() const {
    return {.repositories = {(root_ / "a").string(), (root_ / "b").string()}};
  }
  ScanResult Scan() const { return Scanner(store_, agents_, Options()).ScanAll(); }
  ModelSource One(const std::string& name, const ScanOptions& options) const {
    return Scanner(store_, agents_, options).ScanAll().models.at(name);
  }
  ModelSource One(const std::string& name) const { return One(name, Options()); }
  static std::string Why(const ModelSource& source) {
    return std::string(source.config.status().message());
  }

  fs::path root_;
  LocalStore store_;
  mutable FakeAgents agents_;
};

TEST_F(Repositories, AreScannedTogether) {
  Model("a/one");
  Model("b/two");
  Write("a/README.md", "not a model");
  fs::create_directories(root_ / "b/lost+found");  // of a volume's file system
  const ScanResult result = Scan();
  ASSERT_EQ(result.models.size(), 2u);
  const ModelSource& one = result.models.at("one");
  EXPECT_EQ(one.name, "one");
  EXPECT_EQ(one.repository, (root_ / "a").string());
  EXPECT_EQ(one.model_folder, (root_ / "a/one").string());
  EXPECT_TRUE(one.config_provided);
  ASSERT_TRUE(one.config.ok()) << Why(one);
  EXPECT_EQ(one.config->name, "one");
  EXPECT_TRUE(one.config->version_policy);
  EXPECT_THAT(one.versions, ElementsAre(1));
  EXPECT_EQ(result.models.at("two").repository, (root_ / "b").string());
}

TEST_F(Repositories, KeepABadModelFromStoppingTheOthers) {
  Model("a/good");
  Model("a/unreadable", "max_batch_size: 'x'");
  Model("a/wrong_name", std::string("name: 'other' ") + kIdentity);
  Model("a/escapes", std::string(kIdentity) + "default_model_filename: '../../good/1/x'");
  fs::create_directories(root_ / "a/empty");
  fs::create_directories(root_ / "a/dir_config/config.pbtxt");
  fs::create_directories(root_ / "a/pipe/1");
  ASSERT_EQ(::mkfifo((root_ / "a/pipe/config.pbtxt").c_str(), 0600), 0);
  fs::create_symlink(root_ / "nowhere", root_ / "a/dangling");
  fs::create_symlink(root_ / "a/loop", root_ / "a/loop");
  const ScanResult result = Scan();
  EXPECT_TRUE(result.models.at("good").config.ok());
  EXPECT_THAT(Why(result.models.at("unreadable")),
              StartsWith("failed to read text proto from " + (root_ / "a").string()));
  EXPECT_EQ(
      Why(result.models.at("wrong_name")),
      "unexpected directory name 'wrong_name' for model 'other', directory name must equal model "
      "name");
  EXPECT_THAT(Why(result.models.at("escapes")), HasSubstr("is outside model directory"));
  EXPECT_THAT(Why(result.models.at("empty")),
              StartsWith("Invalid model name: Could not determine"));
  EXPECT_THAT(Why(result.models.at("dir_config")), StartsWith("failed to open text file for read"));
  EXPECT_THAT(Why(result.models.at("pipe")), StartsWith("failed to open text file for read"));
  EXPECT_EQ(result.models.count("dangling"), 0u);
}

TEST_F(Repositories, ReportAllFaultsOfAModelTogether) {
  Model("a/bad",
        "name: 'x' backend: 'b' max_batch_size: -1 output { name: 'O' label_filename: '../l' }");
  const std::string why = Why(One("bad"));
  EXPECT_THAT(why, StartsWith("'max_batch_size' must be non-negative value for x\n  " +
                              (root_ / "a/bad/config.pbtxt").string()));
  EXPECT_THAT(why, HasSubstr("is outside model directory"));
  EXPECT_THAT(why, HasSubstr("unexpected directory name 'bad' for model 'x'"));
}

TEST_F(Repositories, LeaveOutFoldersWhoseNamesAreNotUtf8) {
  Model("a/modèle");
  Model("a/mod\xe8le");
  const ScanResult result = Scan();
  EXPECT_EQ(result.models.size(), 1u);
  EXPECT_TRUE(result.models.contains("modèle"));
}

TEST_F(Repositories, AskAgentsAboutModelsThatNameThem) {
  Model("a/none");
  Model("a/read", std::string(kIdentity) + "model_repository_agents { agents { name: 'log' } }");
  Model("a/locked",
        std::string(kIdentity) + "model_repository_agents { agents { name: 'refuse' } }");
  const ScanResult result = Scan();
  EXPECT_TRUE(result.models.at("none").config.ok());
  EXPECT_TRUE(result.models.at("read").config.ok());
  EXPECT_THAT(Why(result.models.at("locked")), HasSubstr("no key for this model"));
  EXPECT_THAT(agents_.shown, UnorderedElementsAre("read", "locked"));
}

TEST_F(Repositories, WithTheSameModelServeNeitherOfThem) {
  Model("a/twice");
  Model("b/twice");
  Model("b/once");
  const ScanResult result = Scan();
  EXPECT_EQ(Why(result.models.at("twice")), kDuplicateReason);
  EXPECT_TRUE(result.models.at("once").config.ok());
  EXPECT_TRUE(Scanner(store_, agents_, Options()).Find("twice").empty());
}

TEST_F(Repositories, GivenTwiceAreOne) {
  Model("a/m");
  EXPECT_TRUE(
      One("m", {.repositories = {(root_ / "a").string(), (root_ / "a").string()}}).config.ok());
}

TEST_F(Repositories, ThatAreGoneAreReportedAndTheOthersScanned) {
  Model("a/m");
  ScanOptions options = Options();
  options.repositories.push_back((root_ / "gone").string());
  const Scanner scanner(store_, agents_, options);
  EXPECT_EQ(
      scanner.CheckRepositories().message(),
      "failed to stat file " + (root_ / "gone").string() + ": there is no such model repository");
  const ScanResult result = scanner.ScanAll();
  EXPECT_TRUE(result.models.at("m").config.ok());
  ASSERT_EQ(result.unreadable_repositories.size(), 1u);
  EXPECT_EQ(
      result.unreadable_repositories.begin()->second.message(),
      "failed to open directory " + (root_ / "gone").string() + ": No such file or directory");
  Write("file", "");
  EXPECT_EQ(Scanner(store_, agents_, {.repositories = {(root_ / "file").string()}})
                .CheckRepositories()
                .message(),
            "repository path is not a valid directory: " + (root_ / "file").string());
  EXPECT_TRUE(Scanner(store_, agents_, Options()).CheckRepositories().ok());
}

TEST_F(Repositories, ReachedThroughLinksWork) {
  Model("b/real");
  fs::create_symlink(root_ / "b/real", root_ / "a/linked");
  EXPECT_TRUE(One("linked").config.ok());
}

TEST_F(Repositories, HoldVersionsInFoldersWithPlainNumbers) {
  Model("a/m");
  for (const char* folder :
       {"2", "10", "003", "abc", "12abc", "-1", "warmup", "initial_state", "configs"}) {
    fs::create_directories(root_ / "a/m" / folder);
  }
  Write("a/m/7", "a file, not a version");
  EXPECT_THAT(One("m").versions, ElementsAre(1, 2, 10));
}

TEST_F(Repositories, ServeTheVersionsOfThePolicy) {
  Model("a/latest");
  Model("a/all", std::string(kIdentity) + "version_policy { all { } }");
  Model("a/specific",
        std::string(kIdentity) + "version_policy { specific { versions: [ 2, 9 ] } }");
  Model("a/none", std::string(kIdentity) + "version_policy { specific { versions: [ 9 ] } }");
  for (const char* model : {"latest", "all", "specific", "none"}) {
    fs::create_directories(root_ / "a" / model / "2");
  }
  EXPECT_THAT(*VersionsToServe(One("latest")), ElementsAre(2));
  EXPECT_THAT(*VersionsToServe(One("all")), ElementsAre(1, 2));
  EXPECT_THAT(*VersionsToServe(One("specific")), ElementsAre(2));
  EXPECT_EQ(VersionsToServe(One("none")).status().message(),
            "at least one version must be available under the version policy of model 'none'. The "
            "policy asks for version '9', and '" +
                (root_ / "a/none").string() + "' has '1' and '2'.");
}

TEST_F(Repositories, NeedNoConfigurationWhereTheFileTellsTheFramework) {
  Write("a/m/1/model.onnx", "");
  const ModelSource source = One("m");
  ASSERT_TRUE(source.config.ok()) << Why(source);
  EXPECT_FALSE(source.config_provided);
  EXPECT_EQ(source.config->name, "m");
  EXPECT_EQ(source.config->backend, "onnxruntime");
  EXPECT_EQ(source.config->platform, "onnxruntime_onnx");
  ScanOptions strict = Options();
  strict.disable_auto_complete = true;
  EXPECT_EQ(Why(One("m", strict)), "failed to open text file for read " +
                                       (root_ / "a/m/config.pbtxt").string() +
                                       ": No such file or directory");
}

TEST_F(Repositories, SayWhatIsWrongWithTheLayoutOfAModel) {
  Write("a/loose/model.onnx", "");
  Write("a/renamed/1/linreg.onnx", "");
  Write("a/configured/config.pbtxt", kIdentity);
  Write("a/misnamed/config.pbtxt.txt", kIdentity);
  fs::create_directories(root_ / "a/misnamed/1");
  const std::string a = (root_ / "a").string();
  EXPECT_THAT(Why(One("loose")), HasSubstr("move 'model.onnx' to '" + a + "/loose/1/model.onnx'."));
  EXPECT_THAT(Why(One("renamed")),
              HasSubstr("Found 'linreg.onnx' in '" + a + "/renamed/1', expected 'model.onnx'"));
  EXPECT_THAT(std::string(VersionsToServe(One("configured")).status().message()),
              HasSubstr(". There is no version folder in '" + a + "/configured'"));
  EXPECT_THAT(
      Why(One("misnamed")),
      testing::EndsWith("'model.<backend_name>'. '" + a +
                        "/misnamed/config.pbtxt.txt' is not read, expected the configuration "
                        "in '" +
                        a + "/misnamed/config.pbtxt'."));
  ScanOptions strict = Options();
  strict.disable_auto_complete = true;
  EXPECT_THAT(Why(One("misnamed", strict)), HasSubstr("config.pbtxt.txt' is not read"));
}

TEST_F(Repositories, InspectAVersionRatherThanAnotherFolder) {
  fs::create_directories(root_ / "a/m/.checkpoints");
  fs::create_directories(root_ / "a/m/configs");
  Write("a/m/1/model.py", "");
  EXPECT_EQ(One("m").config->backend, "python");
}

TEST_F(Repositories, CheckTensorsAtOnceWithoutAutoCompletion) {
  Model("a/m", "backend: 'identity' input { name: 'I' dims: [ 1 ] }");
  EXPECT_TRUE(One("m").config.ok());
  ScanOptions strict = Options();
  strict.disable_auto_complete = true;
  EXPECT_THAT(Why(One("m", strict)),
              StartsWith("model input 'I' must specify 'data_type' for m\n"));
}

TEST_F(Repositories, UseTheNamedConfigurationWhereItExists) {
  Model("a/m");
  Model("a/n");
  Write("a/m/configs/big.pbtxt", std::string(kIdentity) + "metric_tags { key: 'k' value: 'big' }");
  ScanOptions options = Options();
  options.model_config_name = "big";
  EXPECT_EQ(One("m", options).config->metric_tags.count("k"), 1u);
  EXPECT_EQ(One("m", options).config_path, (root_ / "a/m/configs/big.pbtxt").string());
  EXPECT_EQ(One("n", options).config->metric_tags.count("k"), 0u);
}

TEST_F(Repositories, FindOneModelByName) {
  Model("b/m");
  const Scanner scanner(store_, agents_, Options());
  const auto places = scanner.Find("m");
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].folder, (root_ / "b/m").string());
  EXPECT_TRUE(scanner.Examine(places[0]).config.ok());
  EXPECT_TRUE(scanner.Find("none").empty());
}

TEST_F(Repositories, TakeAConfigurationInsteadOfTheFile) {
  Model("a/m", "this is no configuration");
  const Scanner scanner(store_, agents_, Options());
  const ModelPlace place = scanner.Find("m").at(0);
  const auto source =
      scanner.Examine(place, {.config_json = R"({"backend":"identity","max_batch_size":9})"});
  ASSERT_TRUE(source.config.ok()) << Why(source);
  EXPECT_EQ(source.config->max_batch_size, 9);
  EXPECT_THAT(Why(scanner.Examine(place, {.config_json = "{"})),
              StartsWith("Invalid config override: "));
}

TEST_F(Repositories, AreNamespacesIfEnabled) {
  Model("a/twice");
  Model("b/twice");
  ScanOptions options = Options();
  options.has_namespaces = true;
  const Scanner scanner(store_, agents_, options);
  const ScanResult result = scanner.ScanAll();
  ASSERT_EQ(result.models.size(), 2u);
  for (const auto& [id, source] : result.models) {
    EXPECT_TRUE(source.config.ok());
    EXPECT_EQ(id.name_space, source.repository);
    EXPECT_EQ(id.Text(), source.repository + "::twice");
  }
  EXPECT_EQ(scanner.Find("twice").size(), 2u);
}

// Sets back the times of everything under a model's folder, so that a later write is a change
// whatever the resolution of the file system's clock.
class ChangesOfRepositories : public Repositories {
 protected:
  KnownModels Now() const {
    KnownModels known;
    for (const auto& [id, source] : Scan().models) {
      known[id] = {source.repository, source.timestamp};
    }
    return known;
  }
  ScanResult Since(const KnownModels& known) const {
    return Scanner(store_, agents_, Options()).ScanAll(known);
  }
  // Sets the write time. The change time cannot be set, but it is at least the current time.
  void Touch(const std::string& path, int seconds_ahead) {
    fs::last_write_time(root_ / path,
                        fs::file_time_type::clock::now() + std::chrono::seconds(seconds_ahead));
  }
};

TEST_F(ChangesOfRepositories, AreAddedModifiedUnmodifiedAndRemoved) {
  Model("a/same");
  Model("a/edited");
  Model("a/gone");
  const auto before = Now();
  Model("a/fresh");
  Model("a/broken", "max_batch_size: 'x'");
  Touch("a/edited/1", 1000);
  fs::remove_all(root_ / "a/gone");
  const Changes changes = Compare(before, Since(before));
  EXPECT_THAT(changes.added, ElementsAre("fresh"));
  EXPECT_THAT(changes.modified, ElementsAre("edited"));
  EXPECT_THAT(changes.unmodified, ElementsAre("same"));
  EXPECT_THAT(changes.removed, ElementsAre("gone"));
  EXPECT_THAT(changes.refused, ElementsAre("broken"));
}

TEST_F(ChangesOfRepositories, ThatBreakAModelAreRefusedNotRemoved) {
  Model("a/m");
  const auto before = Now();
  Write("a/m/config.pbtxt", "max_batch_size: 'x'");
  Touch("a/m/config.pbtxt", 1000);
  const Changes changes = Compare(before, Since(before));
  EXPECT_THAT(changes.refused, ElementsAre("m"));
  EXPECT_THAT(changes.removed, IsEmpty());
}

TEST_F(ChangesOfRepositories, UnloadAModelThatBecomesAmbiguous) {
  Model("a/m");
  const auto before = Now();
  Model("b/m");
  EXPECT_THAT(Compare(before, Since(before)).removed, ElementsAre("m"));
}

TEST_F(ChangesOfRepositories, DoNotUnloadWhenARepositoryCannotBeRead) {
  Model("b/m");
  const auto before = Now();
  fs::rename(root_ / "b", root_ / "away");
  const Changes changes = Compare(before, Since(before));
  EXPECT_THAT(changes.unmodified, ElementsAre("m"));
  EXPECT_THAT(changes.removed, IsEmpty());
}

TEST_F(ChangesOfRepositories, AreDistinguishedByVersion) {
  Model("a/m");
  fs::create_directories(root_ / "a/m/2");
  const ModelTimestamp before = One("m").timestamp;
  Touch("a/m/2", 1000);
  const ModelTimestamp version_two = One("m").timestamp;
  EXPECT_TRUE(before.IsOlderThan(version_two));
  EXPECT_FALSE(before.VersionIsOlderThan(version_two, 1));
  EXPECT_TRUE(before.VersionIsOlderThan(version_two, 2));
  Write("a/m/shared.txt", "");
  Touch("a/m/shared.txt", 2000);
  EXPECT_TRUE(before.VersionIsOlderThan(One("m").timestamp, 1));
}

TEST_F(ChangesOfRepositories, AreFoundDespiteCyclesOfLinks) {
  Model("a/m");
  fs::create_symlink(root_ / "a/m", root_ / "a/m/1/circle");
  EXPECT_GT(One("m").timestamp.Latest(), 0);
}

TEST_F(ChangesOfRepositories, IncludeAnOverriddenConfiguration) {
  Model("a/m");
  ModelTimestamp timestamp = One("m").timestamp;
  const ModelTimestamp before = timestamp;
  timestamp.SetConfigTime(before.Latest() + 1);
  EXPECT_TRUE(before.IsOlderThan(timestamp));
  EXPECT_FALSE(before.VersionIsOlderThan(timestamp, 1));
}

TEST_F(Repositories, AreReadWithinLimits) {
  Write("a/file", std::string(1000, 'x'));
  const std::string path = (root_ / "a/file").string();
  EXPECT_EQ(store_.Read(path, 1000)->size(), 1000u);
  EXPECT_EQ(store_.Read(path, 999).status().message(),
            "failed to open text file for read " + path + ": it is larger than 999 bytes");
  EXPECT_FALSE(store_.Read((root_ / "a").string(), 10).ok());
  EXPECT_FALSE(store_.ModifiedNs((root_ / "none").string()).ok());
  EXPECT_FALSE(store_.List((root_ / "none").string()).ok());
  EXPECT_TRUE(store_.IsFolder((root_ / "a").string()));
  EXPECT_FALSE(store_.IsFolder(path));
  EXPECT_TRUE(store_.Exists(path));
}

}  // namespace
}  // namespace nereid::repository
