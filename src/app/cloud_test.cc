// SPDX-License-Identifier: Apache-2.0
// Tests the settings that the environment of a cloud's container provides.
#include "app/cloud.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "app/testing/command_line.h"

namespace nereid::app {
namespace {

class CloudTest : public CommandLineTest {};

TEST_F(CloudTest, AContainerOfVertexAiServesItsEntryPointAlone) {
  SetVariable("AIP_MODE", "PREDICTION");
  SetVariable("AIP_HTTP_PORT", "9999");
  SetVariable("AIP_PREDICT_ROUTE", "/v1/p");
  SetVariable("AIP_HEALTH_ROUTE", "/v1/h");
  SetVariable("AIP_STORAGE_URI", "s3://bucket/models");
  const Options options = *ParseWhole({});
  EXPECT_TRUE(options.cloud.vertex_ai.is_allowed);
  EXPECT_EQ(options.cloud.vertex_ai.port, 9999);
  EXPECT_EQ(options.cloud.vertex_ai_entry.predict_route, "/v1/p");
  EXPECT_EQ(options.cloud.vertex_ai_entry.health_route, "/v1/h");
  EXPECT_FALSE(options.http.is_allowed);
  EXPECT_FALSE(options.grpc.is_allowed);
  EXPECT_EQ(options.engine.repository.repositories,
            (std::vector<std::string>{"s3://bucket/models"}));
}

TEST_F(CloudTest, FlagsWinOverTheEnvironment) {
  SetVariable("AIP_MODE", "PREDICTION");
  SetVariable("AIP_HTTP_PORT", "9999");
  SetVariable("AIP_STORAGE_URI", "s3://bucket/models");
  const Options options =
      *Parse({"--vertex-ai-port=9000", "--allow-http=true", "--allow-vertex-ai=false"});
  EXPECT_EQ(options.cloud.vertex_ai.port, 9000);
  EXPECT_FALSE(options.cloud.vertex_ai.is_allowed);
  EXPECT_TRUE(options.http.is_allowed);
  EXPECT_EQ(options.engine.repository.repositories, (std::vector<std::string>{"/r"}));
}

TEST_F(CloudTest, SagemakerSaysWhatItsContainerServes) {
  SetVariable("SAGEMAKER_BIND_TO_PORT", "9998");
  SetVariable("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "mine");
  SetVariable("SAGEMAKER_TRITON_INFERENCE_TYPE", "generate_stream");
  SetVariable("SAGEMAKER_TRITON_PING_MODE", "live");
  const Options options = *Parse({"--allow-sagemaker=true"});
  EXPECT_EQ(options.cloud.sagemaker.port, 9998);
  EXPECT_EQ(options.cloud.sagemaker_entry.default_model, "mine");
  EXPECT_EQ(options.cloud.sagemaker_entry.inference, http::RouteKind::kModelGenerateStream);
  EXPECT_EQ(options.cloud.sagemaker_entry.ping, http::RouteKind::kServerLive);
}

TEST_F(CloudTest, WrongVariablesAreNamed) {
  SetVariable("AIP_HTTP_PORT", "99999");
  EXPECT_EQ(WhyNot({}),
            "the environment variable AIP_HTTP_PORT=99999: expected a whole number from 0 to "
            "65535");
  SetVariable("AIP_HTTP_PORT", "");
  SetVariable("SAGEMAKER_TRITON_INFERENCE_TYPE", "guess");
  EXPECT_EQ(WhyNot({}),
            "Server has invalid inference type 'guess'. Must be one of: infer, generate, "
            "generate_stream.");
}

TEST(LinkFolder, IsGoneWithItsLinksAndNotWithWhatTheyReach) {
  namespace fs = std::filesystem;
  const base::TemporaryFolder model = std::move(*base::MakeTemporaryFolder("test"));
  fs::create_directory(model.path + "/1");
  std::string path;
  {
    const std::unique_ptr<LinkFolder> links = LinkFolder::Create();
    ASSERT_NE(links, nullptr);
    path = links->path();
    fs::create_directory_symlink(model.path, path + "/m");
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(model.path + "/1"));
  fs::remove_all(model.path);
}

}  // namespace
}  // namespace nereid::app
