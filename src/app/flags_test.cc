// SPDX-License-Identifier: Apache-2.0
// Tests every flag with a value that differs from the default, and the field that it must change.
#include "app/flags.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "app/testing/command_line.h"

namespace nereid::app {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Arguments, and whether they set the options. No argument has a default as its value.
struct Case {
  std::vector<std::string> arguments;
  bool (*holds)(const Options& options);
};

#define HOLDS(condition) [](const Options& o) -> bool { return condition; }

const std::vector<Case> kGeneral = {
    {{"--help"}, HOLDS(o.wants_help)},
    {{"--version"}, HOLDS(o.wants_version)},
    {{"--id=mine"}, HOLDS(o.engine.server_id == "mine")},
    {{"--exit-timeout-secs=7"}, HOLDS(o.exit_timeout == seconds(7))},
    {{"--drain-secs=8"}, HOLDS(o.drain_time == seconds(8))},
    {{}, HOLDS(o.engine.watchdog_limit == seconds(30) && o.engine.execution_limit == seconds(0))},
    {{"--watchdog-secs=0"}, HOLDS(o.engine.watchdog_limit == seconds(0))},
    {{"--watchdog-execution-secs=9"}, HOLDS(o.engine.execution_limit == seconds(9))},
    {{"--exit-on-fatal-error=true"}, HOLDS(o.exits_on_fatal_error)},
    {{"--min-body-rate=9"}, HOLDS(o.min_body_rate == 9)},
    {{"--unix-socket-mode=600"}, HOLDS(o.unix_socket_mode == 0600)},
    {{"--log-verbose=3"}, HOLDS(o.log.verbose_level == 3)},
    {{"--log-verbose=true"}, HOLDS(o.log.verbose_level == 1)},
    {{"--log-info=false"}, HOLDS(!o.log.info)},
    {{"--log-warning=false"}, HOLDS(!o.log.warning)},
    {{"--log-error=false"}, HOLDS(!o.log.error)},
    {{"--log-format=json"}, HOLDS(o.log.format == base::LogFormat::kJson)},
    {{"--log-format=ISO8601"}, HOLDS(o.log.format == base::LogFormat::kIso8601)},
    {{"--log-file=/tmp/log"}, HOLDS(o.log.file == "/tmp/log")},
};

const std::vector<Case> kRepository = {
    {{"--model-repository=/a", "--model-store=/b"},
     HOLDS((o.engine.repository.repositories == std::vector<std::string>{"/r", "/a", "/b"}))},
    {{"--exit-on-error=false"}, HOLDS(!o.engine.exit_on_error)},
    {{"--strict-readiness=false"}, HOLDS(!o.engine.strict_readiness)},
    {{"--disable-auto-complete-config"},
     HOLDS(o.engine.repository.disable_auto_complete && !o.engine.backends.auto_complete_config)},
    {{"--strict-model-config=true"},
     HOLDS(o.engine.repository.disable_auto_complete&& o.warnings.size() == 1)},
    {{"--model-control-mode=poll"}, HOLDS(o.engine.control.mode == engine::ControlMode::kPoll)},
    {{"--model-control-mode=EXPLICIT"},
     HOLDS(o.engine.control.mode == engine::ControlMode::kExplicit)},
    {{"--allow-poll-model-repository=true"},
     HOLDS(o.engine.control.mode == engine::ControlMode::kPoll && o.warnings.size() == 1)},
    {{"--allow-model-control=true"},
     HOLDS(o.engine.control.mode == engine::ControlMode::kExplicit && !o.warnings.empty())},
    {{"--generation-poll-ms=250"},
     HOLDS(o.engine.generation_interval == std::chrono::milliseconds(250) &&
           o.engine.looks_into_object_stores)},
    {{"--model-control-mode=explicit"},
     HOLDS(o.engine.generation_interval == std::chrono::milliseconds(500) &&
           !o.engine.looks_into_object_stores)},
    {{"--repository-poll-secs=5"}, HOLDS(o.engine.poll_interval == seconds(5))},
    {{"--model-control-mode=explicit", "--load-model=a", "--load-model=b"},
     HOLDS((o.engine.control.startup_models == std::set<std::string>{"a", "b"}))},
    {{"--model-config-name=fast"}, HOLDS(o.engine.repository.model_config_name == "fast")},
    {{"--model-load-thread-count=3"}, HOLDS(o.engine.model_load_threads == 3)},
    {{"--model-load-retry-count=2"}, HOLDS(o.engine.model_load_retries == 2)},
    {{"--model-namespacing=true"}, HOLDS(o.engine.repository.has_namespaces)},
    {{"--enable-peer-access=false"}, HOLDS(o.warnings.empty())},
};

const std::vector<Case> kHttp = {
    {{"--allow-http=false"}, HOLDS(!o.http.is_allowed && o.grpc.is_allowed)},
    {{"--http-address=::1"}, HOLDS(o.http.address == "::1")},
    {{"--http-port=9000"}, HOLDS(o.http.port == 9000)},
    {{"--reuse-http-port=true"}, HOLDS(o.http.reuse_port && !o.grpc.reuse_port)},
    {{"--http-thread-count=6"}, HOLDS(o.http.thread_count == 6)},
    {{"--http-max-input-size=1000"}, HOLDS(o.http.max_input_bytes == 1000)},
    {{"--http-header-forward-pattern=x-.*"},
     HOLDS(o.http.forwarder != nullptr && o.grpc.forwarder == nullptr)},
    {{"--http-restricted-api=health,logging:key=secret"},
     HOLDS(o.http.restrictions.key(common::Category::kLogging) == "key" &&
           o.http.restrictions.key(common::Category::kInference).empty())},
    {{"--http-max-connection-age=4"}, HOLDS(o.http.max_connection_age == milliseconds(4))},
    {{"--http-use-ssl=true", "--http-server-cert=c", "--http-server-key=k"},
     HOLDS(o.http.ssl.is_used && !o.http.ssl.is_mutual && o.http.ssl.server_cert == "c" &&
           o.http.ssl.server_key == "k" && !o.grpc.ssl.is_used)},
    {{"--http-use-ssl-mutual=true", "--http-server-cert=c", "--http-server-key=k",
      "--http-root-cert=r"},
     HOLDS(o.http.ssl.is_mutual&& o.http.ssl.root_cert == "r")},
    {{"--http-cors-allow-origin=https://a.b", "--http-cors-allow-origin=*"},
     HOLDS((o.http.cors.origins == std::vector<std::string>{"https://a.b", "*"}))},
    {{"--http-cors-allow-methods=GET"}, HOLDS(o.http.cors.methods == "GET")},
    {{"--http-cors-allow-headers=X-Mine"}, HOLDS(o.http.cors.headers == "X-Mine")},
    {{"--http-cors-max-age=60"}, HOLDS(o.http.cors.max_age_s == 60)},
};

const std::vector<Case> kGrpc = {
    {{"--allow-grpc=false"}, HOLDS(!o.grpc.is_allowed && o.http.is_allowed)},
    {{"--grpc-address=::1"}, HOLDS(o.grpc.address == "::1")},
    {{"--grpc-port=9001"}, HOLDS(o.grpc.port == 9001)},
    {{"--reuse-grpc-port=true"}, HOLDS(o.grpc.reuse_port && !o.http.reuse_port)},
    {{"--grpc-infer-thread-count=5"}, HOLDS(o.grpc.thread_count == 5)},
    {{"--grpc-infer-allocation-pool-size=5"}, HOLDS(o.warnings.empty())},
    {{"--grpc-max-response-pool-size=5"}, HOLDS(o.grpc.max_response_pool_size == 5)},
    {{"--grpc-infer-response-compression-level=Medium"},
     HOLDS(o.grpc.response_compression == CompressionLevel::kMedium)},
    {{"--grpc-keepalive-time=1"}, HOLDS(o.grpc.keepalive_time == milliseconds(1))},
    {{"--grpc-keepalive-timeout=2"}, HOLDS(o.grpc.keepalive_timeout == milliseconds(2))},
    {{"--grpc-keepalive-permit-without-calls=true"}, HOLDS(o.grpc.keepalive_permit_without_calls)},
    {{"--grpc-http2-max-pings-without-data=3"}, HOLDS(o.grpc.max_pings_without_data == 3)},
    {{"--grpc-http2-min-recv-ping-interval-without-data=4"},
     HOLDS(o.grpc.min_ping_interval_without_data == milliseconds(4))},
    {{"--grpc-http2-max-ping-strikes=5"}, HOLDS(o.grpc.max_ping_strikes == 5)},
    {{"--grpc-max-connection-age=6"}, HOLDS(o.grpc.max_connection_age == milliseconds(6))},
    {{"--grpc-max-connection-age-grace=7"},
     HOLDS(o.grpc.max_connection_age_grace == milliseconds(7))},
    {{"--grpc-use-ssl=true", "--grpc-server-cert=c", "--grpc-server-key=k"},
     HOLDS(o.grpc.ssl.is_used&& o.grpc.ssl.server_cert == "c" && o.grpc.ssl.server_key == "k" &&
           !o.http.ssl.is_used)},
    {{"--grpc-use-ssl-mutual=true", "--grpc-server-cert=c", "--grpc-server-key=k",
      "--grpc-root-cert=r"},
     HOLDS(o.grpc.ssl.is_mutual&& o.grpc.ssl.root_cert == "r")},
    {{"--grpc-header-forward-pattern=x-.*"},
     HOLDS(o.grpc.forwarder != nullptr && o.http.forwarder == nullptr)},
    {{"--grpc-restricted-protocol=inference:key=secret"},
     HOLDS(o.grpc.restrictions.key(common::Category::kInference) == "triton-grpc-protocol-key")},
};

const std::vector<Case> kMetricsAndTraces = {
    {{"--allow-metrics=false"}, HOLDS(!o.metrics.is_allowed && !o.engine.metrics.is_allowed)},
    {{"--allow-gpu-metrics=false"}, HOLDS(!o.engine.metrics.has_gpu && o.engine.metrics.has_cpu)},
    {{"--allow-cpu-metrics=false"}, HOLDS(!o.engine.metrics.has_cpu && o.engine.metrics.has_gpu)},
    {{"--metrics-address=::1"}, HOLDS(o.metrics.address == "::1" && MetricsAddress(o) == "::1")},
    {{"--metrics-port=9002"}, HOLDS(o.metrics.port == 9002)},
    {{"--metrics-interval-ms=50"}, HOLDS(o.engine.metrics.interval == milliseconds(50))},
    {{"--metrics-config=summary_latencies=true"}, HOLDS(o.engine.metrics.summary_latencies)},
    {{"--trace-config=rate=5"}, HOLDS(o.engine.trace.settings.rate == 5)},
    {{"--trace-file=t"}, HOLDS(o.engine.trace.file == "t" && o.warnings.size() == 1)},
    {{"--trace-level=TENSORS"},
     HOLDS(o.engine.trace.settings.levels == observe::kTraceTensors && o.warnings.size() == 1)},
    {{"--trace-rate=6"}, HOLDS(o.engine.trace.settings.rate == 6 && o.warnings.size() == 1)},
    {{"--trace-count=7"}, HOLDS(o.engine.trace.settings.count == 7 && o.warnings.size() == 1)},
    {{"--trace-log-frequency=8"},
     HOLDS(o.engine.trace.settings.log_frequency == 8 && o.warnings.size() == 1)},
};

const std::vector<Case> kClouds = {
    {{"--allow-sagemaker=true"}, HOLDS(o.cloud.sagemaker.is_allowed)},
    {{"--sagemaker-address=::1"}, HOLDS(o.cloud.sagemaker.address == "::1")},
    {{"--sagemaker-port=81"}, HOLDS(o.cloud.sagemaker.port == 81 && o.cloud.vertex_ai.port != 81)},
    {{"--sagemaker-safe-port-range=8000-9000"},
     HOLDS(o.cloud.safe_ports->first == 8000 && o.cloud.safe_ports->second == 9000)},
    {{"--sagemaker-thread-count=2"}, HOLDS(o.cloud.sagemaker.thread_count == 2)},
    {{"--allow-vertex-ai=true"}, HOLDS(o.cloud.vertex_ai.is_allowed&& o.http.is_allowed)},
    {{"--vertex-ai-address=::1"}, HOLDS(o.cloud.vertex_ai.address == "::1")},
    {{"--vertex-ai-port=82"}, HOLDS(o.cloud.vertex_ai.port == 82 && o.cloud.sagemaker.port != 82)},
    {{"--vertex-ai-thread-count=3"}, HOLDS(o.cloud.vertex_ai.thread_count == 3)},
    {{"--vertex-ai-default-model=m"}, HOLDS(o.cloud.vertex_ai_entry.default_model == "m")},
};

const std::vector<Case> kBackends = {
    {{"--backend-directory=/b"}, HOLDS(o.engine.backends.backend_directory == "/b")},
    {{"--backend-config=onnxruntime,a=1", "--backend-config=b=2"},
     HOLDS(o.engine.backends.backend_settings.at("onnxruntime").at("a") == "1" &&
           o.engine.backends.backend_settings.at("").at("b") == "2")},
    {{"--adaptive-concurrency=true"}, HOLDS(o.engine.adapts_concurrency)},
    {{"--inline-exec-budget-us=70"}, HOLDS(o.engine.inline_budget == microseconds(70))},
    {{"--host-policy=numa0,numa-node=0"},
     HOLDS(o.engine.backends.host_policies.at("numa0").at("numa-node") == "0")},
    {{"--min-supported-compute-capability=7.5"},
     HOLDS(o.engine.backends.min_compute_capability == 7.5)},
    {{"--pinned-memory-pool-byte-size=9"}, HOLDS(o.engine.gpus.pinned_pool_bytes == 9)},
    {{"--cuda-memory-pool-byte-size=1:64"},
     HOLDS(o.engine.gpus.gpu_pool_bytes_by_device.at(1) == 64)},
    {{"--cuda-virtual-address-size=0:64"}, HOLDS(o.warnings.empty())},
    {{"--buffer-manager-thread-count=2"}, HOLDS(o.warnings.empty())},
    {{"--model-load-gpu-limit=0:0.5"},
     HOLDS(o.engine.backends.backend_settings.at("").at("model-load-gpu-limit-device-0") ==
           "0.500000")},
    {{"--repoagent-directory=/a"}, HOLDS(o.engine.agent_directory == "/a")},
    {{"--cache-directory=/c"}, HOLDS(o.engine.cache.directory == "/c")},
    {{"--cache-config=local,size=64"},
     HOLDS(o.engine.cache.settings.at("local").at("size") == "64")},
    {{"--response-cache-byte-size=65"},
     HOLDS(o.engine.cache.settings.at("local").at("size") == "65" && o.warnings.size() == 1)},
    {{"--rate-limit=execution_count"}, HOLDS(o.engine.limits_rate)},
    {{"--rate-limit-resource=R1:10", "--rate-limit-resource=R2:5:1",
      "--rate-limit-resource=R3:2:global"},
     HOLDS(o.engine.rate_limits.at(schedule::kEachDeviceResource).at("R1") == 10 &&
           o.engine.rate_limits.at(1).at("R2") == 5 &&
           o.engine.rate_limits.at(schedule::kGlobalResource).at("R3") == 2)},
    {{"--allow-client-shm=true"},
     HOLDS(o.engine.allows_client_regions && !o.engine.trusts_client_regions)},
    {{"--trust-shared-memory=true"},
     HOLDS(o.engine.trusts_client_regions && !o.engine.allows_client_regions)},
};

const std::vector<Case> kLimits = {
    {{"--model-control-mode=ondemand", "--model-memory-budget=4711"},
     HOLDS(o.engine.on_demand.memory_budget == 4711)},
    {{"--model-control-mode=ondemand", "--model-gpu-memory-budget=4711"},
     HOLDS(o.engine.on_demand.gpu_memory_budget == 4711)},
    {{"--model-control-mode=ondemand", "--pin-model=a"},
     HOLDS(o.engine.on_demand.pinned == std::set<std::string>{"a"})},
    {{"--load-wait-secs=9"}, HOLDS(o.engine.on_demand.load_wait == seconds(9))},
    {{"--model-min-stay-secs=9"}, HOLDS(o.engine.on_demand.min_stay == seconds(9))},
    {{"--model-control-mode=ondemand", "--model-idle-secs=9"},
     HOLDS(o.engine.on_demand.idle_unload == seconds(9))},
    {{"--max-connections=4711"}, HOLDS(o.engine.budgets.connections == 4711)},
    {{"--max-connections-per-address=4711"},
     HOLDS(o.engine.budgets.connections_per_address == 4711)},
    {{"--max-requests=4711"}, HOLDS(o.engine.budgets.requests == 4711)},
    {{"--max-requests-per-model=4711"}, HOLDS(o.engine.budgets.requests_per_model == 4711)},
    {{"--max-request-memory=4711"}, HOLDS(o.engine.budgets.request_bytes == 4711)},
    {{"--max-unsent-memory=4711"}, HOLDS(o.engine.budgets.unsent_bytes == 4711)},
    {{"--max-resets-per-second=4711"}, HOLDS(o.engine.budgets.resets_per_second == 4711)},
    {{"--max-control-frames-per-second=4711"},
     HOLDS(o.engine.budgets.control_frames_per_second == 4711)},
    {{"--max-load-memory=4711"}, HOLDS(o.engine.budgets.load_bytes == 4711)},
    {{"--max-load-instances=4711"}, HOLDS(o.engine.budgets.load_instances == 4711)},
    {{"--max-load-warm-up-runs=4711"}, HOLDS(o.engine.budgets.load_warm_up_runs == 4711)},
    {{"--max-requests-per-connection=4711"}, HOLDS(o.limits.requests == 4711)},
    {{"--max-stream-backlog=4711"}, HOLDS(o.limits.stream_backlog_bytes == 4711)},
    {{"--min-read-rate=4711"}, HOLDS(o.limits.min_read_rate == 4711)},
    {{"--max-header-bytes=4711"}, HOLDS(o.limits.header_bytes == 4711)},
    {{"--write-timeout-secs=4711"}, HOLDS(o.limits.write_timeout == std::chrono::seconds(4711))},
};

const std::vector<Case> kAccess = {
    {{"--api-keys=keys.json"},
     HOLDS(o.access.keys_file == "keys.json" && !o.access.has_admin_listener())},
    {{"--admin-address=::1"},
     HOLDS(AdminAddress(o) == "::1" && o.access.has_admin_listener() &&
           !o.access.control_is_on_main())},
    {{"--admin-port=4711"}, HOLDS(AdminPort(o) == 4711 && o.access.has_admin_listener())},
    {{"--admin-grpc-port=4711"},
     HOLDS(o.access.admin_grpc_port == 4711 && o.access.has_admin_listener())},
    {{"--admin-port=4711", "--admin-on-main=true"}, HOLDS(o.access.control_is_on_main())},
    {{"--console=false"}, HOLDS(!o.access.has_console)},
};

#undef HOLDS

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (const auto& cases : {kGeneral, kRepository, kHttp, kGrpc, kMetricsAndTraces, kClouds,
                            kBackends, kLimits, kAccess}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

class FlagsTest : public CommandLineTest {};

TEST_F(FlagsTest, EachSetsWhatItSays) {
  const Options defaults = *Parse({});
  for (const Case& tried : AllCases()) {
    const base::Result<Options> options = Parse(tried.arguments);
    ASSERT_TRUE(options.ok()) << tried.arguments[0] << ": " << options.status().message();
    EXPECT_TRUE(tried.holds(*options)) << tried.arguments[0];
  }
  // A condition that holds without the flag would prove nothing.
  for (const Case& tried : {kHttp[2], kGrpc[2], kMetricsAndTraces[4], kRepository[1]}) {
    EXPECT_FALSE(tried.holds(defaults)) << tried.arguments[0];
  }
}

TEST_F(FlagsTest, AreAllTriedHere) {
  std::set<std::string> tried;
  for (const Case& entry : AllCases()) {
    for (const std::string& argument : entry.arguments) {
      tried.insert(argument.substr(2, argument.find('=') - 2));
    }
  }
  for (const FlagGroup& group : AllFlags()) {
    for (const Flag& flag : group.flags) {
      EXPECT_TRUE(tried.contains(std::string(flag.name))) << flag.name;
    }
  }
}

TEST_F(FlagsTest, NameThemselvesAndTheWrongValue) {
  const std::map<std::string_view, std::vector<std::string>> wrong = {
      {"<boolean>", {"maybe", ""}},
      {"<integer>", {"many", "", "1.5"}},
      {"<integer>-<integer>", {"8000", "a-b", "1-99999"}},
      {"<float>", {"x", "-1"}},
  };
  for (const FlagGroup& group : AllFlags()) {
    for (const Flag& flag : group.flags) {
      const auto values = wrong.find(flag.value);
      if (values == wrong.end()) continue;
      for (const std::string& value : values->second) {
        const std::string name = "--" + std::string(flag.name);
        const std::string why = WhyNot({name + "=" + value});
        EXPECT_TRUE(why.starts_with(name + " '" + value + "': expected ")) << name << ": " << why;
        EXPECT_EQ(why.find('\n'), std::string::npos);
      }
    }
  }
}

TEST_F(FlagsTest, HaveAHelpTextWithTheirDefaults) {
  const std::string usage = Usage("nereid");
  for (const FlagGroup& group : AllFlags()) {
    EXPECT_NE(usage.find("\n" + std::string(group.title) + ":\n"), std::string::npos);
    for (const Flag& flag : group.flags) {
      EXPECT_TRUE(flag.help.ends_with('.')) << flag.name;
      EXPECT_NE(usage.find("  --" + std::string(flag.name)), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace nereid::app
