// SPDX-License-Identifier: Apache-2.0
#include "cloud/vertex_ai.h"

#include "cloud/testing/entry_point.h"

namespace nereid::cloud {
namespace {

using http::Reply;

constexpr char kMime[] = "application/vnd.vertex-ai-triton.binary+json;json-header-size=";

VertexAiOptions Routes(std::string default_model = "m") {
  return {.predict_route = "/v1/predict",
          .health_route = "/v1/health",
          .default_model = std::move(default_model)};
}

class VertexAiTest : public EntryPointTest {
 protected:
  explicit VertexAiTest(common::Restrictions restrictions = {})
      : EntryPointTest(std::move(restrictions)) {
    Serve(std::move(*VertexAiHandler::Create(Routes(), api_, service_)));
  }
  Reply Predict(std::string_view body, std::string_view headers = "") {
    return Ask("POST", "/v1/predict", body, headers);
  }
  Reply Redirect(const std::string& target, std::string_view body = "") {
    return Predict(body, "X-Vertex-Ai-Triton-Redirect: " + target + "\r\n");
  }
};

TEST_F(VertexAiTest, ReportsReadinessOnTheHealthRoute) {
  EXPECT_EQ(StatusOf("GET", "/v1/health"), 200);
  service_.is_ready = false;
  EXPECT_EQ(StatusOf("GET", "/v1/health"), 400);
}

TEST_F(VertexAiTest, PredictsWithTheDefaultModel) {
  const Reply reply = Predict(kJsonInputs);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kJsonOutputs);
}

TEST_F(VertexAiTest, ReadsTheLengthOfTheJsonFromTheContentType) {
  const Reply reply =
      Predict(std::string(kBinaryInputs) + "abcd",
              "Content-Type: " + (kMime + std::to_string(kBinaryInputs.size())) + "\r\n");
  EXPECT_EQ(reply.body, std::string(kBinaryOutputs) + "abcd");
  // Only requests specify the length in their content type, as in Triton.
  EXPECT_TRUE(reply.Has("Content-Type: application/octet-stream\r\n"));
  EXPECT_TRUE(reply.Has(
      "Inference-Header-Content-Length: " + std::to_string(kBinaryOutputs.size()) + "\r\n"));
}

TEST_F(VertexAiTest, SaysWhatIsWrongWithTheLengthOfTheJson) {
  for (const auto& [length, text] : kMalformedLengths) {
    const Reply reply =
        Predict("{}abcd", "Content-Type: " + (kMime + std::string(length)) + "\r\n");
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.body, "{\"error\":\"" + std::string(text) + "\"}");
  }
  const Reply reply = Predict("{}", "Content-Type: x/" + std::string(kMime) + "2\r\n");
  EXPECT_EQ(reply.body, "{\"error\":\"expect MIME type for binary data starts with '" +
                            std::string(kMime) + "', got: x/" + kMime + "2\"}");
}

TEST_F(VertexAiTest, NeverCompressesReplies) {
  const Reply reply = Predict(kJsonInputs, "Accept-Encoding: gzip\r\n");
  EXPECT_FALSE(reply.Has("Content-Encoding"));
  EXPECT_EQ(reply.body, kJsonOutputs);
}

TEST_F(VertexAiTest, ServesNoOtherPathsAndMethods) {
  EXPECT_EQ(StatusOf("GET", "/v2"), 400);
  EXPECT_EQ(StatusOf("POST", "/v2/models/m/infer", kJsonInputs), 400);
  EXPECT_EQ(StatusOf("POST", "/v1/predict/", kJsonInputs), 400);
  const Reply predict = Ask("GET", "/v1/predict");
  EXPECT_EQ(predict.status, 405);
  EXPECT_TRUE(predict.Has("Allow: POST\r\n"));
  const Reply health = Ask("POST", "/v1/health");
  EXPECT_EQ(health.status, 405);
  EXPECT_TRUE(health.Has("Allow: GET, HEAD\r\n"));
}

