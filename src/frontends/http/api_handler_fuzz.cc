// SPDX-License-Identifier: Apache-2.0
// Fuzzes a whole HTTP server from its socket: heads, chunks, routes and the bodies of all of them,
// among them loads of models with configurations and files. The server must end each connection
// once the client has said all, with complete replies.
#include "http/api_handler.h"

#include <fmt/format.h>

#include "base/check.h"
#include "fuzz/exchange.h"
#include "fuzz/fuzz.h"
#include "http/testing/fake_service.h"

namespace {

namespace http = nereid::http;
namespace http1 = nereid::http1;
namespace net = nereid::net;
using nereid::tensor::DataType;

class Server {
 public:
  Server() {
    // The server has no engine, which would refuse inputs that the model does not have.
    service_.on_infer = [](nereid::core::RequestPtr request) {
      nereid::core::ResponseSink& sink = request->sink();
      nereid::core::ResponsePtr response = nereid::core::Response::Create(*request);
      request.reset();
      sink.Send(std::move(response), true);
    };
    http1::HttpServerOptions options;
    options.listener.address = "unix:" + nereid::fuzz::SocketPath();
    options.max_body_bytes = 100'000;
    auto started = http1::HttpServer::Start(options, pool_, handler_);
    NEREID_CHECK(started.ok());
    server_ = std::move(*started);
  }

 private:
  http::FakeService service_{http::MakeModel({DataType::kFp32, DataType::kBytes})};
  net::ReactorPool pool_{1};
  nereid::common::RoundExecutors rounds_{pool_};
  http::ApiHandler handler_{{.max_input_bytes = 100'000}, pool_, service_, rounds_};
  std::unique_ptr<http1::HttpServer> server_;
};

std::string Post(std::string_view path, std::string_view body, std::string_view headers = "") {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string get = " HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string infer =
      R"({"inputs":[{"name":"IN0","shape":[2],"datatype":"FP32","data":[1,2]},)"
      R"({"name":"IN1","shape":[1],"datatype":"BYTES","data":["a"]}]})";
  return {
      Post("/v2/models/m/infer", infer) + "GET /v2/health/ready" + get,
      Post("/v2/models/m/versions/3/infer", "abcd", "Inference-Header-Content-Length: 0\r\n"),
      Post("/v2/models/m/infer", infer, "Content-Encoding: gzip\r\nAccept-Encoding: deflate\r\n"),
      "POST /v2/models/m/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
          fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", infer.size(), infer),
      Post("/v2/models/m/generate", R"({"IN0":[1,2],"IN1":"text","parameters":{"a":1}})"),
      Post("/v2/models/m/generate_stream", R"({"IN0":1})"),
      Post("/v2/repository/models/m/load",
           R"({"parameters":{"config":"{\"backend\":\"x\"}","file:1/model.onnx":"AAEC/w=="}})"),
      Post("/v2/repository/models/m/unload", R"({"parameters":{"unload_dependents":true}})"),
      Post("/v2/repository/models/m/traffic",
           R"({"labels":{"a":1},"canary":{"version":1,"percent":5,"header":"x"}})"),
      Post("/v2/repository/index", R"({"ready":true})"),
      Post("/v2/systemsharedmemory/region/r/register", R"({"key":"/k","offset":0,"byte_size":64})"),
      Post("/v2/logging", R"({"log_info":true,"log_verbose_level":0})"),
      Post("/v2/models/m/trace/setting", R"({"trace_level":["TIMESTAMPS"],"trace_rate":"9"})"),
      "GET /v2/models/m/config" + get + "GET /v2/models/m/stats" + get + "GET /v2" + get,
      "OPTIONS /v2/models/m/infer" + get + "HEAD /v2/health/live" + get,
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Server server;
  const std::string replies = nereid::fuzz::Exchange({reinterpret_cast<const char*>(data), size});
  NEREID_CHECK(replies.empty() || replies.starts_with("HTTP/1."));
  return 0;
}
