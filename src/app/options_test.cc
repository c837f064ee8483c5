// SPDX-License-Identifier: Apache-2.0
// Tests the command line as a whole: which lines are refused, their error texts, and how flags
// combine.
#include "app/options.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "app/testing/command_line.h"

namespace nereid::app {
namespace {

class OptionsTest : public CommandLineTest {};

TEST_F(OptionsTest, TakeValuesInBothFormsAndUnambiguousPrefixes) {
  EXPECT_EQ(Parse({"--http-port", "9000"})->http.port, 9000);
  EXPECT_EQ(Parse({"--http-port=9000"})->http.port, 9000);
  EXPECT_EQ(Parse({"--http-po=9000"})->http.port, 9000);
  EXPECT_EQ(Parse({"--http-port=1", "--http-port=2"})->http.port, 2);
}

TEST_F(OptionsTest, SayWhichFlagIsUnknownAndWhichWasMeant) {
  EXPECT_EQ(WhyNot({"--http-prot=9000"}),
            "unknown flag '--http-prot'; did you mean '--http-port'?");
  EXPECT_EQ(WhyNot({"--zzz=secret"}), "unknown flag '--zzz'; --help lists all flags");
  EXPECT_EQ(WhyNot({"--log-w"}), "flag '--log-w' needs a value");
  EXPECT_EQ(WhyNot({"--grpc-keepalive-t=1"}),
            "ambiguous flag '--grpc-keepalive-t'; it may mean one of: --grpc-keepalive-time "
            "--grpc-keepalive-timeout");
  EXPECT_EQ(WhyNot({"--help=yes"}), "flag '--help' takes no value");
  EXPECT_EQ(WhyNot({"-x"}), "unknown flag '-x'; --help lists all flags");
}

TEST_F(OptionsTest, RefuseArgumentsThatBelongToNoFlag) {
  EXPECT_EQ(WhyNot({"serve"}), "unexpected argument 'serve'; --help lists all flags");
  const std::string folder = std::filesystem::temp_directory_path();
  EXPECT_EQ(WhyNot({folder}),
            "unexpected argument '" + folder +
                "'; each model repository is given as --model-repository=" + folder);
}

TEST_F(OptionsTest, NeverShowSecrets) {
  for (const char* flag : {"--http-restricted-api", "--grpc-restricted-protocol"}) {
    const std::string why = WhyNot({std::string(flag) + "=nothing:key=secret"});
    EXPECT_NE(why.find("nothing"), std::string::npos) << why;
    EXPECT_EQ(why.find("secret"), std::string::npos) << why;
  }
}

TEST_F(OptionsTest, NeedARepository) {
  EXPECT_EQ(ParseWhole({}).status().message(),
            "--model-repository must be given at least once; --help lists all flags");
  EXPECT_TRUE(ParseWhole({"--help"}).ok());
  EXPECT_TRUE(ParseWhole({"--version"}).ok());
  EXPECT_EQ(ParseWhole({"--model-repository="}).status().message(),
            "--model-repository '': expected the path of a model repository");
}

TEST_F(OptionsTest, CheckPortsOfServicesThatAreOn) {
  EXPECT_EQ(WhyNot({"--http-port=70000"}),
            "--http-port '70000': expected a port from 0 to 65535, where 0 takes any free one");
  EXPECT_EQ(WhyNot({"--grpc-port=-1"}),
            "--grpc-port '-1': expected a port from 0 to 65535, where 0 takes any free one");
  EXPECT_EQ(
      WhyNot({"--admin-grpc-port=70000"}),
      "--admin-grpc-port '70000': expected a port from 0 to 65535, where 0 takes any free one");
  EXPECT_EQ(
      WhyNot({"--admin-grpc-port=8003"}),
      "the server cannot listen to admin requests and admin GRPC requests at the same address "
      "and port 127.0.0.1:8003");
  EXPECT_EQ(WhyNot({"--http-port=70000", "--allow-http=false", "--metrics-address=0.0.0.0"}), "");
  EXPECT_EQ(WhyNot({"--http-port=8001"}),
            "the server cannot listen to HTTP requests and GRPC requests at the same address and "
            "port 0.0.0.0:8001");
  EXPECT_EQ(WhyNot({"--http-port=8001", "--http-address=127.0.0.1"}), "");
  EXPECT_EQ(WhyNot({"--http-port=0", "--grpc-port=0"}), "");
  EXPECT_EQ(WhyNot({"--http-address=unix:/tmp/s", "--grpc-address=unix:/tmp/s"}),
            "the server cannot listen to HTTP requests and GRPC requests at the same path "
            "unix:/tmp/s");
}

TEST_F(OptionsTest, KeepOtherServicesToTheSafePortsOfSagemaker) {
  EXPECT_EQ(WhyNot({"--allow-sagemaker=true", "--sagemaker-safe-port-range=9000-9001",
                    "--grpc-port=9000"}),
            "The server cannot listen to HTTP requests at port 8000, allowed port range is [9000, "
            "9001]");
  EXPECT_EQ(WhyNot({"--sagemaker-safe-port-range=9000-9001"}), "");
  EXPECT_EQ(WhyNot({"--allow-sagemaker=true", "--sagemaker-safe-port-range=8000-8002"}), "");
}

TEST_F(OptionsTest, ServeMetricsWhereHttpIs) {
  EXPECT_EQ(MetricsAddress(*Parse({})), "0.0.0.0");
  EXPECT_EQ(MetricsAddress(*Parse({"--http-address=127.0.0.1"})), "127.0.0.1");
  EXPECT_EQ(MetricsAddress(*Parse({"--http-address=127.0.0.1", "--metrics-address=::1"})), "::1");
  // A Unix socket is not meant for the network, so the metrics server uses the loopback address.
  EXPECT_EQ(MetricsAddress(*Parse({"--http-address=unix:/tmp/s"})), "127.0.0.1");
  // The address of a disabled service need not be valid.
  EXPECT_EQ(MetricsAddress(*Parse({"--http-address=nowhere", "--allow-http=false"})), "0.0.0.0");
}

TEST_F(OptionsTest, WantCertificatesForTls) {
  EXPECT_EQ(WhyNot({"--http-use-ssl=true"}),
            "--http-use-ssl needs --http-server-cert and --http-server-key");
  EXPECT_EQ(WhyNot({"--grpc-use-ssl-mutual=true", "--grpc-server-cert=c", "--grpc-server-key=k"}),
            "--grpc-use-ssl-mutual needs --grpc-root-cert");
  EXPECT_EQ(WhyNot({"--http-server-cert=c"}), "");
}

TEST_F(OptionsTest, LoadModelsByNameInExplicitModeOnly) {
  EXPECT_EQ(
      WhyNot({"--load-model=a"}),
      "Error: Use of '--load-model' requires setting '--model-control-mode=explicit' as well.");
  EXPECT_EQ(WhyNot({"--load-model="}), "--load-model '': expected the name of a model");
}

TEST_F(OptionsTest, LetTheModeWinOverOlderFlags) {
  EXPECT_EQ(WhyNot({"--allow-poll-model-repository=true", "--allow-model-control=true"}),
            "cannot enable both polling and explicit model control");
  const Options options = *Parse({"--model-control-mode=none", "--allow-model-control=true"});
  EXPECT_EQ(options.engine.control.mode, engine::ControlMode::kNone);
  ASSERT_EQ(options.warnings.size(), 1u);
  EXPECT_EQ(options.warnings[0],
            "'--allow-model-control' has been deprecated, use '--model-control-mode=explicit' "
            "instead");
}

TEST_F(OptionsTest, TellOfFlagsThatContradictEachOther) {
  EXPECT_EQ(WhyNot({"--cache-config=local,size=1", "--response-cache-byte-size=1"}),
            "Error: Incompatible flags --response-cache-byte-size and --cache-config both "
            "provided. Please provide one or the other.");
  const Options options = *Parse({"--disable-auto-complete-config", "--strict-model-config=false"});
  EXPECT_TRUE(options.engine.repository.disable_auto_complete);
  ASSERT_EQ(options.warnings.size(), 2u);
  EXPECT_EQ(options.warnings[1],
            "Warning: Overriding deprecated '--strict-model-config' from False to True in favor of "
            "'--disable-auto-complete-config'!");
}

// Values other than plain numbers, words or texts, and the start-up error for each.
TEST_F(OptionsTest, SayHowCompoundValuesAreWritten) {
  const std::pair<std::string, std::string> wrong[] = {
      {"--backend-config=a,b",
       "--backend-config option format is '<backend name>,<setting>=<value>'"
       " or '<setting>=<value>'. Got a,b"},
      {"--backend-config=,a=b",
       "--backend-config option format is '<backend name>,<setting>="
       "<value>' or '<setting>=<value>'. Got ,a=b"},
      {"--host-policy=a=b",
       "--host-policy option format is '<policy name>,<setting>=<value>'. Got a=b"},
      {"--cache-config=local",
       "--cache-config 'local': No cache specified. --cache-config option "
       "format is <cache name>,<setting>=<value>. Got local"},
      {"--cache-config=local,size=",
       "--cache-config option format is '<cache name>,<setting>=<value>'. Got local,size="},
      {"--metrics-config=a,b=c", "--metrics-config option format is <setting>=<value>. Got a,b=c"},
      {"--rate-limit-resource=R",
       "--rate-limit-resource option format is '<resource_name>:<count>:"
       "<device>' or '<resource_name>:<count>'. Got R"},
      {"--rate-limit-resource=R:1:x",
       "--rate-limit-resource option format is '<resource_name>:"
       "<count>:<device>' or '<resource_name>:<count>'. Got R:1:x"},
      {"--rate-limit=on", "--rate-limit 'on': expected off or execution_count"},
      {"--model-control-mode=pull",
       "--model-control-mode 'pull': expected none, poll, explicit or "
       "ondemand; did you mean 'poll'?"},
      {"--grpc-infer-response-compression-level=max",
       "--grpc-infer-response-compression-level 'max': expected none, low, medium or high"},
      {"--grpc-max-response-pool-size=0",
       "Error: --grpc-max-response-pool-size must be greater than 0."},
      {"--http-max-input-size=0", "Error: --http-max-input-size must be greater than 0."},
      {"--model-load-gpu-limit=-1:0.5",
       "--model-load-gpu-limit '-1:0.5': setting model load GPU limit: expects device ID >= 0, got "
       "-1"},
      {"--model-load-gpu-limit=0:1.5",
       "--model-load-gpu-limit '0:1.5': setting model load GPU limit: expects limit fraction to be "
       "in range [0.0, 1.0], got 1.500000"},
      {"--model-load-gpu-limit=0:x",
       "--model-load-gpu-limit '0:x': expected <device>:<fraction>, got 0:x"},
      {"--unix-socket-mode=888", "--unix-socket-mode '888': expected permissions such as 660"},
      {"--unix-socket-mode=1777", "--unix-socket-mode '1777': expected permissions such as 660"},
      {"--log-format=xml", "--log-format 'xml': expected default, ISO8601 or json"},
      {"--http-cors-allow-origin=a.b",
       "--http-cors-allow-origin 'a.b': expected an origin such as https://app.example.com, or *"},
      {"--http-cors-allow-methods=GET\r\nX: y",
       "--http-cors-allow-methods 'GET\r\nX: y': expected printable ASCII characters"},
      {"--model-config-name=", "--model-config-name '': expected the name of a configuration"},
  };
  for (const auto& [argument, line] : wrong) EXPECT_EQ(WhyNot({argument}), line);
}

TEST_F(OptionsTest, RefusePatternsThatAreNoRegularExpressions) {
  const std::string why = WhyNot({"--http-header-forward-pattern=("});
  EXPECT_TRUE(why.starts_with("--http-header-forward-pattern '(': ")) << why;
  EXPECT_EQ(
      Parse({"--http-header-forward-pattern=x", "--http-header-forward-pattern="})->http.forwarder,
      nullptr);
}

TEST_F(OptionsTest, FindCachesAndAgentsBesideTheBackends) {
  const base::TemporaryFolder folder = std::move(*base::MakeTemporaryFolder("test"));
  std::filesystem::create_directories(folder.path + "/backends");
  std::filesystem::create_directories(folder.path + "/caches");
  const Options options = *Parse({"--backend-directory=" + folder.path + "/backends"});
  EXPECT_EQ(options.engine.cache.directory, folder.path + "/caches");
  EXPECT_EQ(options.engine.agent_directory, "/opt/tritonserver/repoagents");
  std::filesystem::remove_all(folder.path);
}

}  // namespace
}  // namespace nereid::app
