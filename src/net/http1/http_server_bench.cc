// SPDX-License-Identifier: Apache-2.0
// The HTTP server with a handler that does almost nothing, to compare with a minimal program for
// the same protocol: `http1_bench PORT [REACTORS]` replies to every inference request with its own
// tensor bytes until standard input ends.
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <charconv>
#include <string>

#include "http1/http_server.h"

namespace nereid::http1 {
namespace {

size_t SplitOf(const HttpHead& head) {
  const std::string_view text = head.Header("Inference-Header-Content-Length");
  size_t split = HttpBodyPlan::kNoSplit;
  std::from_chars(text.data(), text.data() + text.size(), split);
  return split;
}

class Echo final : public HttpHandler {
 public:
  HttpBodyPlan PlanBody(const HttpHead& head, size_t max_bytes) override {
    return {.max_bytes = max_bytes, .split = SplitOf(head)};
  }

  void Handle(HttpExchangePtr exchange) override {
    const std::string_view body = exchange->body();
    const size_t split = std::min(SplitOf(exchange->head()), body.size());
    const std::string_view json = body.substr(0, split);
    std::string_view shape = "[]";
    if (const size_t at = json.find("\"shape\":"); at != std::string_view::npos) {
      const size_t end = json.find(']', at);
      if (end != std::string_view::npos) shape = json.substr(at + 8, end - at - 7);
    }
    HttpBodyPart tensor{body.data() + split, body.size() - split, exchange->body_buffer()};
    char text[512];
    const int text_size = std::snprintf(
        text, sizeof text,
        "{\"model_name\":\"id_nobatch\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"OUTPUT0\","
        "\"datatype\":\"FP32\",\"shape\":%.*s,\"parameters\":{\"binary_data_size\":%zu}}]}",
        static_cast<int>(std::min<size_t>(shape.size(), 64)), shape.data(), tensor.size);
    char headers[64];
    const int headers_size = std::snprintf(headers, sizeof headers,
                                           "Inference-Header-Content-Length: %d\r\n", text_size);
    HttpExchange::Respond(std::move(exchange),
                          {.content_type = "application/octet-stream",
                           .headers = {headers, static_cast<size_t>(headers_size)},
                           .text = {text, static_cast<size_t>(text_size)},
                           .parts = {&tensor, 1}});
  }
};

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s PORT [REACTORS]\n", argv[0]);
    return 1;
  }
  net::ReactorPool pool(argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1);
  Echo echo;
  HttpServerOptions options;
  options.listener.address = "127.0.0.1";
  options.listener.port = static_cast<uint16_t>(std::atoi(argv[1]));
  auto server = HttpServer::Start(options, pool, echo);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  char ignored[64];
  while (::read(0, ignored, sizeof ignored) > 0) {
  }
  return 0;
}

}  // namespace
}  // namespace nereid::http1

int main(int argc, char** argv) { return nereid::http1::Main(argc, argv); }
