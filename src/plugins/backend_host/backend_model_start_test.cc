// SPDX-License-Identifier: Apache-2.0
// How models of the backends of test_plugin/ are loaded, and their instances made.
#include "backend_host/backend_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend_host/testing/backend_model_fixture.h"
#include "config/complete.h"

namespace nereid::backend_host {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST_F(BackendModelTest, InitializesOnTheExecutingThreadWithoutThePromise) {
  ASSERT_TRUE(Start(MakeConfig("plain")).ok());
  EXPECT_FALSE(instances_[0]->runs_on_any_thread());
  std::thread([this] { Execute({"echo"}); }).join();
  EXPECT_EQ(OnlyResponse().error, "executed on another thread than initialized");
}

TEST_F(BackendModelTest, RunsOnAnyThreadWithThePromise) {
  ASSERT_TRUE(Start(MakeConfig("promising")).ok());
  EXPECT_TRUE(instances_[0]->runs_on_any_thread());
  std::thread([this] { Execute({"echo"}); }).join();
  EXPECT_EQ(OnlyResponse().error, "");
}

TEST_F(BackendModelTest, MakesInstancesAsTheGroupsSay) {
  config::ModelConfig config = MakeConfig("promising");
  config.instance_group.push_back(
      {.name = "a", .kind = config::InstanceGroup::Kind::kCpu, .count = 2});
  config.instance_group.push_back(
      {.name = "b", .kind = config::InstanceGroup::Kind::kModel, .count = 1, .passive = true});
  ASSERT_TRUE(Start(std::move(config)).ok());
  EXPECT_EQ(instances_.size(), 2u);
  EXPECT_EQ(instances_[1]->name(), "a_1");
  // This backend permits that instances start concurrently, hence in any order.
  const std::string events = Events("promising");
  EXPECT_TRUE(events.starts_with("Initialize\nModelInitialize model 1\nInstanceInitialize "));
  for (const char* line : {"\nInstanceInitialize a_0 CPU 0\n", "\nInstanceInitialize a_1 CPU 0\n",
                           "\nInstanceInitialize b_0 MODEL 0 passive\n"}) {
    EXPECT_NE(events.find(line), std::string::npos) << line;
  }
}

TEST_F(BackendModelTest, InitializesInstancesAtTheSameTimeWhereTheBackendAllowsIt) {
  config::ModelConfig config = MakeConfig("promising");
  config.parameters["meet"] = "meet_two";  // fails unless two are initialised at once
  config.instance_group.push_back(
      {.name = "a", .kind = config::InstanceGroup::Kind::kCpu, .count = 2});
  EXPECT_TRUE(Start(config).ok());
  EXPECT_TRUE(model_->loads_instances_in_parallel());
}

TEST_F(BackendModelTest, TheEnvironmentDecidesAboutInitializingAtTheSameTime) {
  ASSERT_TRUE(Load(MakeConfig("promising")).ok());
  setenv("TRITON_PARALLEL_INSTANCE_LOADING", "0", 1);
  EXPECT_FALSE(model_->loads_instances_in_parallel());
  setenv("TRITON_PARALLEL_INSTANCE_LOADING", "1", 1);
  ASSERT_TRUE(Load(MakeConfig("plain")).ok());
  EXPECT_TRUE(model_->loads_instances_in_parallel());
  setenv("TRITON_PARALLEL_INSTANCE_LOADING", "", 1);
  EXPECT_FALSE(model_->loads_instances_in_parallel());
  unsetenv("TRITON_PARALLEL_INSTANCE_LOADING");
}

TEST_F(BackendModelTest, RefusesInstancesOnGpus) {
  config::ModelConfig config = MakeConfig("plain");
  config.instance_group.push_back(
      {.name = "g", .kind = config::InstanceGroup::Kind::kGpu, .count = 1, .gpus = {0}});
  const base::Status status = Start(std::move(config));
  EXPECT_EQ(status.code(), base::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("GPU"));
}

TEST_F(BackendModelTest, TakesOverTheConfigurationThatTheBackendCompletes) {
  config::ModelConfig config = MakeConfig("plain");
  config.input.clear();
  config.output.clear();
  config.max_batch_size = 0;
  config.parameters["complete"] = "yes";
  const base::Status status = Load(std::move(config));
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(model_->config().max_batch_size, 4);
  EXPECT_EQ(model_->config().input.at(0).name, "INPUT0");
  EXPECT_NE(model_->config().dynamic_batching(), nullptr);
  EXPECT_EQ(model_->explanations().at("batching"), R"({"reason":"made up"})");
}

TEST_F(BackendModelTest, ReportsToTheBackendThatZeroWasWritten) {
  config::ModelConfig config = MakeConfig("plain");
  config.max_batch_size = 0;
  config.gives_max_batch_size = true;
  config.parameters["complete"] = "yes";
  const base::Status status = Load(std::move(config));
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(model_->explanations().at("batching"), R"({"reason":"given"})");
}

TEST_F(BackendModelTest, TheMemoryOfInstancesCountsAsLongAsTheyExist) {
  config::ModelConfig config = MakeConfig("plain");
  config.parameters["memory"] = "report_memory";
  config.instance_group.push_back(
      {.name = "a", .kind = config::InstanceGroup::Kind::kCpu, .count = 2});
  ASSERT_TRUE(Start(std::move(config)).ok());
  const auto reported = [&] {
    std::string text;
    for (const core::MemoryUse& use : core_model_->statistics().Read().memory) {
      text += std::string(memory::MemoryTypeName(use.where.type)) + " " +
              std::to_string(use.where.id) + ": " + std::to_string(use.bytes) + "; ";
    }
    return text;
  };
  // The last report of an instance replaces the one before.
  EXPECT_EQ(reported(), "CPU 1: 1000; GPU 1: 14; ");
  instances_.pop_back();
  EXPECT_EQ(reported(), "CPU 1: 1000; GPU 1: 7; ");
}

TEST_F(BackendModelTest, RefusesAConfigurationAfterInitialization) {
  config::ModelConfig config = MakeConfig("plain");
  config.parameters["set_late"] = "yes";
  ASSERT_TRUE(Start(std::move(config)).ok());
  EXPECT_THAT(Events("plain"), HasSubstr("can only be set while it is being initialized"));
}

TEST_F(BackendModelTest, FailsWithTheErrorOfModelInitialize) {
  config::ModelConfig config = MakeConfig("plain");
  config.parameters["fail"] = "fail_model";
  const base::Status status = Load(std::move(config));
  EXPECT_EQ(status.ToString(), "Unavailable: no such model");
  EXPECT_EQ(Events("plain"), "Initialize\nModelInitialize model 1\n");
}

TEST_F(BackendModelTest, FailsWithTheErrorOfInstanceInitialize) {
  config::ModelConfig config = MakeConfig("promising");
  config.parameters["fail"] = "fail_instance";
  EXPECT_EQ(Start(std::move(config)).ToString(), "Unavailable: no such instance");
}

TEST_F(BackendModelTest, AsksInstancesWhetherTheyAreReady) {
  config::ModelConfig config = MakeConfig("plain");
  ASSERT_TRUE(Start(config).ok());
  EXPECT_TRUE(model_->CheckReady().ok());
  instances_.clear();
  core_model_.reset();
  config.parameters["not_ready"] = "yes";
  ASSERT_TRUE(Start(std::move(config)).ok());
  EXPECT_EQ(model_->CheckReady().ToString(), "Unavailable: still warming up");
}

TEST_F(BackendModelTest, NeedsABackend) {
  EXPECT_EQ(Load(MakeConfig("")).message(), "must specify 'backend' for 'model'");
  EXPECT_EQ(
      Load(MakeConfig("nonesuch")).message(),
      "unable to find backend library for backend 'nonesuch', try specifying runtime on the "
      "model configuration. Searched for 'libtriton_nonesuch.so' in the model's folder, in its "
      "version folder and in '" TEST_BACKEND_DIRECTORY
      "/nonesuch'; the backend directory '" TEST_BACKEND_DIRECTORY
      "' has 'empty', 'plain' and 'promising'");
  EXPECT_THAT(std::string(Load(MakeConfig("plian")).message()),
              EndsWith("; did you mean 'plain'?"));
  EXPECT_EQ(Load(MakeConfig("../plain")).code(), base::StatusCode::kInvalidArgument);
}

TEST_F(BackendModelTest, SaysThatThereIsNoBackendDirectory) {
  const std::string nowhere = directory_ + "/nowhere";
  Restart({.backend_directory = nowhere});
  EXPECT_THAT(std::string(Load(MakeConfig("plain")).message()),
              EndsWith("the backend directory '" + nowhere +
                       "' cannot be read: No such file or directory"));
  std::filesystem::create_directories(nowhere + "/plain");
  EXPECT_THAT(std::string(Load(MakeConfig("plain")).message()),
              EndsWith("the backend directory '" + nowhere + "' has no backends"));
}

TEST_F(BackendModelTest, NeedsAnExecuteFunction) {
  EXPECT_THAT(std::string(Load(MakeConfig("empty")).message()),
              HasSubstr("unable to find required entrypoint 'TRITONBACKEND_ModelInstanceExecute'"));
}

TEST_F(BackendModelTest, SaysWhereItSearchedForARuntime) {
  config::ModelConfig config = MakeConfig("plain");
  config.runtime = "libother.so";
  EXPECT_EQ(Load(std::move(config)).message(),
            "unable to find backend library 'libother.so' for model 'model', searched: '" +
                directory_ + "/1' '" + directory_ + "' '" TEST_BACKEND_DIRECTORY "/plain' ");
}

// A folder of backends that contains a script, and the plain backend under the name of the Python
// backend.
class ScriptBackendTest : public BackendModelTest {
 protected:
  ScriptBackendTest() {
    namespace fs = std::filesystem;
    fs::create_directories(backends_ + "/python");
    fs::create_directories(backends_ + "/scripted");
    fs::copy_file(PluginPath("plain"), backends_ + "/python/libtriton_python.so");
    std::ofstream(backends_ + "/scripted/model.py") << "pass";
    Restart({.backend_directory = backends_});
  }

