// SPDX-License-Identifier: Apache-2.0
#include "http/openai_routes.h"

#include <gtest/gtest.h>

namespace nereid::http {
namespace {

TEST(OpenAiError, HasATypeForEachStatus) {
  const auto type = [](int status) {
    const std::string error = OpenAiError(status, "m");
    const size_t begin = error.find("\"type\":\"") + 8;
    return error.substr(begin, error.find('"', begin) - begin);
  };
  EXPECT_EQ(type(400), "invalid_request_error");
  EXPECT_EQ(type(401), "authentication_error");
  EXPECT_EQ(type(403), "permission_error");
  EXPECT_EQ(type(404), "invalid_request_error");
  EXPECT_EQ(type(429), "rate_limit_error");
  EXPECT_EQ(type(500), "server_error");
  EXPECT_EQ(type(503), "server_error");
}

TEST(OpenAiError, NamesFieldAndCode) {
  EXPECT_EQ(
      OpenAiError(400, "a \"b\"", "n"),
      R"({"error":{"message":"a \"b\"","type":"invalid_request_error","param":"n","code":null}})");
  EXPECT_EQ(OpenAiError(404, "m", "model", "model_not_found"),
            R"({"error":{"message":"m","type":"invalid_request_error","param":"model",)"
            R"("code":"model_not_found"}})");
  EXPECT_EQ(OpenAiError(401, "m"),
            R"({"error":{"message":"m","type":"authentication_error","param":null,)"
            R"("code":"invalid_api_key"}})");
}

TEST(OpenAiDialect, IsThatOfTheRoutes) {
  EXPECT_EQ(ErrorJson(503, "m", RouteDialect(RouteKind::kOpenAiChat)), OpenAiError(503, "m"));
  EXPECT_EQ(ErrorJson(503, "m", RouteDialect(RouteKind::kModelInfer)), R"({"error":"m"})");
}

}  // namespace
}  // namespace nereid::http
