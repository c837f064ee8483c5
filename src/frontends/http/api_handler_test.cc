// SPDX-License-Identifier: Apache-2.0
// The API over real sockets, with a service of one model that echoes.
#include "http/api_handler.h"

#include <future>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "http/testing/client.h"
#include "http/testing/fake_service.h"
#include "net/compression.h"

namespace nereid::http {
namespace {

using tensor::DataType;

class ApiTest : public testing::Test {
 protected:
  explicit ApiTest(bool is_decoupled = false)
      : service_(MakeModel({DataType::kFp32, DataType::kBytes}, 0, is_decoupled)) {
    http1::HttpServerOptions options;
    options.listener.address = "127.0.0.1";
    options.max_body_bytes = 100'000;
    server_ = std::move(*http1::HttpServer::Start(options, pool_, handler_));
    client_ = std::make_unique<Client>(server_->port());
  }
  Reply Infer(std::string_view json, std::string_view binary = "", std::string_view headers = "") {
    std::string all(headers);
    if (!binary.empty()) {
      all += "Inference-Header-Content-Length: " + std::to_string(json.size()) + "\r\n";
    }
    return client_->Ask("POST", "/v2/models/m/infer", std::string(json) + std::string(binary), all);
  }

  FakeService service_;
  net::ReactorPool pool_{1};
  common::RoundExecutors rounds_{pool_};
  ApiHandler handler_{{.max_input_bytes = 100'000}, pool_, service_, rounds_};
  std::unique_ptr<http1::HttpServer> server_;
  std::unique_ptr<Client> client_;
};

constexpr std::string_view kFloats =
    R"({"id":"7","inputs":[{"name":"IN0","shape":[2],"datatype":"FP32","data":[1,0.5]}]})";

TEST_F(ApiTest, RespondsToInferInJson) {
  const Reply reply = Infer(kFloats);
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.Has("Content-Type: application/json\r\n"));
  EXPECT_FALSE(reply.Has("Inference-Header"));
  EXPECT_EQ(reply.body,
            R"({"id":"7","model_name":"m","model_version":"3","outputs":[{"name":"OUT0",)"
            R"("datatype":"FP32","shape":[2],"data":[1.0,0.5]}]})");
}

TEST_F(ApiTest, RespondsToInferInBinary) {
  const std::string json =
      R"({"parameters":{"binary_data_output":true},"inputs":[{"name":"IN0","shape":[1],)"
      R"("datatype":"FP32","parameters":{"binary_data_size":4}},{"name":"IN1","shape":[1],)"
      R"("datatype":"BYTES","data":["xyz"]}],"outputs":[{"name":"OUT1"}]})";
  const Reply reply = Infer(json, "abcd");
  const std::string head =
      R"({"model_name":"m","model_version":"3","outputs":[{"name":"OUT0","datatype":"FP32",)"
      R"("shape":[1],"parameters":{"binary_data_size":4}},{"name":"OUT1","datatype":"BYTES",)"
      R"("shape":[1],"data":["xyz"]}]})";
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.Has("Content-Type: application/octet-stream\r\n"));
  EXPECT_TRUE(
      reply.Has("Inference-Header-Content-Length: " + std::to_string(head.size()) + "\r\n"));
  // An output that is listed without its own format is JSON, whatever the default.
  EXPECT_EQ(reply.body, head + "abcd");
}

TEST_F(ApiTest, RespondsToRawRequestsInBinary) {
  FakeService service(MakeModel({DataType::kFp16}));
  ApiHandler handler({}, pool_, service, rounds_);
  const auto server =
      std::move(*http1::HttpServer::Start({.listener = {.address = "127.0.0.1"}}, pool_, handler));
  Client client(server->port());
  const Reply reply =
      client.Ask("POST", "/v2/models/m/infer", "abcd", "Inference-Header-Content-Length: 0\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body,
            R"({"model_name":"m","model_version":"3","outputs":[{"name":"OUT0","datatype":"FP16",)"
            R"("shape":[2],"parameters":{"binary_data_size":4}}]})"
            "abcd");
}

TEST_F(ApiTest, ClassifiesWithLabels) {
  const Reply reply =
      Infer(R"({"inputs":[{"name":"IN0","shape":[3],"datatype":"FP32","data":[1,3,2]}],)"
            R"("outputs":[{"name":"OUT0","parameters":{"classification":2}}]})");
  EXPECT_EQ(reply.body,
            R"({"model_name":"m","model_version":"3","outputs":[{"name":"OUT0",)"
            R"("datatype":"BYTES","shape":[2],"data":["3.000000:1:one","2.000000:2"]}]})");
}

TEST_F(ApiTest, CompressesAndInflates) {
  const std::string json(kFloats);
  iovec part{const_cast<char*>(json.data()), json.size()};
  for (const auto& [coding, name] : {std::pair(net::Compression::kGzip, "gzip"),
                                     std::pair(net::Compression::kDeflate, "deflate")}) {
    const auto body = net::Compress(coding, {&part, 1});
    const Reply reply = client_->Ask(
        "POST", "/v2/models/m/infer", body->data,
        "Content-Encoding: " + std::string(name) + "\r\nAccept-Encoding: " + name + "\r\n");
    ASSERT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.Has("Content-Encoding: " + std::string(name) + "\r\n"));
    EXPECT_EQ(net::Decompress(reply.body, {})->data, Infer(kFloats).body);
  }
  const Reply reply = Infer(kFloats, "", "Content-Encoding: br\r\n");
  EXPECT_EQ(reply.status, 501);
  EXPECT_EQ(reply.body, R"({"error":"Unsupported compression type"})");
  EXPECT_TRUE(reply.Has("Accept-Encoding: gzip, deflate\r\n"));
}

TEST_F(ApiTest, SaysWhichFlagBoundsABodyThatGrows) {
  std::string spaces(100'001, ' ');
  const iovec part{spaces.data(), spaces.size()};
  const auto body = net::Compress(net::Compression::kGzip, {&part, 1});
  const Reply reply =
      client_->Ask("POST", "/v2/models/m/infer", body->data, "Content-Encoding: gzip\r\n");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(
      reply.body,
      R"({"error":"Decompressed data size exceeds the maximum allowed value of 100000 bytes. )"
      R"(Use --http-max-input-size to increase the limit."})");
}

