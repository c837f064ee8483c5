// SPDX-License-Identifier: Apache-2.0
#include "http/route.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "http/api_handler.h"
#include "http/openai_routes.h"
#include "http/path_pattern.h"

namespace nereid::http {

// The one place that defines routes, with all their properties.
struct RouteTable {
  // One route.
  struct Row {
    RouteKind kind;
    PathPattern path;
    common::Category category;
    access::Scope scope;
    std::string_view methods;
    ApiHandler::RouteHandler handler;
  };

  static constexpr std::string_view kGet = "GET, HEAD";
  static constexpr std::string_view kPost = "POST";
  static constexpr std::string_view kGetOrPost = "GET, HEAD, POST";

  using Kind = RouteKind;
  using Category = common::Category;
  using Scope = access::Scope;
  using Api = ApiHandler;

  // The rows are in the order of RouteKind. The first one that matches applies, so inferences come
  // first.
  static constexpr std::array kRows{
      Row{Kind::kModelInfer, "/v2/models/{model}[/versions/{version}]/infer", Category::kInference,
          Scope::kInfer, kPost, &Api::HandleInfer},
      Row{Kind::kModelGenerate, "/v2/models/{model}[/versions/{version}]/generate",
          Category::kInference, Scope::kInfer, kPost, &Api::HandleGenerate},
      Row{Kind::kModelGenerateStream, "/v2/models/{model}[/versions/{version}]/generate_stream",
          Category::kInference, Scope::kInfer, kPost, &Api::HandleGenerate},
      Row{Kind::kServerMetadata, "/v2", Category::kMetadata, Scope::kMetadata, kGet,
          &Api::HandleServerMetadata},
      Row{Kind::kServerLive, "/v2/health/live", Category::kHealth, Scope::kHealth, kGet,
          &Api::HandleLiveness},
      Row{Kind::kServerReady, "/v2/health/ready", Category::kHealth, Scope::kHealth, kGet,
          &Api::HandleReadiness},
      Row{Kind::kOpenApi, "/openapi.json", Category::kMetadata, Scope::kMetadata, kGet,
          &Api::HandleOpenApi},
      Row{Kind::kAllStatistics, "/v2/models/stats", Category::kStatistics, Scope::kMetadata, kGet,
          &Api::HandleStatistics},
      Row{Kind::kModelStatistics, "/v2/models/{model}[/versions/{version}]/stats",
          Category::kStatistics, Scope::kMetadata, kGet, &Api::HandleStatistics},
      Row{Kind::kModelMetadata, "/v2/models/{model}[/versions/{version}]", Category::kMetadata,
          Scope::kMetadata, kGet, &Api::HandleModelMetadata},
      Row{Kind::kModelReady, "/v2/models/{model}[/versions/{version}]/ready", Category::kHealth,
          Scope::kHealth, kGet, &Api::HandleReadiness},
      Row{Kind::kModelConfig, "/v2/models/{model}[/versions/{version}]/config",
          Category::kModelConfig, Scope::kMetadata, kGet, &Api::HandleModelConfig},
      // Trace settings belong to a model, not to one of its versions.
      Row{Kind::kModelTrace, "/v2/models/{model}/trace/setting", Category::kTrace, Scope::kTraceLog,
          kGetOrPost, &Api::HandleTrace},
      Row{Kind::kTrace, "/v2/trace/setting", Category::kTrace, Scope::kTraceLog, kGetOrPost,
          &Api::HandleTrace},
      Row{Kind::kLogging, "/v2/logging", Category::kLogging, Scope::kTraceLog, kGetOrPost,
          &Api::HandleLogging},
      Row{Kind::kRepositoryIndex, "/v2/repository[/{repository}]/index", Category::kModelRepository,
          Scope::kMetadata, kPost, &Api::HandleRepositoryRequest},
      Row{Kind::kRepositoryLoad, "/v2/repository[/{repository}]/models/{model}/load",
          Category::kModelRepository, Scope::kModelControl, kPost, &Api::HandleRepositoryRequest},
      Row{Kind::kRepositoryUnload, "/v2/repository[/{repository}]/models/{model}/unload",
          Category::kModelRepository, Scope::kModelControl, kPost, &Api::HandleRepositoryRequest},
      Row{Kind::kModelTraffic, "/v2/repository[/{repository}]/models/{model}/traffic",
          Category::kModelRepository, Scope::kModelControl, kGetOrPost,
          &Api::HandleRepositoryRequest},
      Row{Kind::kSystemRegionStatus, "/v2/systemsharedmemory[/region/{region}]/status",
          Category::kSharedMemory, Scope::kSharedMemory, kGet, &Api::HandleRegions},
      Row{Kind::kSystemRegionRegister, "/v2/systemsharedmemory[/region/{region}]/register",
          Category::kSharedMemory, Scope::kSharedMemory, kPost, &Api::HandleRegions},
      Row{Kind::kSystemRegionUnregister, "/v2/systemsharedmemory[/region/{region}]/unregister",
          Category::kSharedMemory, Scope::kSharedMemory, kPost, &Api::HandleRegions},
      Row{Kind::kCudaRegionStatus, "/v2/cudasharedmemory[/region/{region}]/status",
          Category::kSharedMemory, Scope::kSharedMemory, kGet, &Api::HandleRegions},
      Row{Kind::kCudaRegionRegister, "/v2/cudasharedmemory[/region/{region}]/register",
          Category::kSharedMemory, Scope::kSharedMemory, kPost, &Api::HandleRegions},
      Row{Kind::kCudaRegionUnregister, "/v2/cudasharedmemory[/region/{region}]/unregister",
          Category::kSharedMemory, Scope::kSharedMemory, kPost, &Api::HandleRegions},
      Row{Kind::kOpenAiModels, "/v1/models", Category::kInference, Scope::kInfer, kGet,
          &Api::HandleOpenAi},
      Row{Kind::kOpenAiModel, "/v1/models/{model}", Category::kInference, Scope::kInfer, kGet,
          &Api::HandleOpenAi},
      Row{Kind::kOpenAiChat, "/v1/chat/completions", Category::kInference, Scope::kInfer, kPost,
          &Api::HandleOpenAi},
      Row{Kind::kOpenAiCompletions, "/v1/completions", Category::kInference, Scope::kInfer, kPost,
          &Api::HandleOpenAi},
      Row{Kind::kOpenAiEmbeddings, "/v1/embeddings", Category::kInference, Scope::kInfer, kPost,
          &Api::HandleOpenAi},
  };

