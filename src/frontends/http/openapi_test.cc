// SPDX-License-Identifier: Apache-2.0
#include "http/openapi.h"

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "http/json_dom.h"
#include "http/route.h"

namespace nereid::http {
namespace {

// Replaces the parameters of a path such as "/v2/models/{model}" with possible values.
std::string Fill(std::string_view path) {
  std::string filled;
  while (!path.empty()) {
    const size_t open = path.find('{');
    filled += path.substr(0, open);
    if (open == std::string_view::npos) break;
    filled += path.substr(open).starts_with("{version}") ? "1" : "x";
    path.remove_prefix(path.find('}') + 1);
  }
  return filled;
}

class OpenApiTest : public testing::Test {
 protected:
  OpenApiTest() {
    EXPECT_TRUE(ParseJson(OpenApiDocument(), document_).ok());
    paths_ = FindMember(document_, "paths");
  }
  rapidjson::Document document_;
  const JsonValue* paths_ = nullptr;
};

TEST_F(OpenApiTest, DescribesEveryRouteAndItsMethods) {
  ASSERT_NE(paths_, nullptr);
  std::map<RouteKind, std::set<std::string>> methods;
  for (const auto& path : paths_->GetObject()) {
    // The console has routes of its own, and a test that compares them.
    if (std::string_view(path.name.GetString()).starts_with("/ui/")) continue;
    const RouteKind kind = MatchRoute(Fill(path.name.GetString())).kind;
    EXPECT_NE(kind, RouteKind::kNone) << path.name.GetString();
    for (const auto& member : path.value.GetObject()) {
      const std::string name = member.name.GetString();
      if (name != "parameters") methods[kind].insert(name);
    }
  }
  for (size_t i = 1; i <= kRouteCount; ++i) {
    const auto kind = static_cast<RouteKind>(i);
    std::set<std::string> allowed;
    if (AllowedMethods(kind).find("GET") != std::string_view::npos) allowed.insert("get");
    if (AllowedMethods(kind).find("POST") != std::string_view::npos) allowed.insert("post");
    EXPECT_EQ(methods[kind], allowed) << RoutePath(kind);
  }
}

TEST_F(OpenApiTest, NamesEveryOperationOnce) {
  std::set<std::string> names;
  for (const auto& path : paths_->GetObject()) {
    for (const auto& member : path.value.GetObject()) {
      if (std::string(member.name.GetString()) == "parameters") continue;
      const JsonValue* const name = FindMember(member.value, "operationId");
      ASSERT_NE(name, nullptr) << path.name.GetString();
      EXPECT_TRUE(names.insert(name->GetString()).second) << name->GetString();
    }
  }
}

// Checks that every reference leads somewhere.
void CheckReferences(const rapidjson::Document& document, const JsonValue& value) {
  if (value.IsArray()) {
    for (const JsonValue& element : value.GetArray()) CheckReferences(document, element);
  }
  if (!value.IsObject()) return;
  for (const auto& member : value.GetObject()) {
    if (std::string(member.name.GetString()) != "$ref") {
      CheckReferences(document, member.value);
      continue;
    }
    std::string path = member.value.GetString();
    ASSERT_TRUE(path.starts_with("#/")) << path;
    path.erase(0, 2);
    const JsonValue* at = &document;
    while (at != nullptr && !path.empty()) {
      const size_t end = std::min(path.find('/'), path.size());
      at = FindMember(*at, path.substr(0, end).c_str());
      path.erase(0, end + 1);
    }
    EXPECT_NE(at, nullptr) << member.value.GetString();
  }
}

TEST_F(OpenApiTest, RefersToWhatThereIs) { CheckReferences(document_, document_); }

}  // namespace
}  // namespace nereid::http