TEST_F(ApiTest, RefusesBadHeaderLengths) {
  const auto error = [&](std::string_view value) {
    return client_
        ->Ask("POST", "/v2/models/m/infer", "{}",
              "Inference-Header-Content-Length: " + std::string(value) + "\r\n")
        .body;
  };
  EXPECT_EQ(error("3"), R"({"error":"inference header size should be in range (0, 2), got: 3"})");
  EXPECT_EQ(error("-1"), R"({"error":"inference header size should be in range (0, 2), got: -1"})");
  EXPECT_EQ(error("x"), R"({"error":"Unable to parse Inference-Header-Content-Length, got: x"})");
  EXPECT_EQ(error("2147483648"),
            R"({"error":"Unable to parse Inference-Header-Content-Length, value is out of range )"
            R"([ -2147483648, 2147483647 ], got: 2147483648"})");
}

TEST_F(ApiTest, KeepsTheConnectionAfterEveryError) {
  EXPECT_EQ(Infer("{").status, 500);
  EXPECT_EQ(client_->Ask("GET", "/nothing").body, R"({"error":"Not Found"})");
  const Reply method = client_->Ask("DELETE", "/v2/models/m/infer");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.body, R"({"error":"Method Not Allowed"})");
  EXPECT_TRUE(method.Has("Allow: POST\r\n"));
  EXPECT_EQ(client_->Ask("POST", "/v2/models/x/infer").body,
            R"({"error":"Request for unknown model: 'x' is not found"})");
  EXPECT_EQ(client_->Ask("POST", "/v2/models/m/generate").status, 500);
  const Reply large = client_->Ask("POST", "/v2/models/m/infer", std::string(100'001, ' '));
  EXPECT_EQ(large.status, 400);
  EXPECT_EQ(large.body,
            R"({"error":"request JSON size of 100001 bytes exceeds the maximum allowed input size )"
            R"(of 100000 bytes. Use --http-max-input-size to increase the limit."})");
  EXPECT_EQ(Infer(kFloats).status, 200);
}

