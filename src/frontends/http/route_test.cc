// SPDX-License-Identifier: Apache-2.0
#include "http/route.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace nereid::http {
namespace {

void ExpectRoute(std::string_view path, RouteKind kind, std::string_view model = "",
                 std::string_view version = "") {
  const Route route = MatchRoute(path);
  EXPECT_EQ(route.kind, kind) << path;
  if (kind == RouteKind::kNone) return;
  EXPECT_EQ(route.model, model) << path;
  EXPECT_EQ(route.version, version) << path;
}

TEST(MatchRoute, KnowsTheWholeApi) {
  ExpectRoute("/v2", RouteKind::kServerMetadata);
  ExpectRoute("/openapi.json", RouteKind::kOpenApi);
  ExpectRoute("/v2/health/live", RouteKind::kServerLive);
  ExpectRoute("/v2/health/ready", RouteKind::kServerReady);
  ExpectRoute("/v2/models/m", RouteKind::kModelMetadata, "m");
  ExpectRoute("/v2/models/m/versions/12", RouteKind::kModelMetadata, "m", "12");
  ExpectRoute("/v2/models/m/versions/stable", RouteKind::kModelMetadata, "m", "stable");
  ExpectRoute("/v2/models/m/versions/_v1.2-rc/infer", RouteKind::kModelInfer, "m", "_v1.2-rc");
  ExpectRoute("/v2/models/m/infer", RouteKind::kModelInfer, "m");
  ExpectRoute("/v2/models/m/versions/1/infer", RouteKind::kModelInfer, "m", "1");
  ExpectRoute("/v2/models/m/ready", RouteKind::kModelReady, "m");
  ExpectRoute("/v2/models/m/config", RouteKind::kModelConfig, "m");
  ExpectRoute("/v2/models/m/generate", RouteKind::kModelGenerate, "m");
  ExpectRoute("/v2/models/m/versions/1/generate_stream", RouteKind::kModelGenerateStream, "m", "1");
  ExpectRoute("/v2/models/m/stats", RouteKind::kModelStatistics, "m");
  ExpectRoute("/v2/models/stats", RouteKind::kAllStatistics);
  ExpectRoute("/v2/models/m/trace/setting", RouteKind::kModelTrace, "m");
  ExpectRoute("/v2/trace/setting", RouteKind::kTrace);
  ExpectRoute("/v2/logging", RouteKind::kLogging);
  ExpectRoute("/v2/repository/index", RouteKind::kRepositoryIndex);
  ExpectRoute("/v2/repository/some/index", RouteKind::kRepositoryIndex);
  ExpectRoute("/v2/repository/models/m/load", RouteKind::kRepositoryLoad, "m");
  ExpectRoute("/v2/repository/some/models/m/unload", RouteKind::kRepositoryUnload, "m");
  ExpectRoute("/v2/repository/models/models/m/load", RouteKind::kRepositoryLoad, "m");
  ExpectRoute("/v2/repository/models/m/traffic", RouteKind::kModelTraffic, "m");
  ExpectRoute("/v2/repository/some/models/m/traffic", RouteKind::kModelTraffic, "m");
  ExpectRoute("/v2/systemsharedmemory/status", RouteKind::kSystemRegionStatus);
  ExpectRoute("/v2/systemsharedmemory/region/r/register", RouteKind::kSystemRegionRegister);
  ExpectRoute("/v2/systemsharedmemory/unregister", RouteKind::kSystemRegionUnregister);
  ExpectRoute("/v2/cudasharedmemory/region/r/status", RouteKind::kCudaRegionStatus);
  ExpectRoute("/v2/cudasharedmemory/register", RouteKind::kCudaRegionRegister);
  ExpectRoute("/v2/cudasharedmemory/region/r/unregister", RouteKind::kCudaRegionUnregister);
  ExpectRoute("/v1/models", RouteKind::kOpenAiModels);
  ExpectRoute("/v1/models/m", RouteKind::kOpenAiModel, "m");
  ExpectRoute("/v1/chat/completions", RouteKind::kOpenAiChat);
  ExpectRoute("/v1/completions", RouteKind::kOpenAiCompletions);
  ExpectRoute("/v1/embeddings", RouteKind::kOpenAiEmbeddings);
  EXPECT_EQ(MatchRoute("/v2/systemsharedmemory/region/a%20b/status").region, "a%20b");
  EXPECT_EQ(MatchRoute("/v2/systemsharedmemory/status").region, "");
}

TEST(MatchRoute, FindsOptionalPartsWhereverTheNamesRepeatThem) {
  ExpectRoute("/v2/repository/models/index", RouteKind::kRepositoryIndex);
  ExpectRoute("/v2/repository/models/models/load", RouteKind::kRepositoryLoad, "models");
  EXPECT_FALSE(MatchRoute("/v2/repository/models/m/load").names_repository);
  EXPECT_TRUE(MatchRoute("/v2/repository/r/models/m/load").names_repository);
  EXPECT_TRUE(MatchRoute("/v2/repository/models/index").names_repository);
  ExpectRoute("/v2/models/stats", RouteKind::kAllStatistics);
  ExpectRoute("/v2/models/stats/infer", RouteKind::kModelInfer, "stats");
  ExpectRoute("/v2/models/versions/versions/1", RouteKind::kModelMetadata, "versions", "1");
  ExpectRoute("/v2/systemsharedmemory/region/region/status", RouteKind::kSystemRegionStatus);
}

TEST(RoutePath, IsThePatternThatItsOwnPathsMatch) {
  for (size_t i = 1; i <= kRouteCount; ++i) {
    const auto kind = static_cast<RouteKind>(i);
    std::string path(RoutePath(kind));
    for (const auto& [field, text] : {std::pair("{model}", "m"),
                                      {"{version}", "1"},
                                      {"{region}", "r"},
                                      {"{repository}", "p"}}) {
      if (const size_t at = path.find(field); at != path.npos) {
        path.replace(at, std::string_view(field).size(), text);
      }
    }
    const size_t open = path.find('[');
    if (open == path.npos) {
      EXPECT_EQ(MatchRoute(path).kind, kind) << path;
      continue;
    }
    const size_t close = path.find(']');
    const std::string front = path.substr(0, open);
    const std::string back = path.substr(close + 1);
    EXPECT_EQ(MatchRoute(front + back).kind, kind) << path;
    EXPECT_EQ(MatchRoute(front + path.substr(open + 1, close - open - 1) + back).kind, kind)
        << path;
  }
}

TEST(AllowedMethods, AsksWithGetAndChangesWithPost) {
  for (const std::string_view memory : {"system", "cuda"}) {
    const auto methods = [&memory](std::string_view action) {
      const std::string path =
          "/v2/" + std::string(memory) + "sharedmemory/region/r/" + std::string(action);
      return AllowedMethods(MatchRoute(path).kind);
    };
    EXPECT_EQ(methods("status"), "GET, HEAD");
    EXPECT_EQ(methods("register"), "POST");
    EXPECT_EQ(methods("unregister"), "POST");
  }
}

TEST(MatchRoute, RefusesWhatTritonsPatternsRefuse) {
  for (const std::string_view path : {"",
                                      "/",
                                      "/v2/",
                                      "/v1",
                                      "/v2x",
                                      "//v2",
                                      "/v2/health",
                                      "/v2/health/",
                                      "/v2/health/live/",
                                      "/v2/models",
                                      "/v2/models/",
                                      "/v2/models//infer",
                                      "/v2/models/m/",
                                      "/v2/models/m/infer/",
                                      "/v2/models/m/versions",
                                      "/v2/models/m/versions/",
                                      "/v2/models/m/versions/1a",
                                      "/v2/models/m/versions/.a",
                                      "/v2/models/m/versions/a+b",
                                      "/v2/models/m/versions/-1",
                                      "/v2/models/m/versions/1/",
                                      "/v2/models/m/what",
                                      "/v2/models/m/versions/1/trace/setting",
                                      "/v2/models/m/Infer",
                                      "/v2/repository",
                                      "/v2/repository/",
                                      "/v2/repository//index",
                                      "/v2/repository/a/b/index",
                                      "/v2/repository/models/m",
                                      "/v2/repository/models/m/reload",
                                      "/v2/systemsharedmemory/region/r",
                                      "/v2/systemsharedmemory/region//status",
                                      "/v2/cudasharedmemory",
                                      "/v2/models/\xff/infer",
                                      "/v2/models/\xc0\x80",
                                      "/v2/models/\xed",
                                      "/v2/models/\xf4\x90\x80\x80"}) {
    ExpectRoute(path, RouteKind::kNone);
  }
}

TEST(MatchRoute, TakesNamesAsTheyAreSent) {
  ExpectRoute("/v2/models/a%2Fb/infer", RouteKind::kModelInfer, "a%2Fb");
  ExpectRoute("/v2/models/versions/versions/3", RouteKind::kModelMetadata, "versions", "3");
  ExpectRoute("/v2/models/\xC3\xA9", RouteKind::kModelMetadata, "\xC3\xA9");
  ExpectRoute("/v2/models/..", RouteKind::kModelMetadata, "..");
}

TEST(RouteCategory, EveryRouteHasTheCategoryOfTriton) {
  using common::Category;
  const auto category = [](std::string_view path) { return RouteCategory(MatchRoute(path).kind); };
  EXPECT_EQ(category("/v2/health/live"), Category::kHealth);
  EXPECT_EQ(category("/v2/models/m/ready"), Category::kHealth);
  EXPECT_EQ(category("/v2"), Category::kMetadata);
  EXPECT_EQ(category("/v2/models/m"), Category::kMetadata);
  EXPECT_EQ(category("/v2/models/m/config"), Category::kModelConfig);
  EXPECT_EQ(category("/v2/models/m/infer"), Category::kInference);
  EXPECT_EQ(category("/v2/models/m/generate"), Category::kInference);
  EXPECT_EQ(category("/v2/models/m/generate_stream"), Category::kInference);
  EXPECT_EQ(category("/v2/models/m/stats"), Category::kStatistics);
  EXPECT_EQ(category("/v2/models/stats"), Category::kStatistics);
  EXPECT_EQ(category("/v2/models/m/trace/setting"), Category::kTrace);
  EXPECT_EQ(category("/v2/trace/setting"), Category::kTrace);
  EXPECT_EQ(category("/v2/logging"), Category::kLogging);
  EXPECT_EQ(category("/v2/repository/index"), Category::kModelRepository);
  EXPECT_EQ(category("/v2/repository/models/m/load"), Category::kModelRepository);
  EXPECT_EQ(category("/v2/repository/models/m/unload"), Category::kModelRepository);
  EXPECT_EQ(category("/v2/repository/models/m/traffic"), Category::kModelRepository);
  EXPECT_EQ(category("/v2/systemsharedmemory/region/r/register"), Category::kSharedMemory);
  EXPECT_EQ(category("/v2/cudasharedmemory/status"), Category::kSharedMemory);
}

TEST(RouteScope, SaysWhatASenderNeeds) {
  using access::Scope;
  const auto scope = [](std::string_view path) { return RouteScope(MatchRoute(path).kind); };
  EXPECT_EQ(scope("/v2/health/ready"), Scope::kHealth);
  EXPECT_EQ(scope("/v2/models/m/ready"), Scope::kHealth);
  EXPECT_EQ(scope("/v2"), Scope::kMetadata);
  EXPECT_EQ(scope("/v2/models/m/config"), Scope::kMetadata);
  EXPECT_EQ(scope("/v2/models/stats"), Scope::kMetadata);
  EXPECT_EQ(scope("/v2/repository/index"), Scope::kMetadata);
  EXPECT_EQ(scope("/v2/models/m/generate_stream"), Scope::kInfer);
  EXPECT_EQ(scope("/v2/repository/models/m/load"), Scope::kModelControl);
  EXPECT_EQ(scope("/v2/repository/r/models/m/unload"), Scope::kModelControl);
  EXPECT_EQ(scope("/v2/repository/models/m/traffic"), Scope::kModelControl);
  EXPECT_EQ(scope("/v2/models/m/trace/setting"), Scope::kTraceLog);
  EXPECT_EQ(scope("/v2/logging"), Scope::kTraceLog);
  EXPECT_EQ(scope("/v2/cudasharedmemory/status"), Scope::kSharedMemory);
}

}  // namespace
}  // namespace nereid::http
