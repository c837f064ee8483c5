// SPDX-License-Identifier: Apache-2.0
// Which part of the v2 REST API a request path names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "common/restrictions.h"

namespace nereid::http {

// The routes, each of which has a row in route.cc with everything about it.
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
  kSystemRegionStatus,
  kSystemRegionRegister,
  kSystemRegionUnregister,
  kCudaRegionStatus,
  kCudaRegionRegister,
  kCudaRegionUnregister,
  kEnd,  // no route; one past the last
};
// Kinds from 1 to this are routes.
inline constexpr size_t kRouteCount = static_cast<size_t>(RouteKind::kEnd) - 1;

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

// Of a kind other than kNone:

// Its pattern (http/path_pattern.h).
std::string_view RoutePath(RouteKind kind);
// What --http-restricted-api calls it.
common::Category RouteCategory(RouteKind kind);
// The methods it answers, as an Allow header lists them. HEAD is where GET is.
std::string_view AllowedMethods(RouteKind kind);

}  // namespace nereid::http
