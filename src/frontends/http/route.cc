// SPDX-License-Identifier: Apache-2.0
#include "http/route.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace nereid::http {
namespace {

bool Consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Length of the UTF-8 sequence at the front of `text`, 0 when it is not one.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  size_t length = 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

// The pattern [^/]+ of a matcher that reads UTF-8: one or more characters up to a slash or the end.
bool ConsumeSegment(std::string_view& text, std::string_view& segment) {
  size_t length = 0;
  while (length < text.size() && text[length] != '/') {
    const size_t character = Utf8Length(text.substr(length));
    if (character == 0) return false;
    length += character;
  }
  if (length == 0) return false;
  segment = text.substr(0, length);
  text.remove_prefix(length);
  return true;
}

bool ConsumeDigits(std::string_view& text, std::string_view& digits) {
  const auto end = std::ranges::find_if_not(text, [](char c) { return c >= '0' && c <= '9'; });
  const size_t length = static_cast<size_t>(end - text.begin());
  if (length == 0) return false;
  digits = text.substr(0, length);
  text.remove_prefix(length);
  return true;
}

// /v2/models/M[/versions/V][/<action>]
Route MatchModel(std::string_view rest) {
  Route route;
  if (!ConsumeSegment(rest, route.model)) return {};
  if (Consume(rest, "/versions/") && !ConsumeDigits(rest, route.version)) return {};
  static constexpr std::array<std::pair<std::string_view, RouteKind>, 8> kActions{{
      {"", RouteKind::kModelMetadata},
      {"/infer", RouteKind::kModelInfer},
      {"/ready", RouteKind::kModelReady},
      {"/config", RouteKind::kModelConfig},
      {"/generate", RouteKind::kModelGenerate},
      {"/generate_stream", RouteKind::kModelGenerateStream},
      {"/stats", RouteKind::kModelStatistics},
      {"/trace/setting", RouteKind::kModelTrace},
  }};
  for (const auto& [text, kind] : kActions) {
    if (rest == text) route.kind = kind;
  }
  // Trace settings belong to a model, not to one of its versions.
  if (route.kind == RouteKind::kModelTrace && !route.version.empty()) return {};
  return route;
}

// index, or models/M/load, or models/M/unload
Route MatchRepositoryAction(std::string_view rest) {
  Route route;
  if (rest == "index") {
    route.kind = RouteKind::kRepositoryIndex;
    return route;
  }
  if (!Consume(rest, "models/") || !ConsumeSegment(rest, route.model)) return {};
  if (rest == "/load") route.kind = RouteKind::kRepositoryLoad;
  if (rest == "/unload") route.kind = RouteKind::kRepositoryUnload;
  return route;
}

// /v2/repository[/<repository>]/<action>; the repository's name has no meaning.
Route MatchRepository(std::string_view rest) {
  std::string_view with_name = rest;
  std::string_view repository;
  if (ConsumeSegment(with_name, repository) && Consume(with_name, "/")) {
    Route route = MatchRepositoryAction(with_name);
    route.names_repository = true;
    if (route.kind != RouteKind::kNone) return route;
  }
  return MatchRepositoryAction(rest);
}

// [region/<name>/](status|register|unregister); `status` is the first of a memory's three kinds.
Route MatchRegion(std::string_view rest, RouteKind status) {
  Route route;
  if (Consume(rest, "region/")) {
    if (!ConsumeSegment(rest, route.region) || !Consume(rest, "/")) return {};
  }
  const bool is_system = status == RouteKind::kSystemRegionStatus;
  if (rest == "status") route.kind = status;
  if (rest == "register") {
    route.kind = is_system ? RouteKind::kSystemRegionRegister : RouteKind::kCudaRegionRegister;
  }
  if (rest == "unregister") {
    route.kind = is_system ? RouteKind::kSystemRegionUnregister : RouteKind::kCudaRegionUnregister;
  }
  return route;
}

}  // namespace

