// SPDX-License-Identifier: Apache-2.0
#include "http/metrics_handler.h"

#include <utility>

#include <gtest/gtest.h>

#include "http/testing/client.h"
#include "http/testing/fake_service.h"

namespace nereid::http {
namespace {

TEST(MetricsHandler, ServesThePageAndNothingElse) {
  FakeService service(MakeModel({}));
  net::ReactorPool pool(1);
  MetricsHandler handler(pool, service);
  const auto server =
      std::move(*http1::HttpServer::Start({.listener = {.address = "127.0.0.1"}}, pool, handler));
  Client client(server->port());
  const Reply page = client.Ask("GET", "/metrics");
  EXPECT_EQ(page.body, "# HELP x\nx 1\n");
  EXPECT_TRUE(page.Has("Content-Type: text/plain; charset=utf-8\r\n"));
  const Reply other = client.Ask("GET", "/other");
  EXPECT_EQ(other.status, 200);
  EXPECT_EQ(other.body, "");
  const Reply refused = client.Ask("POST", "/metrics");
  EXPECT_EQ(refused.status, 405);
  EXPECT_TRUE(refused.Has("Allow: GET, HEAD\r\n"));
  EXPECT_EQ(refused.body, R"({"error":"Method Not Allowed"})");
}

}  // namespace
}  // namespace nereid::http
