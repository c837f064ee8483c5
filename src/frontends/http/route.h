// SPDX-License-Identifier: Apache-2.0
// The routes of the HTTP API: the v2 REST API, and those of OpenAI's API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "access/scope.h"
#include "base/status.h"
#include "common/restrictions.h"

namespace nereid::http {

struct Dialect;

// The routes. Each has a row in route.cc that defines all its properties.
enum class RouteKind : uint8_t {
  kNone,
  kModelInfer,
  kModelGenerate,
  kModelGenerateStream,
  kServerMetadata,
  kServerLive,
  kServerReady,
  kOpenApi,
  kAllStatistics,
  kModelStatistics,
  kModelMetadata,
  kModelReady,
  kModelConfig,
  kModelTrace,
  kTrace,
  kLogging,
  kRepositoryIndex,
  kRepositoryLoad,
  kRepositoryUnload,
  kModelTraffic,
  kSystemRegionStatus,
  kSystemRegionRegister,
  kSystemRegionUnregister,
  kCudaRegionStatus,
  kCudaRegionRegister,
  kCudaRegionUnregister,
  kOpenAiModels,
  kOpenAiModel,
  kOpenAiChat,
  kOpenAiCompletions,
  kOpenAiEmbeddings,
  kEnd,  // no route; one past the last
};
// The number of routes, whose kinds are 1 to this.
inline constexpr size_t kRouteCount = static_cast<size_t>(RouteKind::kEnd) - 1;

// The route of a path, and the names in the path.
struct Route {
  RouteKind kind = RouteKind::kNone;
  // These are views of the path that was matched.
  std::string_view model;
  std::string_view version;  // digits, a label, or empty for "the latest"
  std::string_view region;   // of shared memory, or empty for "all"
  bool names_repository = false;
  bool names_label = false;  // in `version`
};

// Accepts the paths of the v2 API that Triton's patterns accept, and those of OpenAI's API. `path`
// has no query and is decoded.
Route MatchRoute(std::string_view path);

// Undoes the percent-encoding of a path, once. InvalidArgument for an invalid encoding, and for a
// slash or a zero byte, which no name has: they could only make one path look like another.
base::Result<std::string> DecodePath(std::string_view path);

// The properties of a kind other than kNone:

// Returns its pattern (http/path_pattern.h).
std::string_view RoutePath(RouteKind kind);
// Returns its category for --http-restricted-api.
common::Category RouteCategory(RouteKind kind);
// Returns the scope that its sender needs, where senders are asked who they are.
access::Scope RouteScope(RouteKind kind);
// Returns its methods, as an Allow header lists them. HEAD is allowed wherever GET is.
std::string_view AllowedMethods(RouteKind kind);
// Returns the form of its errors.
const Dialect& RouteDialect(RouteKind kind);

}  // namespace nereid::http