TEST_F(ApiTest, DescribesServerAndModels) {
  EXPECT_EQ(client_->Ask("GET", "/v2").body,
            R"({"name":"triton","version":"2.73.0","extensions":["classification","sequence"]})");
  EXPECT_EQ(client_->Ask("GET", "/v2/health/live").body, "");
  EXPECT_EQ(client_->Ask("GET", "/v2/models/m/ready").status, 200);
  service_.is_ready = false;
  EXPECT_EQ(client_->Ask("GET", "/v2/health/ready").status, 400);
  const Reply ready = client_->Ask("GET", "/v2/models/m/ready");
  EXPECT_EQ(ready.status, 400);
  EXPECT_EQ(ready.body, R"({"error":"Model version not ready"})");
  EXPECT_EQ(client_->Ask("GET", "/v2/models/m").body,
            R"({"name":"m","versions":["1","3"],"platform":"p","inputs":[{"name":"IN0",)"
            R"("datatype":"FP32","shape":[-1,16]}],"outputs":[]})");
  EXPECT_TRUE(client_->Ask("GET", "/v2/models/m/config").body.starts_with(R"({"name":"m",)"));
}

TEST_F(ApiTest, GivesReasonsForHealthToThoseWhoAskForThem) {
  service_.checks = {{.name = "reactors", .problems = {}}};
  const std::string_view good = R"({"live":true,"checks":[{"name":"reactors","ok":true}]})";
  EXPECT_EQ(client_->Ask("GET", "/v2/health/live?verbose").body, good);
  EXPECT_EQ(client_->Ask("GET", "/v2/health/live?a=b&verbose=true").body, good);
  EXPECT_EQ(client_->Ask("GET", "/v2/health/live?verbose=false&verbosely").body, "");
  service_.is_ready = false;
  service_.checks = {{.name = "reactors", .problems = {}},
                     {.name = "models", .problems = {"'a' is \"gone\"", "b"}}};
  for (const char* const path : {"/v2/health/ready?verbose", "/v2/models/m/ready?verbose=1"}) {
    const Reply reply = client_->Ask("GET", path);
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.body, R"({"ready":false,"checks":[{"name":"reactors","ok":true},)"
                          R"({"name":"models","ok":false,"problems":["'a' is \"gone\"","b"]}]})");
  }
  EXPECT_EQ(client_->Ask("GET", "/v2/models/x/ready?verbose").status, 404);
  EXPECT_EQ(client_->Ask("GET", "/v2/health/ready").body, "");
}