Route MatchRoute(std::string_view path) {
  if (path == "/openapi.json") return {.kind = RouteKind::kOpenApi};
  if (!Consume(path, "/v2")) return {};
  if (path.starts_with("/models/")) {
    if (path == "/models/stats") return {.kind = RouteKind::kAllStatistics};
    return MatchModel(path.substr(8));
  }
  if (path.empty()) return {.kind = RouteKind::kServerMetadata};
  if (path == "/health/live") return {.kind = RouteKind::kServerLive};
  if (path == "/health/ready") return {.kind = RouteKind::kServerReady};
  if (path == "/logging") return {.kind = RouteKind::kLogging};
  if (path == "/trace/setting") return {.kind = RouteKind::kTrace};
  if (Consume(path, "/repository/")) return MatchRepository(path);
  if (Consume(path, "/systemsharedmemory/")) {
    return MatchRegion(path, RouteKind::kSystemRegionStatus);
  }
  if (Consume(path, "/cudasharedmemory/")) {
    return MatchRegion(path, RouteKind::kCudaRegionStatus);
  }
  return {};
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

// No default: the compiler asks for the category of every kind.
common::Category RouteCategory(RouteKind kind) {
  using common::Category;
  switch (kind) {
    case RouteKind::kNone:
      break;
    case RouteKind::kServerLive:
    case RouteKind::kServerReady:
    case RouteKind::kModelReady:
      return Category::kHealth;
    case RouteKind::kOpenApi:
    case RouteKind::kServerMetadata:
    case RouteKind::kModelMetadata:
      return Category::kMetadata;
    case RouteKind::kModelConfig:
      return Category::kModelConfig;
    case RouteKind::kModelInfer:
    case RouteKind::kModelGenerate:
    case RouteKind::kModelGenerateStream:
      return Category::kInference;
    case RouteKind::kModelStatistics:
    case RouteKind::kAllStatistics:
      return Category::kStatistics;
    case RouteKind::kModelTrace:
    case RouteKind::kTrace:
      return Category::kTrace;
    case RouteKind::kLogging:
      return Category::kLogging;
    case RouteKind::kRepositoryIndex:
    case RouteKind::kRepositoryLoad:
    case RouteKind::kRepositoryUnload:
      return Category::kModelRepository;
    case RouteKind::kSystemRegionStatus:
    case RouteKind::kSystemRegionRegister:
    case RouteKind::kSystemRegionUnregister:
    case RouteKind::kCudaRegionStatus:
    case RouteKind::kCudaRegionRegister:
    case RouteKind::kCudaRegionUnregister:
      return Category::kSharedMemory;
  }
  base::CheckFailed(__FILE__, __LINE__, "a path that is no route has no category");
}

std::string_view AllowedMethods(RouteKind kind) {
  switch (kind) {
    case RouteKind::kModelInfer:
    case RouteKind::kModelGenerate:
    case RouteKind::kModelGenerateStream:
    case RouteKind::kRepositoryIndex:
    case RouteKind::kRepositoryLoad:
    case RouteKind::kRepositoryUnload:
    case RouteKind::kSystemRegionRegister:
    case RouteKind::kSystemRegionUnregister:
    case RouteKind::kCudaRegionRegister:
    case RouteKind::kCudaRegionUnregister:
      return "POST";
    case RouteKind::kModelTrace:
    case RouteKind::kTrace:
    case RouteKind::kLogging:
      return "GET, HEAD, POST";
    default:
      return "GET, HEAD";
  }
}

std::string_view RouteName(RouteKind kind) {
  switch (kind) {
    case RouteKind::kModelGenerate:
      return "generate";
    case RouteKind::kModelGenerateStream:
      return "generate_stream";
    case RouteKind::kModelStatistics:
    case RouteKind::kAllStatistics:
      return "statistics";
    case RouteKind::kModelTrace:
    case RouteKind::kTrace:
      return "trace setting";
    case RouteKind::kLogging:
      return "logging";
    case RouteKind::kRepositoryLoad:
      return "model load";
    case RouteKind::kRepositoryUnload:
      return "model unload";
    default:
      return "this request";
  }
}

}  // namespace nereid::http
