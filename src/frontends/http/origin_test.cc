// SPDX-License-Identifier: Apache-2.0
#include "http/origin.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "http/api_handler.h"
#include "http/testing/client.h"
#include "http/testing/fake_service.h"
#include "http1/http_server.h"

namespace nereid::http {
namespace {

class OriginTest : public testing::Test {
 protected:
  explicit OriginTest(CorsOptions cors = {}, std::vector<std::string> own_names = {})
      : api_({.cors = std::move(cors), .own_names = std::move(own_names)}, pool_, service_,
             rounds_) {
    server_ =
        std::move(*http1::HttpServer::Start({.listener = {.address = "127.0.0.1"}}, pool_, api_));
    client_ = std::make_unique<Client>(server_->port());
  }
  // Asks to load a model; the client's Host is "x".
  Reply Load(std::string_view headers) {
    return client_->Ask("POST", "/v2/repository/models/m/load", "", headers);
  }

  FakeService service_{MakeModel({tensor::DataType::kFp32})};
  net::ReactorPool pool_{1};
  common::RoundExecutors rounds_{pool_};
  ApiHandler api_;
  std::unique_ptr<http1::HttpServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(OriginTest, ProgramsAndTheServersOwnPageMayChangeIt) {
  for (const char* headers :
       {"", "Origin: http://x\r\n", "Origin: http://X\r\n", "Sec-Fetch-Site: none\r\n",
        // A proxy in front of the server, to which the browser has spoken.
        "Origin: https://10.1.2.3:8443\r\nSec-Fetch-Site: same-origin\r\n",
        "Origin: http://[::1]:8003\r\nSec-Fetch-Site: same-origin\r\n",
        "Origin: http://my.localhost:8003\r\nSec-Fetch-Site: same-origin\r\n"}) {
    EXPECT_EQ(Load(headers).status, 200) << headers;
  }
  EXPECT_EQ(service_.operations.size(), 7u);
}

TEST_F(OriginTest, PagesOfOtherSitesMayNot) {
  for (const char* headers :
       {"Origin: https://evil.example\r\n", "Origin: null\r\n", "Origin: http://x:8000\r\n",
        "Sec-Fetch-Site: cross-site\r\n", "Origin: http://x\r\nSec-Fetch-Site: cross-site\r\n",
        "Origin: http://x\r\nSec-Fetch-Site: same-site\r\n"}) {
    const Reply reply = Load(headers);
    EXPECT_EQ(reply.status, 403) << headers;
    EXPECT_NE(reply.body.find("a page of another site ("), std::string::npos) << reply.body;
  }
  EXPECT_EQ(client_->Ask("POST", "/v2/logging", "{}", "Origin: null\r\n").status, 403);
  EXPECT_TRUE(service_.operations.empty());
}

// Names are rebound: the browser believes that the page came from this server.
TEST_F(OriginTest, WithoutKeysAPublicNameIsNotBelieved) {
  const Reply reply = Load("Origin: http://evil.example\r\nSec-Fetch-Site: same-origin\r\n");
  EXPECT_EQ(reply.status, 403);
  EXPECT_NE(reply.body.find("not from 'evil.example'"), std::string::npos) << reply.body;
  EXPECT_TRUE(service_.operations.empty());
}

TEST_F(OriginTest, OnlyRequestsThatChangeTheServerAreAsked) {
  EXPECT_EQ(client_->Ask("GET", "/v2", "", "Origin: https://evil.example\r\n").status, 200);
  EXPECT_EQ(client_->Ask("POST", "/v2/repository/index", "", "Origin: https://a.b\r\n").status,
            200);
}

TEST(OwnNames, AreThoseOfTheAddressAndOfAllowedOrigins) {
  EXPECT_EQ(OwnNames("Server.Example.com", {"https://app.example:8443", "*", "http://x"}),
            (std::vector<std::string>{"server.example.com", "app.example"}));
  EXPECT_TRUE(OwnNames("0.0.0.0", {}).empty());
  EXPECT_TRUE(OwnNames("::1", {"http://[::1]:8000"}).empty());
}

class NamedServerTest : public OriginTest {
 protected:
  NamedServerTest() : OriginTest({}, {"server.example.com"}) {}
};

TEST_F(NamedServerTest, ItsOwnNameIsBelieved) {
  EXPECT_EQ(
      Load("Origin: https://Server.example.com:8003\r\nSec-Fetch-Site: same-origin\r\n").status,
      200);
  EXPECT_EQ(Load("Origin: https://evil.example.com\r\nSec-Fetch-Site: same-origin\r\n").status,
            403);
  EXPECT_EQ(Load("Origin: https://server.example.com\r\nSec-Fetch-Site: cross-site\r\n").status,
            403);
}

class AllowedOriginTest : public OriginTest {
 protected:
  AllowedOriginTest() : OriginTest({.origins = {"https://app.example"}}) {}
};

TEST_F(AllowedOriginTest, AnAllowedOriginMayChangeTheServer) {
  EXPECT_EQ(Load("Origin: https://app.example\r\nSec-Fetch-Site: cross-site\r\n").status, 200);
  EXPECT_EQ(Load("Origin: https://evil.example\r\n").status, 403);
}

}  // namespace
}  // namespace nereid::http