TEST_F(ApiTest, ListsTheRepository) {
  EXPECT_EQ(client_->Ask("POST", "/v2/repository/index").body,
            R"([{"name":"m","version":"3","state":"READY"},{"name":"bad","version":"1",)"
            R"("state":"UNAVAILABLE","reason":"broken"},{"name":"never"}])");
  EXPECT_EQ(client_->Ask("POST", "/v2/repository/index", R"({"ready":true})").body,
            R"([{"name":"m","version":"3","state":"READY"}])");
  const Reply deep =
      client_->Ask("POST", "/v2/repository/index",
                   "{\"ready\":" + std::string(45'000, '[') + std::string(45'000, ']') + "}");
  EXPECT_EQ(deep.status, 400);
  EXPECT_EQ(deep.body, R"({"error":"Invalid value for 'ready': expected a boolean"})");
}

TEST_F(ApiTest, LoadsAndUnloadsModels) {
  const auto ask = [&](std::string_view path, std::string_view body = "") {
    const Reply reply = client_->Ask("POST", "/v2/repository/" + std::string(path), body);
    return std::to_string(reply.status) + " " + reply.body;
  };
  EXPECT_EQ(ask("models/m/load"), "200 ");
  EXPECT_EQ(ask("models/x/load"), R"(500 {"error":"failed to load 'x'"})");
  EXPECT_EQ(ask("models/m/load", R"({"parameters":{"config":"{}","file:1/a":"QUI=","file:b":""}})"),
            "200 ");
  EXPECT_EQ(ask("models/m/unload"), "200 ");
  EXPECT_EQ(ask("models/m/unload", R"({"parameters":{"unload_dependents":true}})"), "200 ");
  EXPECT_EQ(service_.operations,
            (std::vector<std::string>{"load m", "load x", "load m config={} file:1/a=AB file:b=",
                                      "unload m", "unload m dependents"}));
  // None of these requests reaches the service.
  service_.operations.clear();
  EXPECT_EQ(ask("r/models/m/load"),
            R"(501 {"error":"'repository_name' specification is not supported"})");
  EXPECT_EQ(ask("models/m/load", R"({"parameters":{"x":"y"}})"),
            R"(500 {"error":"unexpected error on creating Triton parameter"})");
  EXPECT_EQ(ask("models/m/load", R"({"parameters":{"config":{}}})"),
            R"(500 {"error":"attempt to access JSON non-string as string"})");
  EXPECT_EQ(ask("models/m/load", R"({"parameters":[]})"),
            R"(500 {"error":"attempt to get members for non-object"})");
  EXPECT_EQ(ask("models/m/unload", R"({"parameters":{"unload_dependents":"x"}})"),
            R"(500 {"error":"Unable to parse 'unload_dependents': attempt to access JSON )"
            R"(non-boolean as boolean"})");
  // S17: a body beyond the limit is not even read.
  EXPECT_TRUE(ask("models/m/load", std::string(100'001, ' '))
                  .starts_with(R"(400 {"error":"request JSON size of 100001 bytes exceeds)"));
  // S18
  EXPECT_TRUE(
      ask("models/m/load", "{\"parameters\":" + std::string(45'000, '[')).starts_with("500 "));
  EXPECT_TRUE(service_.operations.empty());
}

TEST_F(ApiTest, WantsExactlyOneResponse) {
  service_.on_infer = [](core::RequestPtr request) {
    core::ResponseSink& sink = request->sink();
    sink.Send(Echo(*request), false);
    core::ResponsePtr last = Echo(*request);
    request.reset();
    sink.Send(std::move(last), true);
  };
  const Reply two = Infer(kFloats);
  EXPECT_EQ(two.status, 500);
  EXPECT_EQ(two.body, R"({"error":"expected a single response, got 2"})");
  service_.on_infer = [](core::RequestPtr request) {
    core::ResponseSink& sink = request->sink();
    const core::RequestRef keep(*request);
    request.reset();
    sink.Send(nullptr, true);
  };
  EXPECT_EQ(Infer(kFloats).body, R"({"error":"expected a single response, got 0"})");
  service_.on_infer = [](core::RequestPtr request) {
    core::ResponseSink& sink = request->sink();
    sink.Send(Echo(*request), false);
    core::ResponsePtr response = Echo(*request);
    request.reset();
    sink.Send(nullptr, true);
  };
  EXPECT_EQ(Infer(kFloats).status, 200) << "the end may come by itself";
  // A request that is dropped without a last response gets a reply all the same.
  service_.on_infer = [](core::RequestPtr request) {
    core::ResponseSink& sink = request->sink();
    core::ResponsePtr response = Echo(*request);
    request.reset();
    sink.Send(std::move(response), false);
  };
  EXPECT_EQ(Infer(kFloats).body,
            R"({"error":"the request was released without its last response"})");
  service_.on_infer = [](core::RequestPtr request) { request.reset(); };
  EXPECT_EQ(Infer(kFloats).status, 500);
}

// A backend that executes requests together keeps the memory of all of them until it has the last
// response.
TEST_F(ApiTest, ARequestWhoseReplyIsSentLeavesItsPlaceToTheNext) {
  core::Budgets budgets{{.requests = 1, .requests_per_model = 1}};
  FakeService service(MakeModel({DataType::kFp32}));
  std::vector<core::RequestRef> kept;
  std::atomic<bool> ends_apart{false};
  service.on_infer = [&](core::RequestPtr request) {
    kept.emplace_back(*request);
    core::ResponsePtr response = Echo(*request);
    if (!ends_apart) return core::Complete(std::move(request), std::move(response));
    request->sink().Send(std::move(response), false);
    request->sink().Send(nullptr, true);
  };
  ApiHandler handler({.budgets = &budgets}, pool_, service, rounds_);
  auto server =
      std::move(*http1::HttpServer::Start({.listener = {.address = "127.0.0.1"}}, pool_, handler));
  Client client(server->port());
  for (const bool apart : {false, true}) {
    ends_apart = apart;
    for (const std::string action : {"infer", "generate", "generate_stream"}) {
      for (int i = 0; i < 2; ++i) {
        const Reply reply = client.Ask("POST", "/v2/models/m/" + action,
                                       action == "infer" ? kFloats : R"({"IN0":[1]})");
        EXPECT_EQ(reply.status, 200) << action << ' ' << apart << ' ' << reply.body;
      }
    }
  }
  EXPECT_EQ(budgets.requests.used(), 0u);
  EXPECT_EQ(service.model().request_count(), 0u);
  client.Close();
  server.reset();
  kept.clear();
}

TEST_F(ApiTest, ReportsExecutionErrorsWithTheirStatus) {
  service_.on_infer = [](core::RequestPtr request) {
    core::CompleteWithPrefixedError(std::move(request),
                                    base::UnavailableError("Exceeds maximum queue size"));
  };
  const Reply reply = Infer(kFloats);
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.body, R"({"error":"[request id: 7] Exceeds maximum queue size"})");
}

TEST_F(ApiTest, RespondsFromOtherThreadsWhileTheNextRequestArrives) {
  std::vector<std::thread> threads;
  base::Mutex mutex;
  service_.on_infer = [&](core::RequestPtr request) {
    base::MutexLock lock(mutex);
    threads.emplace_back([request = request.release()] {
      core::RequestPtr owned(request);
      core::ResponseSink& sink = owned->sink();
      core::ResponsePtr response = Echo(*owned);
      sink.Send(std::move(response), true);
    });
  };
  for (int i = 0; i < 200; ++i) {
    const std::string value = std::to_string(i) + ".0";
    const Reply reply = Infer(R"({"inputs":[{"name":"IN0","shape":[1],"datatype":"FP32","data":[)" +
                              value + "]}]}");
    ASSERT_NE(reply.body.find("[" + value + "]"), std::string::npos) << reply.body;
  }
  base::MutexLock lock(mutex);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ApiTest, CancelsWhenTheClientLeaves) {
  std::promise<void> received;
  std::promise<void> cancelled;
  core::RequestPtr waiting;
  service_.on_infer = [&](core::RequestPtr request) {
    waiting = std::move(request);
    received.set_value();
  };
  service_.on_cancel = [&](core::Request& request) {
    EXPECT_EQ(&request, waiting.get());
    cancelled.set_value();
  };
  client_->Send("POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                std::to_string(kFloats.size()) + "\r\n\r\n" + std::string(kFloats));
  received.get_future().wait();
  client_->Close();
  cancelled.get_future().wait();
  EXPECT_TRUE(waiting->is_cancelled());
  core::CompleteWithPrefixedError(std::move(waiting), base::CancelledError("cancelled"));
}

TEST_F(ApiTest, PrintsStatisticsWithEveryField) {
  const Reply reply = client_->Ask("GET", "/v2/models/m/stats");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body,
            R"({"model_stats":[{"name":"m","version":"1","last_inference":7,"inference_count":3,)"
            R"("execution_count":2,"inference_stats":{"success":{"count":2,"ns":90},)"
            R"("fail":{"count":0,"ns":0},"queue":{"count":0,"ns":0},)"
            R"("compute_input":{"count":0,"ns":0},"compute_infer":{"count":0,"ns":0},)"
            R"("compute_output":{"count":0,"ns":0},"cache_hit":{"count":0,"ns":0},)"
            R"("cache_miss":{"count":0,"ns":0}},"response_stats":{"0":{)"
            R"("compute_infer":{"count":1,"ns":10},"compute_output":{"count":1,"ns":5},)"
            R"("success":{"count":1,"ns":15},"fail":{"count":0,"ns":0},)"
            R"("empty_response":{"count":0,"ns":0},"cancel":{"count":0,"ns":0}}},)"
            R"("batch_stats":[{"batch_size":2,)"
            R"("compute_input":{"count":0,"ns":0},"compute_infer":{"count":1,"ns":40},)"
            R"("compute_output":{"count":0,"ns":0}}],"memory_usage":[]}]})");
  EXPECT_EQ(client_->Ask("GET", "/v2/models/none/stats").body,
            R"({"error":"requested model 'none' is not available"})");
}

class DecoupledApiTest : public ApiTest {
 protected:
  DecoupledApiTest() : ApiTest(true) {}
};

TEST_F(DecoupledApiTest, RefusesDecoupledModels) {
  const Reply reply = Infer(kFloats);
  EXPECT_EQ(reply.status, 501);
  EXPECT_EQ(
      reply.body,
      R"({"error":"HTTP end point doesn't support models with decoupled transaction policy"})");
}

}  // namespace
}  // namespace nereid::http
