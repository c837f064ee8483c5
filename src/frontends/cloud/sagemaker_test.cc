// SPDX-License-Identifier: Apache-2.0
#include "cloud/sagemaker.h"

#include <filesystem>
#include <fstream>

#include "cloud/sagemaker_status.h"
#include "cloud/testing/entry_point.h"

namespace nereid::cloud {
namespace {

namespace fs = std::filesystem;
using http::Reply;

constexpr char kMime[] = "application/vnd.sagemaker-triton.binary+json;json-header-size=";

class SagemakerTest : public EntryPointTest {
 protected:
  explicit SagemakerTest(SagemakerOptions options = {.default_model = "m"},
                         common::Restrictions restrictions = {})
      : EntryPointTest(std::move(restrictions)) {
    Serve(std::make_unique<SagemakerHandler>(std::move(options), api_, service_));
  }
  Reply Invoke(std::string_view body, std::string_view headers = "") {
    return Ask("POST", "/invocations", body, headers);
  }
};

TEST_F(SagemakerTest, RespondsToPingsWithReadiness) {
  EXPECT_EQ(StatusOf("GET", "/ping"), 200);
  service_.is_ready = false;
  EXPECT_EQ(StatusOf("GET", "/ping"), 400);
  const Reply post = Ask("POST", "/ping");
  EXPECT_EQ(post.status, 405);
  EXPECT_TRUE(post.Has("Allow: GET, HEAD\r\n"));
}

TEST_F(SagemakerTest, InvokesTheDefaultModel) {
  const Reply reply = Invoke(kJsonInputs);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kJsonOutputs);
  const Reply get = Ask("GET", "/invocations");
  EXPECT_EQ(get.status, 405);
  EXPECT_TRUE(get.Has("Allow: POST\r\n"));
}

TEST_F(SagemakerTest, NamesTheLengthOfTheJsonInContentTypesOnly) {
  const Reply reply =
      Invoke(std::string(kBinaryInputs) + "abcd",
             "Content-Type: " + (kMime + std::to_string(kBinaryInputs.size())) + "\r\n");
  EXPECT_EQ(reply.body, std::string(kBinaryOutputs) + "abcd");
  EXPECT_TRUE(
      reply.Has("Content-Type: " + (kMime + std::to_string(kBinaryOutputs.size())) + "\r\n"));
  EXPECT_FALSE(reply.Has("Inference-Header-Content-Length"));
  // The header of the v2 API has no meaning here: the whole body is JSON.
  EXPECT_EQ(
      Invoke(std::string(kBinaryInputs) + "abcd",
             "Inference-Header-Content-Length: " + std::to_string(kBinaryInputs.size()) + "\r\n")
          .status,
      500);
}

TEST_F(SagemakerTest, SaysWhatIsWrongWithTheLengthOfTheJson) {
  for (const auto& [length, text] : kMalformedLengths) {
    const Reply reply = Invoke("{}abcd", "Content-Type: " + (kMime + std::string(length)) + "\r\n");
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.body, "{\"error\":\"" + std::string(text) + "\"}");
  }
}

TEST_F(SagemakerTest, KeepsTheStatusesOfTheApiForInvocations) {
  service_.on_infer = [](core::RequestPtr request) {
    core::CompleteWithPrefixedError(std::move(request),
                                    base::UnavailableError("CUDA out of memory"));
  };
  EXPECT_EQ(Invoke(kJsonInputs).status, 503);
}

TEST_F(SagemakerTest, ServesNoOtherPaths) {
  for (const char* path :
       {"/", "/v2", "/pings", "/invocations/", "/modelss", "/v2/models/m/infer"}) {
    EXPECT_EQ(StatusOf("POST", path, kJsonInputs), 400) << path;
  }
}

class UnnamedSagemakerTest : public SagemakerTest {
 protected:
  UnnamedSagemakerTest() : SagemakerTest(SagemakerOptions{.ping = http::RouteKind::kServerLive}) {}
};

TEST_F(UnnamedSagemakerTest, NamesTheMissingVariableWhenNoModelIsTheDefault) {
  const Reply reply = Invoke(kJsonInputs);
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.body, R"({"error":"Request for unknown model: )"
                        R"('unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME' is not found"})");
}

