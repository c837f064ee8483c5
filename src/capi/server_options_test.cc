// SPDX-License-Identifier: Apache-2.0
// Every option of the C API, and the engine options that result from it.
#include "capi/server_options.h"

#include <filesystem>
#include <memory>

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/temporary_folder.h"
#include "nereid/on_demand.h"

namespace {

using nereid::engine::ControlMode;
using nereid::engine::EngineOptions;

// "" for success, else "<code>: <message>". Deletes the error.
std::string Take(TRITONSERVER_Error* error) {
  if (error == nullptr) return "";
  std::string text =
      std::string(TRITONSERVER_ErrorCodeString(error)) + ": " + TRITONSERVER_ErrorMessage(error);
  TRITONSERVER_ErrorDelete(error);
  return text;
}

#define EXPECT_DONE(call) EXPECT_EQ(Take(call), "")

class ServerOptionsTest : public testing::Test {
 protected:
  ServerOptionsTest() { EXPECT_DONE(TRITONSERVER_ServerOptionsNew(&options_)); }
  ~ServerOptionsTest() override { EXPECT_DONE(TRITONSERVER_ServerOptionsDelete(options_)); }

  EngineOptions Engine() const { return options_->ToEngineOptions(); }

  TRITONSERVER_ServerOptions* options_ = nullptr;
};

TEST_F(ServerOptionsTest, BeginAsTritonsDo) {
  const EngineOptions engine = Engine();
  EXPECT_EQ(engine.server_id, "triton");
  EXPECT_EQ(engine.control.mode, ControlMode::kPoll);
  EXPECT_EQ(engine.poll_interval.count(), 0);  // the embedder says when to poll
  EXPECT_TRUE(engine.repository.disable_auto_complete);
  EXPECT_FALSE(engine.backends.auto_complete_config);
  EXPECT_TRUE(engine.exit_on_error);
  EXPECT_TRUE(engine.strict_readiness);
  EXPECT_EQ(options_->exit_timeout.count(), 30);
  EXPECT_FALSE(engine.cache.is_used());
}

TEST_F(ServerOptionsTest, LoadModelsOnDemand) {
  const char* const pinned[] = {"a", "b"};
  NEREIDSERVER_OnDemandSettings settings{.size = sizeof(settings),
                                         .memory_budget = 1000,
                                         .gpu_memory_budget = 2000,
                                         .load_wait_secs = 3,
                                         .min_stay_secs = 4,
                                         .idle_secs = 5,
                                         .pinned = pinned,
                                         .pinned_count = 2};
  EXPECT_DONE(NEREIDSERVER_ServerOptionsSetOnDemand(options_, &settings));
  const EngineOptions engine = Engine();
  EXPECT_EQ(engine.control.mode, ControlMode::kOnDemand);
  EXPECT_EQ(engine.on_demand.memory_budget, 1000u);
  EXPECT_EQ(engine.on_demand.gpu_memory_budget, 2000u);
  EXPECT_EQ(engine.on_demand.load_wait, std::chrono::seconds(3));
  EXPECT_EQ(engine.on_demand.min_stay, std::chrono::seconds(4));
  EXPECT_EQ(engine.on_demand.idle_unload, std::chrono::seconds(5));
  EXPECT_EQ(engine.on_demand.pinned, (std::set<std::string>{"a", "b"}));
  settings.load_wait_secs = 0;
  EXPECT_EQ(Take(NEREIDSERVER_ServerOptionsSetOnDemand(options_, &settings)),
            "Invalid argument: unexpected load_wait_secs 0, expected at least 1");
  settings.size = 8;
  EXPECT_NE(Take(NEREIDSERVER_ServerOptionsSetOnDemand(options_, &settings)), "");
}

TEST_F(ServerOptionsTest, SayWhichModelsThereAre) {
  for (const char* path : {"/b", "/a", "/b"}) {
    EXPECT_DONE(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options_, path));
  }
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetStartupModel(options_, "m"));
  EXPECT_DONE(
      TRITONSERVER_ServerOptionsSetModelControlMode(options_, TRITONSERVER_MODEL_CONTROL_EXPLICIT));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetStrictModelConfig(options_, false));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetModelConfigName(options_, "fast"));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetModelNamespacing(options_, true));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetModelLoadThreadCount(options_, 0));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetModelLoadRetryCount(options_, 3));
  const EngineOptions engine = Engine();
  EXPECT_EQ(engine.repository.repositories, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(engine.control.startup_models, (std::set<std::string>{"m"}));
  EXPECT_EQ(engine.control.mode, ControlMode::kExplicit);
  EXPECT_FALSE(engine.repository.disable_auto_complete);
  EXPECT_TRUE(engine.backends.auto_complete_config);
  EXPECT_EQ(engine.repository.model_config_name, "fast");
  EXPECT_TRUE(engine.repository.has_namespaces);
  EXPECT_EQ(engine.model_load_threads,
            1u);  // 0 would load nothing
  EXPECT_EQ(engine.model_load_retries, 3u);
}

