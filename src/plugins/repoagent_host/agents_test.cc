// SPDX-License-Identifier: Apache-2.0
#include "repoagent_host/agents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "repoagent_host/agent_model.h"
#include "repository/local_store.h"
#include "repository/scanner.h"

namespace nereid::repoagent_host {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

class AModelWithAgents : public testing::Test {
 protected:
  AModelWithAgents() {
    std::string path = (fs::temp_directory_path() / "agents-XXXXXX").string();
    root_ = ::mkdtemp(path.data());
    Write("repository/m/1/model.bin", "weights");
  }
  ~AModelWithAgents() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // Adds the relocation agent to the configuration.
  void Add(const std::string& name, std::map<std::string, std::string> parameters) {
    parameters["name"] = name;
    parameters["journal"] = root_ / "journal";
    if (!config_.model_repository_agents) config_.model_repository_agents.emplace();
    config_.model_repository_agents->push_back({"relocation", std::move(parameters)});
  }
  base::Result<repository::LocalFolder> Load() {
    return agents_.Load(config_, {root_ / "repository/m", nullptr},
                        [](const std::string&) { return config::ModelConfig(); });
  }
  std::vector<std::string> Journal() {
    std::vector<std::string> lines;
    std::ifstream file(root_ / "journal");
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  fs::path root_;
  Agents agents_{TEST_AGENT_DIRECTORY};
  config::ModelConfig config_;
};

TEST_F(AModelWithAgents, StaysWhereItIsUnlessTheyMoveIt) {
  Add("a", {});
  const auto folder = Load();
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  EXPECT_EQ(folder->path, root_ / "repository/m");
}

TEST_F(AModelWithAgents, CallsThemInTritonsOrder) {
  Add("a", {});
  Add("b", {});
  auto folder = Load();
  ASSERT_TRUE(folder.ok());
  folder->files->OnLoaded();
  folder->files->OnUnloading();
  folder->files->OnUnloading();
  folder->files.reset();
  EXPECT_THAT(Journal(),
              ElementsAre("a INITIALIZE", "a LOAD", "b INITIALIZE", "b LOAD", "b LOAD_COMPLETE",
                          "a LOAD_COMPLETE", "a UNLOAD", "b UNLOAD", "b UNLOAD_COMPLETE",
                          "a UNLOAD_COMPLETE", "b FINALIZE", "a FINALIZE"));
}

TEST_F(AModelWithAgents, TellsThemThatTheLoadFailed) {
  Add("a", {});
  Add("b", {});
  Load()->files->OnLoadFailed();
  EXPECT_THAT(Journal(), ElementsAre("a INITIALIZE", "a LOAD", "b INITIALIZE", "b LOAD",
                                     "b LOAD_FAIL", "a LOAD_FAIL", "b FINALIZE", "a FINALIZE"));
}

TEST_F(AModelWithAgents, SendsMissingActionsWhenItIsDropped) {
  Add("a", {});
  Load()->files.reset();
  auto folder = Load();
  folder->files->OnLoaded();
  folder->files.reset();
  EXPECT_THAT(Journal(), ElementsAre("a INITIALIZE", "a LOAD", "a LOAD_FAIL", "a FINALIZE",
                                     "a INITIALIZE", "a LOAD", "a LOAD_COMPLETE", "a UNLOAD",
                                     "a UNLOAD_COMPLETE", "a FINALIZE"));
}

TEST_F(AModelWithAgents, IsRefusedWhereOneRefusesIt) {
  Add("a", {});
  Add("b", {{"fail", "LOAD"}});
  Add("c", {});
  const auto folder = Load();
  EXPECT_EQ(folder.status().ToString(), base::UnavailableError("the test wants it so").ToString());
  EXPECT_THAT(Journal(), ElementsAre("a INITIALIZE", "a LOAD", "b INITIALIZE", "b LOAD",
                                     "b LOAD_FAIL", "b FINALIZE", "a LOAD_FAIL", "a FINALIZE"));
}

TEST_F(AModelWithAgents, IsMovedIntoAFolderThatGoesWithIt) {
  Add("a", {{"move", ""}});
  auto folder = Load();
  ASSERT_TRUE(folder.ok());
  EXPECT_NE(folder->path, root_ / "repository/m");
  EXPECT_TRUE(fs::exists(folder->path + "/1/model.bin"));
  folder->files.reset();
  EXPECT_FALSE(fs::exists(folder->path));
}

TEST_F(AModelWithAgents, ShowsEachAgentTheConfigurationWhereTheModelIsThen) {
  Add("a", {{"move", ""}, {"config", ""}});
  Add("b", {{"config", ""}});
  ASSERT_TRUE(Load().ok());
  const auto journal = Journal();
  EXPECT_THAT(journal[2], HasSubstr("model_repository_agents"));
  EXPECT_EQ(journal[5], "b config {}");
}

TEST_F(AModelWithAgents, NeedsTheirLibraries) {
  for (const char* name : {"missing", "../relocation", "", "/etc"}) {
    config_.model_repository_agents.emplace().push_back({name, {}});
    const std::string library = std::string("libtritonrepoagent_") + name + ".so";
    EXPECT_EQ(Load().status().message(), "unable to find '" + library + "' for repo agent '" +
                                             name + "', searched: " TEST_AGENT_DIRECTORY);
  }
  config_.model_repository_agents.emplace().push_back({"empty", {}});
  EXPECT_THAT(Load().status().message(), HasSubstr("TRITONREPOAGENT_ModelAction"));
}

TEST_F(AModelWithAgents, IsScannedWhereTheyPutIt) {
  Write("elsewhere/7/model.onnx", "weights");
  Write("repository/m/config.pbtxt",
        "model_repository_agents { agents { name: 'relocation' parameters { key: 'to' value: '" +
            (root_ / "elsewhere").string() + "' } } }");
  const repository::LocalStore store;
  repository::ScanOptions options;
  options.repositories = {root_ / "repository"};
  const repository::Scanner scanner(store, agents_, options);
  const auto scan = scanner.ScanAll();
  const repository::ModelSource& source = scan.models.at("m");
  ASSERT_TRUE(source.config.ok()) << source.config.status().ToString();
  EXPECT_EQ(source.model_folder, root_ / "elsewhere");
  EXPECT_THAT(source.versions, ElementsAre(7));
  EXPECT_EQ(source.config->backend, "onnxruntime");
  EXPECT_NE(source.files, nullptr);
}

TEST_F(AModelWithAgents, IsNotShownToThemAgainWhileItIsUnchanged) {
  Write("repository/m/1/model.onnx", "weights");
  Write(
      "repository/m/config.pbtxt",
      "model_repository_agents { agents { name: 'relocation' parameters { key: 'journal' value: '" +
          (root_ / "journal").string() + "' } } }");
  const repository::LocalStore store;
  repository::ScanOptions options;
  options.repositories = {root_ / "repository"};
  const repository::Scanner scanner(store, agents_, options);
  const auto first = scanner.ScanAll();
  const repository::ModelSource& source = first.models.at("m");
  const auto second = scanner.ScanAll({{"m", {source.repository, source.timestamp}}});
  EXPECT_THAT(Journal(), ElementsAre("agent INITIALIZE", "agent LOAD"));
  EXPECT_THAT(second.unmodified, ElementsAre("m"));
}

TEST(AnAgentModel, CanBeMovedOnlyWhileItLoads) {
  auto agent =
      AgentLibrary::Load(TEST_AGENT_DIRECTORY "/relocation/libtritonrepoagent_relocation.so");
  ASSERT_TRUE(agent.ok());
  auto model = AgentModel::Create(*agent, {.location = "/tmp"});
  EXPECT_EQ((*model)->SetLocation(TRITONREPOAGENT_ARTIFACT_FILESYSTEM, "/x").message(),
            "location can only be updated during TRITONREPOAGENT_ACTION_LOAD, current action type "
            "is not set");
  EXPECT_EQ((*model)->Act(TRITONREPOAGENT_ACTION_UNLOAD).message(),
            "Unexpected lifecycle start state TRITONREPOAGENT_ACTION_UNLOAD");
  ASSERT_TRUE((*model)->Act(TRITONREPOAGENT_ACTION_LOAD).ok());
  EXPECT_TRUE((*model)->SetLocation(TRITONREPOAGENT_ARTIFACT_FILESYSTEM, "/x").ok());
  EXPECT_EQ((*model)->Act(TRITONREPOAGENT_ACTION_UNLOAD).message(),
            "Unexpected lifecycle state transition from TRITONREPOAGENT_ACTION_LOAD to "
            "TRITONREPOAGENT_ACTION_UNLOAD");
}

TEST(AnAgentModel, HasOneFolderToItself) {
  auto agent =
      AgentLibrary::Load(TEST_AGENT_DIRECTORY "/relocation/libtritonrepoagent_relocation.so");
  auto model = AgentModel::Create(*agent, {.location = "/tmp"});
  const std::string folder = *(*model)->AcquireFolder(TRITONREPOAGENT_ARTIFACT_FILESYSTEM);
  EXPECT_TRUE(fs::is_empty(folder));
  EXPECT_EQ(*(*model)->AcquireFolder(TRITONREPOAGENT_ARTIFACT_FILESYSTEM), folder);
  EXPECT_FALSE((*model)->AcquireFolder(TRITONREPOAGENT_ARTIFACT_REMOTE_FILESYSTEM).ok());
  EXPECT_TRUE((*model)->ReleaseFolder().ok());
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_EQ((*model)->ReleaseFolder().message(), "No mutable location to be deleted");
}

}  // namespace
}  // namespace nereid::repoagent_host