  const std::string backends_ = directory_ + "/backends";
};

TEST_F(ScriptBackendTest, RunsABackendThatIsAScript) {
  std::ofstream(backends_ + "/scripted/pb_exec_env_model.py.tar.gz") << "";
  ASSERT_TRUE(Load(MakeConfig("scripted")).ok());
  EXPECT_EQ(model_->library().name(), "scripted");
  EXPECT_EQ(model_->library().directory(), backends_ + "/scripted");
  EXPECT_EQ(model_->library().path(), backends_ + "/python/libtriton_python.so");
  EXPECT_EQ(model_->config().runtime, "model.py");
  EXPECT_EQ(model_->config().parameters.at("EXECUTION_ENV_PATH"),
            backends_ + "/scripted/pb_exec_env_model.py.tar.gz");
  // The Python backend itself is another backend, from the same library.
  const BackendLibrary* const scripted = &model_->library();
  ASSERT_TRUE(Load(MakeConfig("python")).ok());
  EXPECT_NE(&model_->library(), scripted);
  EXPECT_EQ(model_->config().runtime, "");
}

TEST_F(ScriptBackendTest, SaysWhichScriptIsMissing) {
  config::ModelConfig config = MakeConfig("nonesuch");
  config.runtime = "model.py";
  EXPECT_EQ(Load(std::move(config)).message(),
            "unable to find Python backend based backend library 'model.py' for model 'model', "
            "searched: '" +
                backends_ + "/nonesuch/model.py'");
  std::filesystem::remove_all(backends_ + "/python");
  EXPECT_EQ(Load(MakeConfig("scripted")).message(),
            "unable to find backend library 'libtriton_python.so' for model 'model', searched: '" +
                directory_ + "/1' '" + directory_ + "' '" + backends_ + "/scripted' '" + backends_ +
                "/python' ");
}

TEST_F(BackendModelTest, RefusesARuntimeOutsideItsFolder) {
  config::ModelConfig config = MakeConfig("plain");
  config.runtime = "../empty/libtriton_empty.so";
  EXPECT_EQ(Load(std::move(config)).message(),
            "backend library name '../empty/libtriton_empty.so' escapes backend directory "
            "'" TEST_BACKEND_DIRECTORY
            "/plain', for model 'model', check model config runtime "
            "field");
}

TEST_F(BackendModelTest, PrefersTheLibraryOfTheVersionFolder) {
  std::filesystem::create_directories(directory_ + "/1");
  std::ofstream(directory_ + "/1/libtriton_plain.so") << "not a library";
  EXPECT_THAT(std::string(Load(MakeConfig("plain")).message()),
              HasSubstr("unable to load shared library: " + directory_ + "/1/libtriton_plain.so"));
  // A failure is not remembered.
  std::filesystem::copy_file(PluginPath("plain"), directory_ + "/1/libtriton_plain.so",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(Load(MakeConfig("plain")).ok());
  EXPECT_EQ(model_->library().directory(), directory_ + "/1");
}

TEST_F(BackendModelTest, GivesTheBackendItsSettings) {
  Restart({.backend_directory = TEST_BACKEND_DIRECTORY,
           .backend_settings = {{"", {{"note-config", "true"}, {"a", "1"}}},
                                {"plain", {{"a", "2"}, {"default-max-batch-size", "9"}}},
                                {"other", {{"b", "3"}}}}});
  ASSERT_TRUE(Load(MakeConfig("plain")).ok());
  EXPECT_THAT(Events("plain"),
              HasSubstr("{\"cmdline\":{\"a\":\"2\",\"auto-complete-config\":\"true\","
                        "\"backend-directory\":\"" TEST_BACKEND_DIRECTORY "\","
                        "\"default-max-batch-size\":\"9\","
                        "\"min-compute-capability\":\"0.000000\",\"note-config\":\"true\"}}\n"));
}

TEST_F(BackendModelTest, InitializesABackendOnceForManyThreads) {
  std::array<std::thread, 8> threads;
  std::array<BackendLibrary*, 8> found{};
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i] = std::thread([this, &found, i] {
      auto library = libraries_->Acquire(
          {.model_name = "m", .model_dir = directory_, .version = 1, .backend = "plain"});
      found[i] = library.ok() ? *library : nullptr;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (BackendLibrary* library : found) EXPECT_EQ(library, found[0]);
  EXPECT_NE(found[0], nullptr);
  EXPECT_EQ(Events("plain"), "Initialize\n");
}

TEST_F(BackendModelTest, TriesAgainAfterABackendFailed) {
  Restart({.backend_directory = TEST_BACKEND_DIRECTORY,
           .backend_settings = {{"plain", {{"fail", "true"}}}}});
  EXPECT_EQ(Load(MakeConfig("plain")).ToString(), "Unavailable: told to fail");
  EXPECT_EQ(Load(MakeConfig("plain")).ToString(), "Unavailable: told to fail");
  EXPECT_EQ(Events("plain"), "Initialize\nInitialize\n");
}

}  // namespace
}  // namespace nereid::backend_host