TEST_F(ServerOptionsTest, SayHowTheServerBehaves) {
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetServerId(options_, "mine"));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetExitOnError(options_, false));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetStrictReadiness(options_, false));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetExitTimeout(options_, 7));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize(options_, 9));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability(options_, 7.5));
  const EngineOptions engine = Engine();
  EXPECT_EQ(engine.server_id, "mine");
  EXPECT_FALSE(engine.exit_on_error);
  EXPECT_FALSE(engine.strict_readiness);
  EXPECT_EQ(options_->exit_timeout.count(), 7);
  EXPECT_EQ(engine.gpus.pinned_pool_bytes, 9u);
  EXPECT_EQ(engine.backends.min_compute_capability, 7.5);
}

TEST_F(ServerOptionsTest, SelectTheMetrics) {
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetMetrics(options_, false));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetGpuMetrics(options_, false));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetCpuMetrics(options_, false));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetMetricsInterval(options_, 50));
  EXPECT_DONE(
      TRITONSERVER_ServerOptionsSetMetricsConfig(options_, "", "summary_latencies", "true"));
  // Unknown settings are reported only in the log, as in Triton.
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetMetricsConfig(options_, "", "no_such_setting", "1"));
  const nereid::engine::MetricsConfig metrics = Engine().metrics;
  EXPECT_FALSE(metrics.is_allowed || metrics.has_gpu || metrics.has_cpu);
  EXPECT_EQ(metrics.interval.count(), 50);
  EXPECT_TRUE(metrics.summary_latencies);
}

TEST_F(ServerOptionsTest, LimitRatesByTheLeastCountOfAResource) {
  EXPECT_DONE(
      TRITONSERVER_ServerOptionsSetRateLimiterMode(options_, TRITONSERVER_RATE_LIMIT_EXEC_COUNT));
  for (const size_t count : {5, 3, 4}) {
    EXPECT_DONE(TRITONSERVER_ServerOptionsAddRateLimiterResource(options_, "R", count, 1));
  }
  EXPECT_TRUE(Engine().limits_rate);
  EXPECT_EQ(Engine().rate_limits.at(1).at("R"), 3u);
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetRateLimiterMode(options_, TRITONSERVER_RATE_LIMIT_OFF));
  EXPECT_FALSE(Engine().limits_rate);
}

TEST_F(ServerOptionsTest, ConfigureBackendsAndHostPolicies) {
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetBackendConfig(options_, "onnxruntime", "a", "1"));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetHostPolicy(options_, "numa0", "numa-node", "0"));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(
      options_, TRITONSERVER_INSTANCEGROUPKIND_GPU, 1, 0.5));
  const auto backends = Engine().backends;
  EXPECT_EQ(backends.backend_settings.at("onnxruntime").at("a"), "1");
  EXPECT_EQ(backends.backend_settings.at("").at("model-load-gpu-limit-device-1"), "0.500000");
  EXPECT_EQ(backends.host_policies.at("numa0").at("numa-node"), "0");
}

TEST_F(ServerOptionsTest, ConfigureCachesAsJson) {
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetResponseCacheByteSize(options_, 0));
  EXPECT_FALSE(Engine().cache.is_used());
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetResponseCacheByteSize(options_, 1024));
  EXPECT_EQ(Engine().cache.json.at("local"), R"({"size": 1024})");
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetCacheConfig(options_, "redis", R"({"host":"a"})"));
  EXPECT_EQ(Engine().cache.json.at("redis"), R"({"host":"a"})");
}