TEST_F(UnnamedSagemakerTest, RespondsToPingsWithLivenessIfConfigured) {
  service_.is_ready = false;
  EXPECT_EQ(StatusOf("GET", "/ping"), 200);
}

TEST(SagemakerInference, HasThreeNames) {
  EXPECT_EQ(*ParseSagemakerInference("infer"), http::RouteKind::kModelInfer);
  EXPECT_EQ(*ParseSagemakerInference("generate"), http::RouteKind::kModelGenerate);
  EXPECT_EQ(*ParseSagemakerInference("generate_stream"), http::RouteKind::kModelGenerateStream);
  EXPECT_EQ(ParseSagemakerInference("guess").status().message(),
            "Server has invalid inference type 'guess'. Must be one of: infer, generate, "
            "generate_stream.");
}

TEST(SagemakerErrorStatus, TellsThePlatformThatMemoryIsExhausted) {
  EXPECT_EQ(SagemakerErrorStatus(base::InternalError("onnx: CUDA out of memory. Tried")), 507);
  EXPECT_EQ(SagemakerErrorStatus(base::InvalidArgumentError("MemoryError: no room")), 507);
  EXPECT_EQ(SagemakerErrorStatus(base::InternalError("No space left on device")), 507);
  EXPECT_EQ(SagemakerErrorStatus(base::UnavailableError("Exceeds maximum queue size")), 400);
  EXPECT_EQ(SagemakerErrorStatus(base::NotFoundError("x")), 400);
}

// Where the platform unpacks archives, and where the server finds their models. The archive "abc"
// holds one model, which its author called "theirs".
struct Platform {
  Platform() {
    const fs::path model(url);
    fs::create_directories(model / "1");
    fs::create_directories(options.links);
    std::ofstream(model / "config.pbtxt") << "name: \"theirs\"\nbackend: \"identity\"\n";
  }
  ~Platform() { fs::remove_all(folder.path); }

  const base::TemporaryFolder folder = std::move(*base::MakeTemporaryFolder("test"));
  const SagemakerModelOptions options{.archives = folder.path + "/archives",
                                      .links = folder.path + "/links"};
  const std::string url = options.archives + "/abc/model";
};

class SagemakerPlatformTest : protected Platform, public SagemakerTest {
 protected:
  explicit SagemakerPlatformTest(common::Restrictions restrictions = {})
      : SagemakerTest({.models = options}, std::move(restrictions)) {}

  // Loads the archive "abc".
  Reply Load(const std::string& name, std::string_view headers = "") {
    return Ask("POST", "/models", R"({"model_name":")" + name + R"(","url":")" + url + "\"}",
               headers);
  }
};

// The service has a single model, "m", which is the target of every model of the platform.
constexpr std::string_view kTarget = "X-Amzn-SageMaker-Target-Model: m\r\n";

TEST_F(SagemakerPlatformTest, LoadsInvokesAndUnloadsWhatThePlatformNames) {
  EXPECT_EQ(Ask("GET", "/models").body, R"({"models":[]})");
  EXPECT_EQ(Load("hash1", kTarget).status, 200);
  const std::string described =
      R"({"modelName":"hash1","modelUrl":")" + options.archives + "/abc\"}";
  EXPECT_EQ(Ask("GET", "/models").body, R"({"models":[)" + described + "]}");
  EXPECT_EQ(Ask("GET", "/models/hash1").body, described);
  EXPECT_EQ(Ask("POST", "/models/hash1/invoke", kJsonInputs).body, kJsonOutputs);
  EXPECT_EQ(StatusOf("DELETE", "/models/hash1"), 200);
  EXPECT_EQ(StatusOf("DELETE", "/models/hash1"), 404);
  EXPECT_EQ(StatusOf("GET", "/models/hash1"), 404);
  EXPECT_EQ(StatusOf("POST", "/models/hash1/invoke", kJsonInputs), 404);
}

