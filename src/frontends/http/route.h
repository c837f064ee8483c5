// SPDX-License-Identifier: Apache-2.0
// Which part of the v2 REST API a request path names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "common/restrictions.h"

namespace nereid::http {

enum class RouteKind : uint8_t {
  kNone,
  kServerMetadata,
  kServerLive,
  kServerReady,
  kOpenApi,
  kModelMetadata,
  kModelReady,
  kModelConfig,
  kModelInfer,
  kModelGenerate,
  kModelGenerateStream,
  kModelStatistics,
  kAllStatistics,
  kModelTrace,
  kTrace,
  kLogging,
  kRepositoryIndex,
  kRepositoryLoad,
  kRepositoryUnload,
  kSystemRegionStatus,
  kSystemRegionRegister,
  kSystemRegionUnregister,
  kCudaRegionStatus,
  kCudaRegionRegister,
  kCudaRegionUnregister,
};
// The last enumerator, for loops over all of them.
inline constexpr RouteKind kLastRouteKind = RouteKind::kCudaRegionUnregister;

// What a path names.
struct Route {
  RouteKind kind = RouteKind::kNone;
  // Views of the path that was matched.
  std::string_view model;
  std::string_view version;  // digits, or empty for "the latest"
  std::string_view region;   // of shared memory, or empty for "all"
  bool names_repository = false;
};

// Accepts exactly the paths that Triton's patterns accept. `path` has no query and is decoded.
Route MatchRoute(std::string_view path);

// Undoes the percent-encoding of a path, once. InvalidArgument for what is not an encoding, and for
// a slash or a zero byte, which no name has: they could only make one path look like another.
base::Result<std::string> DecodePath(std::string_view path);

// What --http-restricted-api calls the route. Has an answer for every kind but kNone: a new kind
// without one does not compile.
common::Category RouteCategory(RouteKind kind);

// The methods a route answers, as an Allow header lists them. HEAD is where GET is.
std::string_view AllowedMethods(RouteKind kind);

// How messages call the route: "trace setting", "generate", ...
std::string_view RouteName(RouteKind kind);

}  // namespace nereid::http
