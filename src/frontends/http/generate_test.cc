// SPDX-License-Identifier: Apache-2.0
// The generate extension: tensors and parameters from keys, replies, and streams whose clients read
// slowly or leave.
#include <cstring>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "base/no_wait.h"
#include "http/api_handler.h"
#include "http/generate_request.h"
#include "http/generate_response.h"
#include "http/load_header.h"
#include "http/testing/client.h"
#include "http/testing/fake_service.h"

namespace nereid::http {
namespace {

using tensor::DataType;

class NoSink final : public core::ResponseSink {
  void Send(core::ResponsePtr /*response*/, bool /*is_final*/) override {}
};

core::ModelTensor Tensor(std::string name, DataType type, tensor::Shape dims) {
  core::ModelTensor tensor;
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.dims = tensor.model_dims = std::move(dims);
  return tensor;
}

std::unique_ptr<core::Model> ModelOf(std::vector<core::ModelTensor> inputs,
                                     int64_t max_batch_size = 0) {
  core::ModelOptions options;
  options.name = "m";
  options.version = 3;
  options.config = std::make_shared<config::ModelConfig>();
  options.max_batch_size = max_batch_size;
  options.inputs = std::move(inputs);
  return std::make_unique<core::Model>(std::move(options));
}

class ReadGenerateTest : public testing::Test {
 protected:
  base::Status Read(std::string_view json) {
    request_ = core::Request::Create(sink_);
    request_->model = Pin(*model_);
    return ReadGenerateRequest(json, 10'000, *request_);
  }
  void Serve(std::unique_ptr<core::Model> model) {
    request_.reset();
    model_ = std::move(model);
  }
  // Describes an input as "IN [1,2] 8": its name, its shape and the bytes of its only chunk.
  std::string Input(size_t i) const {
    const core::RequestInput& input = request_->inputs.at(i);
    return std::string(input.name) + " " + tensor::ToString(input.shape) + " " +
           std::to_string(input.byte_size);
  }
  void ExpectError(std::string_view json, base::StatusCode code, std::string_view message) {
    const base::Status status = Read(json);
    ASSERT_FALSE(status.ok()) << json;
    EXPECT_EQ(status.message(), message) << json;
    EXPECT_EQ(status.code(), code) << json;
  }

  std::unique_ptr<core::Model> model_ = ModelOf({Tensor("TEXT", DataType::kBytes, {1, 1}),
                                                 Tensor("IDS", DataType::kInt32, {-1, 2, -1}),
                                                 Tensor("HALF", DataType::kFp16, {-1})});
  NoSink sink_;
  core::RequestPtr request_;
};

constexpr auto kInvalid = base::StatusCode::kInvalidArgument;
constexpr auto kInternal = base::StatusCode::kInternal;

TEST_F(ReadGenerateTest, PoursScalarsAndListsIntoTheShapesOfInputs) {
  ASSERT_TRUE(Read(R"({"TEXT":"abc","IDS":[1,2,3,4,5,6]})").ok());
  EXPECT_EQ(Input(0), "TEXT [1,1] 7");
  EXPECT_EQ(Input(1), "IDS [1,2,3] 24");
  ASSERT_TRUE(Read(R"({"IDS":[]})").ok());
  EXPECT_EQ(Input(0), "IDS [1,2,0] 0");
  Serve(ModelOf({Tensor("X", DataType::kFp32, {3})}, 8));
  ASSERT_TRUE(Read(R"({"X":[1,2,3,4,5,6]})").ok());
  EXPECT_EQ(Input(0), "X [2,3] 24");
}

TEST_F(ReadGenerateTest, MakesEverythingElseAParameter) {
  ASSERT_TRUE(Read(R"({"id":"7","a":"b","n":-1,"parameters":{"f":true,"d":1.5,"TEXT":"x"}})").ok());
  EXPECT_EQ(request_->id, "7");
  ASSERT_EQ(request_->parameters.size(), 5u);
  EXPECT_EQ(std::get<std::string_view>(request_->parameters[0].value), "7");
  EXPECT_EQ(std::get<std::string_view>(request_->parameters[1].value), "b");
  EXPECT_EQ(std::get<int64_t>(request_->parameters[2].value), -1);
  EXPECT_EQ(std::get<bool>(request_->parameters[3].value), true);
  EXPECT_EQ(std::get<double>(request_->parameters[4].value), 1.5);
  EXPECT_EQ(Input(0), "TEXT [1,1] 5");
}

TEST_F(ReadGenerateTest, RefusesInTritonsWords) {
  ExpectError("[]", kInternal, "attempt to get members for non-object");
  ExpectError("", kInternal,
              "failed to parse the request JSON buffer: The document is empty. at 0");
  ExpectError(R"({"id":1})", kInternal,
              "Unable to parse 'id': attempt to access JSON non-string as string");
  ExpectError(R"({"TEXT":1})", kInternal,
              "Unable to parse JSON bytes array: attempt to access JSON non-string as string");
  ExpectError(
      R"({"IDS":["a",2]})", kInternal,
      "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer");
  for (const char* json : {R"({"TEXT":["a","b"]})", R"({"IDS":[1,2,3]})", R"({"TEXT":[]})"}) {
    const std::string name = std::string(json).substr(2, std::string(json).find('"', 2) - 2);
    ExpectError(json, kInvalid,
                "The schema can not convert input '" + name + "' to tensor with proper shape");
  }
  ExpectError(R"({"HALF":1})", kInvalid,
              "receiving FP16 data via JSON is not supported. Please use the binary data format "
              "for input HALF");
  ExpectError(R"({"o":{"a":1}})", kInvalid,
              "parameter 'o' has invalid type. It should be either 'int', 'bool', or 'string'.");
  ExpectError(R"({"parameters":{"parameters":{}}})", kInvalid,
              "Converting keyword: 'parameters': parameter 'parameters' has invalid type. It "
              "should be either 'int', 'bool', or 'string'.");
  ExpectError(R"({"parameters":1})", kInternal,
              "Expected JSON object for keyword: 'parameters': attempt to access JSON non-object "
              "as object");
  ExpectError(R"({"TEXT":"a","TEXT":"b"})", kInvalid,
              "[request id: <id_unknown>] input 'TEXT' already exists in request");
  Serve(ModelOf({Tensor("parameters", DataType::kInt32, {1})}));
  ExpectError(R"({"parameters":1})", kInvalid,
              "Keyword 'parameters' for nested schema also given as input tensor name");
}

// S17, S18, S29
TEST_F(ReadGenerateTest, BoundsSizesDepthsAndNames) {
  const auto nested = [](const std::string& value, size_t depth) {
    return std::string(depth, '[') + value + std::string(depth, ']');
  };
  EXPECT_TRUE(Read("{\"TEXT\":" + nested("\"a\"", 50) + "}").ok());
  ExpectError("{\"TEXT\":" + nested("\"a\"", 120) + "}", kInvalid,
              "JSON nesting depth exceeds maximum allowed limit (100)");
  ExpectError("{\"IDS\":" + nested("1,2", 120) + "}", kInvalid,
              "The schema can not convert input 'IDS' to tensor with proper shape");
  EXPECT_FALSE(Read("{\"x\":" + std::string(9'000, '[') + "}").ok());
  ExpectError(R"({"x":")" + std::string(10'000, 'a') + "\"}", kInvalid,
              "request JSON size of 10008 bytes exceeds the maximum allowed input size of 10000 "
              "bytes. Use --http-max-input-size to increase the limit.");
  std::string ids = "{\"TEXT\":\"" + std::string(1000, 'a') + "\",\"IDS\":[1";
  for (int i = 1; i < 2400; ++i) ids += ",1";
  ExpectError(ids + "]}", kInvalid,
              "request size of 1004 bytes with input 'IDS' of size 9600 bytes exceeds the maximum "
              "allowed input size of 10000. Use --http-max-input-size to increase the limit.");
  ExpectError(R"({"triton_enable_empty_final_response":true})", kInvalid,
              "parameter keys starting with 'triton_' are reserved for Triton usage and should not "
              "be specified.");
  std::string many = "{\"a\":1";
  for (int i = 0; i < 1024; ++i) many += ",\"\":1";
  ExpectError(many + "}", kInvalid, "a request may have at most 1024 parameters");
}

TEST_F(ReadGenerateTest, WritesOutputsBesideTheFieldsOfTheRequest) {
  ASSERT_TRUE(Read(R"({"id":"7"})").ok());
  const core::ResponsePtr response = core::Response::Create(*request_);
  const auto add = [&](std::string_view name, tensor::Shape shape, std::vector<int32_t> values) {
    core::ResponseOutput* const output = response->AddOutput(name, DataType::kInt32, shape.dims());
    ASSERT_TRUE(response->AllocateBuffer(*output, values.size() * 4, {}, false).ok());
    if (!values.empty()) std::memcpy(output->data, values.data(), values.size() * 4);
  };
  add("z", {1, 1}, {5});
  add("list", {2, 1}, {1, 2});
  add("none", {0, 3}, {});
  add("scalar", {}, {9});
  add("id", {1}, {4});  // the request's own id precedes it
  response->AddParameter({.name = "list", .value = int64_t{3}});
  response->AddParameter({.name = "p", .value = true});
  std::string json;
  ASSERT_TRUE(AppendGenerateResponse(*response, json).ok());
  EXPECT_EQ(json, R"({"id":"7","list":3,"model_name":"m","model_version":"3","none":[],"p":true,)"
                  R"("scalar":9,"z":5})");
}

TEST(LoadHeader, ComesFromTheMetricsOfTheCache) {
  FakeService service(MakeModel({DataType::kFp32}));
  service.plugin_metrics =
      "# TYPE nv_trt_llm_kv_cache_block_metrics gauge\n"
      "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"used\",model=\"m\"} 5\n"
      "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"max\",model=\"m\"} 10\n"
      "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"tokens_per\",model=\"m\"} 64\n";
  EXPECT_EQ(MakeLoadHeader("text", service),
            "endpoint-load-metrics: TEXT named_metrics.kv_cache_utilization=0.500000, "
            "named_metrics.max_token_capacity=640, named_metrics.requests_in_flight=0, "
            "named_metrics.queue_oldest_seconds=0.000000\r\n");
  EXPECT_EQ(MakeLoadHeader("json", service),
            "endpoint-load-metrics: JSON {\"named_metrics\":{\"kv_cache_utilization\":0.5,"
            "\"max_token_capacity\":640,\"requests_in_flight\":0,"
            "\"queue_oldest_seconds\":0.0}}\r\n");
  EXPECT_EQ(MakeLoadHeader("xml", service), "");
}

// A decoupled model whose requests the test keeps, to respond to them.
class GenerateStreamTest : public testing::Test {
 protected:
  GenerateStreamTest() {
    service_.on_infer = [this](core::RequestPtr request) {
      request_.set_value(std::move(request));
    };
    service_.on_cancel = [this](core::Request&) {
      base::MutexLock lock(mutex_);
      is_cancelled_ = true;
      changed_.NotifyAll();
    };
    http1::HttpServerOptions options;
    options.listener.address = "127.0.0.1";
    server_ = std::move(*http1::HttpServer::Start(options, pool_, handler_));
    client_ = std::make_unique<Client>(server_->port());
  }
  core::RequestPtr Post(std::string_view action) {
    const std::string_view body = R"({"IN0":[1]})";
    client_->Send("POST /v2/models/m/" + std::string(action) +
                  " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
                  "\r\n\r\n" + std::string(body));
    core::RequestPtr request = request_.get_future().get();
    request->times.batch_start_ns = 1;  // as if an instance had taken it
    return request;
  }
  void WaitForCancel() {
    base::MutexLock lock(mutex_);
    while (!is_cancelled_) changed_.Wait(mutex_);
  }
  // Makes one response with an output of so many bytes.
  core::ResponsePtr Large(core::Request& request, size_t bytes) {
    core::ResponsePtr response = core::Response::Create(request);
    core::ResponseOutput* const output =
        response->AddOutput("OUT0", DataType::kBool, {{static_cast<int64_t>(bytes)}});
    EXPECT_TRUE(response->AllocateBuffer(*output, bytes, {}, true).ok());
    return response;
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  bool is_cancelled_ NEREID_GUARDED_BY(mutex_) = false;
  std::promise<core::RequestPtr> request_;
  FakeService service_{MakeModel({DataType::kFp32}, 0, true)};
  net::ReactorPool pool_{1};
  common::RoundExecutors rounds_{pool_};
  ApiHandler handler_{{.stream_limits = {.longest_pause = std::chrono::milliseconds(200),
                                         .most_waiting_bytes = size_t{8} << 20}},
                      pool_,
                      service_,
                      rounds_};
  std::unique_ptr<http1::HttpServer> server_;
  std::unique_ptr<Client> client_;
};

constexpr std::string_view kEvent =
    "data: {\"OUT0\":1.0,\"model_name\":\"m\",\"model_version\":\"3\"}\n\n";

TEST_F(GenerateStreamTest, SendsEventsAsTheyComeAndKeepsTheConnection) {
  core::RequestPtr request = Post("generate_stream");
  core::ResponseSink& sink = request->sink();
  sink.Send(Echo(*request), false);
  const std::string head = client_->ReadHead();
  EXPECT_NE(head.find("HTTP/1.1 200 OK"), std::string::npos);
  EXPECT_NE(head.find("Content-Type: text/event-stream; charset=utf-8\r\n"), std::string::npos);
  EXPECT_EQ(client_->ReadChunk(), kEvent);
  core::ResponsePtr failed = core::Response::Create(*request);
  failed->SetError(base::UnavailableError("later"));
  sink.Send(std::move(failed), false);
  EXPECT_EQ(client_->ReadChunk(), "data: {\"error\":\"later\"}\n\n");
  sink.Send(nullptr, true);
  EXPECT_EQ(client_->ReadChunk(), "");
  EXPECT_TRUE(client_->is_whole);
  request.reset();
  EXPECT_EQ(client_->Ask("GET", "/v2/health/live").status, 200);
}

TEST_F(GenerateStreamTest, TakesItsStatusFromTheFirstResponse) {
  core::RequestPtr request = Post("generate_stream");
  core::ResponsePtr failed = core::Response::Create(*request);
  failed->SetError(base::UnavailableError("at once"));
  request->sink().Send(std::move(failed), true);
  const Reply reply = client_->Read();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.body, "data: {\"error\":\"at once\"}\n\n");
}

TEST_F(GenerateStreamTest, EndsAnEmptyStreamWithoutAnEvent) {
  core::RequestPtr request = Post("generate_stream");
  request->sink().Send(nullptr, true);
  const Reply reply = client_->Read();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "");
  EXPECT_TRUE(client_->is_whole);
}

TEST_F(GenerateStreamTest, CancelsTheRequestWhenItsClientDisconnects) {
  core::RequestPtr request = Post("generate_stream");
  request->sink().Send(Echo(*request), false);
  client_->Close();
  WaitForCancel();
  request->sink().Send(Echo(*request), false);
  request->sink().Send(nullptr, true);
}

TEST_F(GenerateStreamTest, RespondsToGenerateWithTheOnlyResponse) {
  core::RequestPtr request = Post("generate");
  core::ResponseSink& sink = request->sink();
  sink.Send(Echo(*request), false);
  sink.Send(nullptr, true);
  const Reply reply = client_->Read();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"OUT0":1.0,"model_name":"m","model_version":"3"})");
}

TEST_F(GenerateStreamTest, CancelsGenerateAtTheSecondResponse) {
  core::RequestPtr request = Post("generate");
  core::ResponseSink& sink = request->sink();
  sink.Send(Echo(*request), false);
  sink.Send(Echo(*request), false);
  WaitForCancel();
  sink.Send(Echo(*request), true);
  const Reply reply = client_->Read();
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(
      reply.body,
      "{\"error\":\"generate expects model to produce exactly 1 response, use generate stream "
      "for model that generates various number of responses\"}");
}

TEST_F(GenerateStreamTest, RespondsToARequestThatIsDroppedWithoutAResponse) {
  core::RequestPtr request = Post("generate_stream");
  client_->Close();
  WaitForCancel();
  request.reset();
}

// S23
TEST_F(GenerateStreamTest, HoldsTheModelBackUntilASlowClientReads) {
  core::RequestPtr request = Post("generate_stream");
  core::ResponseSink& sink = request->sink();
  constexpr int kResponses = 40;
  std::thread producer([&] {
    for (int i = 0; i < kResponses; ++i) sink.Send(Large(*request, 200'000), false);
    sink.Send(nullptr, true);
  });
  client_->ReadHead();
  size_t events = 0;
  while (!client_->ReadChunk().empty()) ++events;
  producer.join();
  EXPECT_EQ(events, static_cast<size_t>(kResponses));
  EXPECT_TRUE(client_->is_whole);
}

// S23
TEST_F(GenerateStreamTest, GivesUpAClientThatDoesNotRead) {
  core::RequestPtr request = Post("generate_stream");
  core::ResponseSink& sink = request->sink();
  // More than sockets and the buffer can hold, if it were kept.
  for (int i = 0; i < 100 && !request->is_cancelled(); ++i) {
    sink.Send(Large(*request, 200'000), false);
  }
  EXPECT_TRUE(request->is_cancelled());
  sink.Send(nullptr, true);
  request.reset();
  client_->ReadHead();
  while (!client_->ReadChunk().empty()) continue;
  EXPECT_FALSE(client_->is_whole);
}

TEST_F(GenerateStreamTest, SaysToSendersThatMustNotWaitThatTheyWould) {
  core::RequestPtr request = Post("generate_stream");
  core::ResponseSink& sink = request->sink();
  int count = 0;
  {
    const base::NoWaitScope no_wait;
    for (; count < 100 && !sink.WouldWait(); ++count) sink.Send(Large(*request, 200'000), false);
    sink.AwaitRoom(*request);  // does not wait here
  }
  EXPECT_LT(count, 100);
  EXPECT_FALSE(request->is_cancelled());
  client_->ReadHead();
  for (int i = 0; i < count; ++i) EXPECT_FALSE(client_->ReadChunk().empty());
  while (sink.WouldWait()) sink.AwaitRoom(*request);
  sink.Send(nullptr, true);
  EXPECT_EQ(client_->ReadChunk(), "");
  EXPECT_TRUE(client_->is_whole);
}

TEST_F(GenerateStreamTest, GivesUpNoResponseForItsSize) {
  core::RequestPtr request = Post("generate_stream");
  {
    const base::NoWaitScope no_wait;
    request->sink().Send(Large(*request, 4'000'000), false);  // much more than may pile up
  }
  request->sink().Send(nullptr, true);
  client_->ReadHead();
  EXPECT_GT(client_->ReadChunk().size(), size_t{16} << 20);
  EXPECT_EQ(client_->ReadChunk(), "");
  EXPECT_TRUE(client_->is_whole);
}

// S23: nothing may wait on a reactor.
TEST_F(GenerateStreamTest, GivesUpWhatPilesUpOnAReactor) {
  core::RequestPtr request = Post("generate_stream");
  std::promise<bool> was_cancelled;
  pool_.reactor(0).Post([&] {
    for (int i = 0; i < 100 && !request->is_cancelled(); ++i) {
      request->sink().Send(Large(*request, 200'000), false);
    }
    const bool is_cancelled = request->is_cancelled();
    request->sink().Send(nullptr, true);
    request.reset();
    was_cancelled.set_value(is_cancelled);
  });
  EXPECT_TRUE(was_cancelled.get_future().get());
}

}  // namespace
}  // namespace nereid::http