TEST_F(VertexAiTest, RedirectsToRoutesThatInferOrOnlyLook) {
  EXPECT_TRUE(Redirect("v2").body.starts_with(R"({"name":"triton")"));
  EXPECT_EQ(Redirect("v2/models/m/infer", kJsonInputs).body, kJsonOutputs);
  EXPECT_EQ(Redirect("metrics").body, "# HELP x\nx 1\n");
  for (const char* target :
       {"v2/health/live", "v2/health/ready", "v2/models/m", "v2/models/m/ready",
        "v2/models/m/config", "v2/models/m/stats", "v2/repository/index",
        "v2/systemsharedmemory/status", "v2/cudasharedmemory/status"}) {
    EXPECT_EQ(Redirect(target).status, 200) << target;
  }
  EXPECT_EQ(Redirect("v2/models/none/infer", kJsonInputs).status, 404);
}

TEST_F(VertexAiTest, ForbidsRedirectionsThatChangeTheServer) {
  for (const char* target :
       {"v2/repository/models/m/load", "v2/repository/models/m/unload",
        "v2/systemsharedmemory/region/r/register", "v2/systemsharedmemory/region/r/unregister",
        "v2/cudasharedmemory/region/r/register", "v2/cudasharedmemory/unregister"}) {
    const Reply reply = Redirect(target, "{}");
    EXPECT_EQ(reply.status, 403) << target;
    EXPECT_EQ(reply.body, R"({"error":"Forbidden"})");
  }
  EXPECT_TRUE(service_.operations.empty());
}

TEST_F(VertexAiTest, RefusesOtherRedirections) {
  for (const char* target : {"v2/logging", "v2/trace/setting", "v2/models/m/generate", "v2/nothing",
                             "/v2", "../v2", "", "v1/predict"}) {
    EXPECT_EQ(Redirect(target).status, 400) << target;
  }
}

class RestrictedVertexAiTest : public VertexAiTest {
 protected:
  RestrictedVertexAiTest() : VertexAiTest(Rules()) {}

 private:
  static common::Restrictions Rules() {
    common::Restrictions rules;
    EXPECT_TRUE(rules.Add("inference:key=secret", "http-restricted-api", "api", "").ok());
    return rules;
  }
};

TEST_F(RestrictedVertexAiTest, AsksForTheHeaderOfRestrictedRoutes) {
  EXPECT_EQ(Predict(kJsonInputs).status, 403);
  EXPECT_EQ(Redirect("v2/models/m/infer", kJsonInputs).status, 403);
  EXPECT_EQ(Predict(kJsonInputs, "key: secret\r\n").status, 200);
  EXPECT_EQ(Redirect("v2/models/m").status, 200);
}

class VertexAiStartTest : public EntryPointTest {
 protected:
  std::string ErrorOf(VertexAiOptions options) {
    return std::string(
        VertexAiHandler::Create(std::move(options), api_, service_).status().message());
  }
};

TEST_F(VertexAiStartTest, NeedsBothRoutes) {
  EXPECT_EQ(ErrorOf({.health_route = "/h"}),
            "API_PREDICT_ROUTE is not defined for Vertex AI endpoint");
  EXPECT_EQ(ErrorOf({.predict_route = "/p"}),
            "AIP_HEALTH_ROUTE is not defined for Vertex AI endpoint");
}

TEST_F(VertexAiStartTest, NeedsADefaultModelThatIsLoaded) {
  EXPECT_EQ(ErrorOf(Routes("other")), "Expect the default model 'other' is loaded");
}

TEST_F(VertexAiStartTest, TakesTheOnlyModelAsTheDefault) {
  Serve(std::move(*VertexAiHandler::Create(Routes(""), api_, service_)));
  EXPECT_EQ(Ask("POST", "/v1/predict", kJsonInputs).body, kJsonOutputs);
}

}  // namespace
}  // namespace nereid::cloud
