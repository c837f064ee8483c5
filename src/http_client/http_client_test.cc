// SPDX-License-Identifier: Apache-2.0
// Tests the client with replies that a real server seldom sends.
#include "http_client/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "base/thread.h"
#include "http_client/testing/http_stub.h"

namespace nereid::http_client {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A client and a server that replies with `handler`.
class Pair {
 public:
  explicit Pair(HttpStub::Handler handler, HttpClientOptions options = {})
      : server_(std::move(handler)), client_(std::move(options)) {}
  explicit Pair(StubReply reply)
      : Pair([reply = std::move(reply)](const StubRequest&) { return reply; }) {}

  // A request whose body is collected in `body`.
  HttpRequest Request(const std::string& path = "/") {
    HttpRequest request;
    request.url = server_.endpoint() + path;
    request.on_body = [this](const HttpReply&, std::string_view bytes) {
      body += bytes;
      return true;
    };
    return request;
  }
  HttpReply Get(const std::string& path = "/") { return client_.Send(Request(path)); }

  HttpStub& server() { return server_; }
  HttpClient& client() { return client_; }

  std::string body;

 private:
  HttpStub server_;
  HttpClient client_;
};

TEST(AnHttpClient, ReadsAReply) {
  Pair pair({.status = 200, .headers = {{"X-Name", " value "}}, .body = "hello"});
  const HttpReply reply = pair.Get("/a/../b?c");
  EXPECT_TRUE(reply.is_success());
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("x-name"), "value");
  EXPECT_EQ(pair.body, "hello");
  EXPECT_THAT(pair.server().Targets(), testing::ElementsAre("/a/../b?c"));  // as it was signed
}

TEST(AnHttpClient, SendsABody) {
  const std::string large(3 << 20, 'x');
  std::atomic<bool> is_same{false};
  Pair pair([&](const StubRequest& request) {
    is_same = request.method == "POST" && request.body == large &&
              request.headers.at("content-type") == "a/b" && !request.headers.contains("expect");
    return StubReply{};
  });
  HttpRequest request = pair.Request();
  request.method = Method::kPost;
  request.headers = {{"content-type", "a/b"}};
  request.body = large;
  EXPECT_TRUE(pair.client().Send(request).is_success());
  EXPECT_TRUE(is_same);
  request.body.clear();
  EXPECT_TRUE(pair.client().Send(request).is_success());
}

TEST(AnHttpClient, KeepsItsConnectionForTheNextRequest) {
  Pair pair({.status = 200, .headers = {}, .body = "x"});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pair.Get().is_success());
  EXPECT_EQ(pair.server().Connections(), 1u);
}