TEST_F(SagemakerPlatformTest, RefusesASecondModelOfEitherName) {
  EXPECT_EQ(Load("hash1", kTarget).status, 200);
  const Reply again = Load("hash1", kTarget);
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(again.body, R"({"error":"model 'hash1' is already loaded"})");
  const Reply other = Load("hash2", kTarget);
  EXPECT_EQ(other.status, 409);
  EXPECT_EQ(other.body, R"({"error":"model 'm' is already loaded"})");
}

TEST_F(SagemakerPlatformTest, LeavesModelsOutOfTheListThatCannotServe) {
  EXPECT_EQ(Load("hash1", kTarget).status, 200);
  service_.is_ready = false;
  EXPECT_EQ(Ask("GET", "/models").body, R"({"models":[]})");
}

TEST_F(SagemakerPlatformTest, RespondsToFailedLoadsAndInvocationsWithStatusesOfThePlatform) {
  const Reply failed = Load("hash1");  // the service has no model of that name
  EXPECT_EQ(failed.status, 400);
  EXPECT_EQ(failed.body, R"({"error":"failed to load 'hash1'"})");
  EXPECT_EQ(StatusOf("POST", "/models", "{"), 400);
  EXPECT_EQ(StatusOf("POST", "/models", R"({"model_name":7,"url":"x"})"), 400);

  ASSERT_EQ(Load("hash1", kTarget).status, 200);
  service_.on_infer = [](core::RequestPtr request) {
    core::CompleteWithPrefixedError(std::move(request),
                                    base::UnavailableError("CUDA out of memory"));
  };
  EXPECT_EQ(StatusOf("POST", "/models/hash1/invoke", kJsonInputs), 507);
  service_.on_infer = [](core::RequestPtr request) {
    core::CompleteWithPrefixedError(std::move(request),
                                    base::UnavailableError("Exceeds maximum queue size"));
  };
  EXPECT_EQ(StatusOf("POST", "/models/hash1/invoke", kJsonInputs), 400);
}

TEST_F(SagemakerPlatformTest, RefusesOtherActions) {
  ASSERT_EQ(Load("hash1", kTarget).status, 200);
  EXPECT_EQ(StatusOf("POST", "/models/hash1", kJsonInputs), 400);
  EXPECT_EQ(StatusOf("GET", "/models/hash1/invoke"), 400);
  EXPECT_EQ(StatusOf("POST", "/models/hash1/invoke/now", kJsonInputs), 400);
  EXPECT_EQ(StatusOf("POST", "/models//invoke", kJsonInputs), 400);
  EXPECT_EQ(StatusOf("DELETE", "/models"), 400);
  EXPECT_EQ(StatusOf("PUT", "/models"), 400);
}

class RestrictedSagemakerTest : public SagemakerPlatformTest {
 protected:
  RestrictedSagemakerTest() : SagemakerPlatformTest(Rules()) {}

 private:
  static common::Restrictions Rules() {
    common::Restrictions rules;
    EXPECT_TRUE(
        rules.Add("inference,model-repository:key=secret", "http-restricted-api", "api", "").ok());
    return rules;
  }
};

TEST_F(RestrictedSagemakerTest, AsksForTheHeaderOfRestrictedRoutes) {
  EXPECT_EQ(Load("hash1", kTarget).status, 403);
  EXPECT_TRUE(service_.operations.empty());
  EXPECT_EQ(Load("hash1", std::string(kTarget) + "key: secret\r\n").status, 200);
  EXPECT_EQ(StatusOf("GET", "/models"), 403);
  EXPECT_EQ(StatusOf("GET", "/models/hash1"), 403);
  EXPECT_EQ(StatusOf("DELETE", "/models/hash1"), 403);
  EXPECT_EQ(StatusOf("POST", "/models/hash1/invoke", kJsonInputs), 403);
  // The error does not reveal whether there is such a model.
  EXPECT_EQ(StatusOf("POST", "/models/none/invoke", kJsonInputs), 403);
  EXPECT_EQ(StatusOf("POST", "/models/hash1/invoke", kJsonInputs, "key: secret\r\n"), 200);
  EXPECT_EQ(Invoke(kJsonInputs).status, 403);
  EXPECT_EQ(StatusOf("GET", "/ping"), 200);
}

}  // namespace
}  // namespace nereid::cloud