  static const Row& RowOf(RouteKind kind) {
    NEREID_CHECK(kind != RouteKind::kNone);  // not a route
    return kRows[static_cast<size_t>(kind) - 1];
  }
};

namespace {

consteval bool IsInOrderOfKinds() {
  for (size_t i = 0; i < RouteTable::kRows.size(); ++i) {
    if (static_cast<size_t>(RouteTable::kRows[i].kind) != i + 1) return false;
  }
  return RouteTable::kRows.size() == kRouteCount;
}
static_assert(IsInOrderOfKinds(), "RowOf finds a row by its kind");

// The pattern of a row, for MatchesPath.
template <size_t row>
struct PatternOf {
  static constexpr const PathPattern& kPattern = RouteTable::kRows[row].path;
};

template <size_t... rows>
bool MatchesAny(std::string_view path, Route& route, std::index_sequence<rows...>) {
  const auto matches = [&]<size_t row>() {
    if (!MatchesPath<PatternOf<row>>(path, route)) {
      route = {};
      return false;
    }
    route.kind = RouteTable::kRows[row].kind;
    return true;
  };
  return (matches.template operator()<rows>() || ...);
}

}  // namespace

Route MatchRoute(std::string_view path) {
  Route route;
  MatchesAny(path, route, std::make_index_sequence<RouteTable::kRows.size()>());
  return route;
}

std::string_view RoutePath(RouteKind kind) { return RouteTable::RowOf(kind).path.text(); }
common::Category RouteCategory(RouteKind kind) { return RouteTable::RowOf(kind).category; }
access::Scope RouteScope(RouteKind kind) { return RouteTable::RowOf(kind).scope; }
std::string_view AllowedMethods(RouteKind kind) { return RouteTable::RowOf(kind).methods; }
const Dialect& RouteDialect(RouteKind kind) {
  return kind >= RouteKind::kOpenAiModels ? kOpenAiDialect : kTritonDialect;
}
ApiHandler::RouteHandler ApiHandler::HandlerOf(RouteKind kind) {
  return RouteTable::RowOf(kind).handler;
}

base::Result<std::string> DecodePath(std::string_view path) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c = static_cast<char>(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string decoded;
  decoded.reserve(path.size());
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      decoded += path[i];
      continue;
    }
    const int high = i + 2 < path.size() ? digit(path[i + 1]) : -1;
    const int low = i + 2 < path.size() ? digit(path[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return base::InvalidArgumentError(
          "the path has a '%' that two hexadecimal digits do not follow");
    }
    const char c = static_cast<char>(high * 16 + low);
    if (c == '/' || c == '\0') {
      return base::InvalidArgumentError("the path has an encoded slash or zero byte");
    }
    decoded += c;
    i += 2;
  }
  return decoded;
}

}  // namespace nereid::http