TEST_F(ServerOptionsTest, FindPlugInsBesideTheBackends) {
  const nereid::base::TemporaryFolder folder =
      std::move(*nereid::base::MakeTemporaryFolder("test"));
  for (const char* name : {"/backends", "/caches", "/repoagents"}) {
    std::filesystem::create_directory(folder.path + name);
  }
  const std::string backends = folder.path + "/backends";
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetBackendDirectory(options_, backends.c_str()));
  EXPECT_EQ(Engine().cache.directory, folder.path + "/caches");
  EXPECT_EQ(Engine().agent_directory, folder.path + "/repoagents");
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetCacheDirectory(options_, "/c"));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetRepoAgentDirectory(options_, "/a"));
  EXPECT_EQ(Engine().cache.directory, "/c");
  EXPECT_EQ(Engine().agent_directory, "/a");
  std::filesystem::remove_all(folder.path);
}

TEST_F(ServerOptionsTest, RefuseWhatMakesNoSense) {
  const auto limit = [&](TRITONSERVER_InstanceGroupKind kind, int device, double fraction) {
    return Take(
        TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(options_, kind, device, fraction));
  };
  EXPECT_EQ(limit(TRITONSERVER_INSTANCEGROUPKIND_GPU, -1, 0.5),
            "Invalid argument: expects device ID >= 0, got -1");
  EXPECT_EQ(limit(TRITONSERVER_INSTANCEGROUPKIND_GPU, 0, 1.5),
            "Invalid argument: expects limit fraction to be in range [0.0, 1.0], got 1.500000");
  EXPECT_EQ(limit(TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, 0.5),
            "Invalid argument: given device kind is not supported, got: CPU");
  EXPECT_EQ(Take(TRITONSERVER_ServerOptionsSetHostPolicy(options_, "p", "gpu", "0")),
            "Unsupported: Unsupported host policy setting 'gpu' is specified, supported settings "
            "are 'numa-node', 'cpu-cores'");
  EXPECT_EQ(Take(TRITONSERVER_ServerOptionsSetModelControlMode(
                options_, static_cast<TRITONSERVER_ModelControlMode>(9))),
            "Invalid argument: unknown control mode '9'");
  EXPECT_EQ(Take(TRITONSERVER_ServerOptionsSetRateLimiterMode(
                options_, static_cast<TRITONSERVER_RateLimitMode>(9))),
            "Invalid argument: unknown rate limit mode '9'");
  EXPECT_EQ(Engine().control.mode, ControlMode::kPoll);
}

TEST_F(ServerOptionsTest, AcceptWhatOnlyGpusNeed) {
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(options_, 1, 64));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize(options_, 0, 64));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetEnablePeerAccess(options_, false));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetBufferManagerThreadCount(options_, 2));
  EXPECT_EQ(Engine().gpus.gpu_pool_bytes_by_device.at(1), 64u);
  EXPECT_FALSE(Engine().gpus.enables_peer_access);
}

TEST_F(ServerOptionsTest, OfTheLogActAtOnce) {
  const nereid::base::LogOptions before = nereid::base::CurrentLogOptions();
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetLogInfo(options_, false));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetLogWarn(options_, false));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetLogError(options_, false));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetLogVerbose(options_, 2));
  EXPECT_DONE(TRITONSERVER_ServerOptionsSetLogFormat(options_, TRITONSERVER_LOG_ISO8601));
  const nereid::base::LogOptions log = nereid::base::CurrentLogOptions();
  EXPECT_FALSE(log.info || log.warning || log.error);
  EXPECT_EQ(log.verbose_level, 2);
  EXPECT_EQ(log.format, nereid::base::LogFormat::kIso8601);
  const std::string why = Take(TRITONSERVER_ServerOptionsSetLogFile(options_, "/dev/null/log"));
  EXPECT_TRUE(why.starts_with("Internal: ")) << why;
  EXPECT_TRUE(nereid::base::ConfigureLog(before).ok());
}

}  // namespace