TEST(AnHttpClient, ReadsAReplyInChunks) {
  Pair pair({.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"});
  EXPECT_TRUE(pair.Get().is_success());
  EXPECT_EQ(pair.body, "hello world");
}

TEST(AnHttpClient, ReadsTheReplyAfterAnInterimOne) {
  Pair pair({.raw = "HTTP/1.1 100 Continue\r\nX-A: 1\r\n\r\n"
                    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"});
  const HttpReply reply = pair.Get();
  EXPECT_EQ(reply.status, 200);
  EXPECT_FALSE(reply.headers.contains("x-a"));
  EXPECT_EQ(pair.body, "ok");
}

TEST(AnHttpClient, FailsOnATruncatedReply) {
  for (const StubReply& reply :
       {StubReply{.body = "hello world", .cut_off = 5},
        StubReply{.raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"},
        StubReply{.raw = "HTTP/1.1 200 OK\r\nContent-Le"}}) {
    Pair pair(reply);
    const HttpReply got = pair.Get();
    EXPECT_FALSE(got.is_success());
    EXPECT_FALSE(got.failure.empty());
    EXPECT_FALSE(got.is_final);  // worth a retry
  }
}

TEST(AnHttpClient, FailsOnAReplyThatIsNotHttp) {
  for (const char* raw :
       {"SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx"}) {
    Pair pair(StubReply{.raw = raw});
    EXPECT_FALSE(pair.Get().is_success()) << raw;
  }
}

TEST(AnHttpClient, KeepsTheBodyOfAnErrorSeparatelyAndBounded) {
  Pair pair({.status = 404, .headers = {}, .body = std::string(200'000, 'e')});
  const HttpReply reply = pair.Get();
  EXPECT_EQ(reply.status, 404);
  EXPECT_FALSE(reply.is_success());
  EXPECT_EQ(reply.failure, "");
  EXPECT_EQ(reply.body.size(), size_t{64} << 10);
  EXPECT_EQ(pair.body, "");
}

TEST(AnHttpClient, StopsWhenTheBodyIsRefused) {
  Pair pair({.status = 200, .headers = {}, .body = std::string(5 << 20, 'x')});
  HttpRequest request = pair.Request();
  size_t seen = 0;
  request.on_body = [&](const HttpReply& head, std::string_view bytes) {
    EXPECT_EQ(head.status, 200);
    seen += bytes.size();
    return seen < 100'000;
  };
  const HttpReply reply = pair.client().Send(request);
  EXPECT_FALSE(reply.is_success());
  EXPECT_TRUE(reply.is_final);
  EXPECT_LT(seen, size_t{5} << 20);
}

TEST(AnHttpClient, LimitsTheNumberOfHeaders) {
  std::string raw = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
  for (int i = 0; i < 1000; ++i) raw += "X-" + std::to_string(i) + ": v\r\n";
  Pair pair(StubReply{.raw = raw + "\r\n"});
  EXPECT_EQ(pair.Get().headers.size(), 256u);
}

TEST(AnHttpClient, FollowsNoRedirection) {
  Pair pair([](const StubRequest& request) {
    if (request.target == "/a") return StubReply{307, {{"Location", "/b"}}, "moved"};
    return StubReply{};
  });
  const HttpReply reply = pair.Get("/a");
  EXPECT_EQ(reply.status, 307);
  EXPECT_EQ(reply.headers.at("location"), "/b");
  EXPECT_EQ(reply.body, "moved");
  EXPECT_EQ(pair.server().Targets().size(), 1u);
}

TEST(AnHttpClient, UsesTheProxyOfTheEnvironment) {
  Pair pair({.status = 200, .headers = {}, .body = "of the proxy"});
  HttpRequest request = pair.Request();
  request.url = "http://127.0.0.1:1/x";  // a port without a listener
  ::setenv("http_proxy", pair.server().endpoint().c_str(), /*overwrite=*/1);
  ::setenv("no_proxy", "", /*overwrite=*/1);
  EXPECT_TRUE(pair.client().Send(request).is_success());
  ::setenv("no_proxy", "127.0.0.1", /*overwrite=*/1);
  EXPECT_FALSE(pair.client().Send(request).is_success());
  ::unsetenv("http_proxy");
  ::unsetenv("no_proxy");
  EXPECT_EQ(pair.body, "of the proxy");
  EXPECT_THAT(pair.server().Targets(), testing::ElementsAre("http://127.0.0.1:1/x"));
}

TEST(AnHttpClient, AvoidsProxiesOnRequest) {
  Pair pair({.status = 200, .headers = {}, .body = "x"});
  const HttpStub proxy([](const StubRequest&) { return StubReply{502}; });
  ::setenv("http_proxy", proxy.endpoint().c_str(), /*overwrite=*/1);
  ::setenv("no_proxy", "", /*overwrite=*/1);
  HttpRequest request = pair.Request();
  EXPECT_EQ(pair.client().Send(request).status, 502);
  request.avoids_proxy = true;
  EXPECT_EQ(pair.client().Send(request).status, 200);
  request.avoids_proxy = false;
  EXPECT_EQ(pair.client().Send(request).status, 502);
  ::unsetenv("http_proxy");
  ::unsetenv("no_proxy");
}

TEST(AnHttpClient, SendsAPut) {
  std::atomic<bool> is_put{false};
  Pair pair([&](const StubRequest& request) {
    is_put = request.method == "PUT" && request.body.empty();
    return StubReply{};
  });
  HttpRequest request = pair.Request();
  request.method = Method::kPut;
  EXPECT_TRUE(pair.client().Send(request).is_success());
  EXPECT_TRUE(is_put);
  EXPECT_TRUE(pair.Get().is_success());  // the next request is a GET again
  EXPECT_FALSE(is_put);
}

TEST(AnHttpClient, ReportsARefusedConnection) {
  std::string endpoint;
  {
    const HttpStub gone([](const StubRequest&) { return StubReply{}; });
    endpoint = gone.endpoint();
  }
  HttpClient client;
  HttpRequest request;
  request.url = endpoint;
  const HttpReply reply = client.Send(request);
  EXPECT_THAT(reply.failure, StartsWith("curlCode: 7, "));
  EXPECT_EQ(reply.status, 0);
  EXPECT_FALSE(reply.is_final);
}

TEST(AnHttpClient, RefusesOtherProtocols) {
  HttpClient client;
  for (const char* url : {"file:///etc/passwd", "gopher://127.0.0.1/", "http://[x"}) {
    HttpRequest request;
    request.url = url;
    const HttpReply reply = client.Send(request);
    EXPECT_FALSE(reply.failure.empty()) << url;
    EXPECT_TRUE(reply.is_final) << url;
  }
}

TEST(AnHttpClient, GivesUpOnAServerThatDoesNotCompleteTheHandshake) {
  Pair pair([](const StubRequest&) { return StubReply{}; },
            {.connect_timeout = std::chrono::milliseconds(50)});
  HttpRequest request = pair.Request();
  request.url.replace(0, 4, "https");
  const HttpReply reply = pair.client().Send(request);
  EXPECT_THAT(reply.failure, HasSubstr("curlCode: 28"));
  EXPECT_EQ(reply.status, 0);
}

TEST(AnHttpClient, GivesUpAfterItsTimeout) {
  Pair pair({.body = "hello", .cut_off = 2, .hangs = true});
  HttpRequest request = pair.Request();
  request.timeout = std::chrono::seconds(1);
  EXPECT_THAT(pair.client().Send(request).failure, HasSubstr("curlCode: 28"));
  EXPECT_EQ(pair.body, "hel");
}

TEST(AnHttpClient, GivesUpOnAStalledReply) {
  Pair pair(
      [](const StubRequest&) { return StubReply{.body = "hello", .cut_off = 2, .hangs = true}; },
      {.stall_timeout = std::chrono::seconds(1)});
  const HttpReply reply = pair.Get();
  EXPECT_THAT(reply.failure, HasSubstr("curlCode: 28"));
  EXPECT_FALSE(reply.is_final);
}

TEST(AnHttpClient, IsCancelledWhileItWaits) {
  std::stop_source stop;
  Pair pair([&](const StubRequest&) {
    stop.request_stop();
    return StubReply{.body = "hello", .cut_off = 5, .hangs = true};
  });
  HttpRequest request = pair.Request();
  request.stop = stop.get_token();
  const HttpReply reply = pair.client().Send(request);
  EXPECT_THAT(reply.failure, HasSubstr("curlCode: 42"));
  EXPECT_TRUE(reply.is_final);
  EXPECT_TRUE(pair.server().Connections() == 1 && pair.body.empty());
}

TEST(AnHttpClient, ServesSeveralThreads) {
  Pair pair([](const StubRequest& request) { return StubReply{.body = request.target}; });
  std::atomic<int> good{0};
  {
    std::vector<base::Thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back("client", [&, i] {
        const std::string path = "/" + std::to_string(i);
        for (int j = 0; j < 20; ++j) {
          std::string body;
          HttpRequest request;
          request.url = pair.server().endpoint() + path;
          request.on_body = [&](const HttpReply&, std::string_view bytes) {
            body += bytes;
            return true;
          };
          if (pair.client().Send(request).is_success() && body == path) ++good;
        }
      });
    }
  }
  EXPECT_EQ(good, 80);
}

}  // namespace
}  // namespace nereid::http_client
