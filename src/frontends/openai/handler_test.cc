// SPDX-License-Identifier: Apache-2.0
// The routes over a real socket, with a service whose model says what a test wants.
#include "openai/handler.h"

#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "core/response.h"
#include "http/testing/client.h"
#include "http/testing/fake_service.h"

namespace nereid::openai {
namespace {

using tensor::DataType;

config::ModelInput Input(std::string name, DataType type, std::vector<int64_t> dims,
                         bool optional) {
  config::ModelInput input;
  input.name = std::move(name);
  input.data_type = type;
  input.dims = std::move(dims);
  input.optional = optional;
  return input;
}

config::ModelOutput Output(std::string name, DataType type, std::vector<int64_t> dims) {
  config::ModelOutput output;
  output.name = std::move(name);
  output.data_type = type;
  output.dims = std::move(dims);
  return output;
}

template <typename Tensor>
core::ModelTensor TensorOf(const Tensor& tensor) {
  core::ModelTensor made;
  made.name = tensor.name;
  made.type = tensor.data_type;
  made.dims = made.model_dims = tensor::Shape(tensor.dims);
  return made;
}

// The model "m" of this contract, which batches embeddings by two.
std::unique_ptr<core::Model> MakeTextModel(std::string tasks, bool takes_stop,
                                           int64_t max_batch_size) {
  auto config = std::make_shared<config::ModelConfig>();
  config->name = "m";
  config->parameters["openai"] = std::move(tasks);
  config->input = {Input("text_input", DataType::kBytes, {1}, false),
                   Input("max_tokens", DataType::kInt32, {1}, true),
                   Input("tools", DataType::kBytes, {1}, true)};
  if (takes_stop) config->input.push_back(Input("stop", DataType::kBytes, {-1}, true));
  config->output = {Output("text_output", DataType::kBytes, {1}),
                    Output("tool_calls", DataType::kBytes, {1}),
                    Output("completion_tokens", DataType::kInt64, {1}),
                    Output("embedding", DataType::kFp32, {2})};
  core::ModelOptions options;
  options.name = "m";
  options.version = 3;
  options.max_batch_size = max_batch_size;
  options.is_decoupled = true;
  for (const auto& input : config->input) options.inputs.push_back(TensorOf(input));
  for (const auto& output : config->output) options.outputs.push_back(TensorOf(output));
  options.config = std::move(config);
  return std::make_unique<core::Model>(std::move(options));
}

void AddBytes(core::Response& response, const char* name, DataType type, std::vector<int64_t> shape,
              std::string_view bytes) {
  core::ResponseOutput* const output = response.AddOutput(name, type, shape);
  ASSERT_TRUE(response.AllocateBuffer(*output, bytes.size(), {}, false).ok());
  if (!bytes.empty()) std::memcpy(output->data, bytes.data(), bytes.size());
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string Serialized(std::string_view text) {
  return BytesOf<uint32_t>({static_cast<uint32_t>(text.size())}) + std::string(text);
}

core::ResponsePtr TextResponse(core::Request& request, std::string_view text) {
  core::ResponsePtr response = core::Response::Create(request);
  AddBytes(*response, "text_output", DataType::kBytes, {1}, Serialized(text));
  return response;
}

// A model that responds with these pieces, and then with the final flag alone.
std::function<void(core::RequestPtr)> Saying(std::vector<std::string> pieces) {
  return [pieces = std::move(pieces)](core::RequestPtr request) {
    core::ResponseSink& sink = request->sink();
    for (const std::string& piece : pieces) sink.Send(TextResponse(*request, piece), false);
    sink.Send(nullptr, true);
    request.reset();
  };
}

class OpenAiHandlerTest : public testing::Test {
 protected:
  void Serve(std::string tasks, bool takes_stop = false, int64_t max_batch_size = 0) {
    Stop();
    service_ = std::make_unique<http::FakeService>(
        MakeTextModel(std::move(tasks), takes_stop, max_batch_size));
    handler_ =
        std::make_unique<Handler>(http::ApiOptions{.budgets = &budgets_}, *service_, rounds_);
    api_ = std::make_unique<http::ApiHandler>(http::ApiOptions{.openai = handler_.get()}, pool_,
                                              *service_, rounds_);
    server_ =
        std::move(*http1::HttpServer::Start({.listener = {.address = "127.0.0.1"}}, pool_, *api_));
    client_ = std::make_unique<http::Client>(server_->port());
  }
  http::Reply Complete(std::string_view members = "") {
    return client_->Ask("POST", "/v1/completions",
                        R"({"model":"m","prompt":"hi")" + std::string(members) + "}");
  }
  http::Reply Embed(std::string_view input) {
    return client_->Ask("POST", "/v1/embeddings",
                        R"({"model":"m","input":)" + std::string(input) + "}");
  }
  // What uses something goes before it.
  void Stop() {
    client_.reset();
    server_.reset();
    api_.reset();
    handler_.reset();
    service_.reset();
  }
  void TearDown() override { Stop(); }

  core::Budgets budgets_{{.requests = 100, .requests_per_model = 100}};
  net::ReactorPool pool_{1};
  common::RoundExecutors rounds_{pool_};
  std::unique_ptr<http::FakeService> service_;
  std::unique_ptr<Handler> handler_;
  std::unique_ptr<http::ApiHandler> api_;
  std::unique_ptr<http1::HttpServer> server_;
  std::unique_ptr<http::Client> client_;
};

// The part of `text` between two others.
std::string Between(std::string_view text, std::string_view begin, std::string_view end) {
  const size_t from = text.find(begin);
  if (from == std::string_view::npos) return "(none)";
  text.remove_prefix(from + begin.size());
  return std::string(text.substr(0, text.find(end)));
}

TEST_F(OpenAiHandlerTest, JoinsThePiecesOfADecoupledModel) {
  Serve("completions");
  service_->on_infer = Saying({"one ", "two"});
  const http::Reply reply = Complete();
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(Between(reply.body, R"("choices":)", R"(,"usage")"),
            R"([{"index":0,"text":"one two","logprobs":null,"finish_reason":"stop"}])");
  EXPECT_TRUE(reply.Has("\r\nx-request-id: cmpl-")) << reply.head;
}

TEST_F(OpenAiHandlerTest, StreamsPiecesAsEvents) {
  Serve("chat");
  service_->on_infer = Saying({"a", "b"});
  const http::Reply reply =
      client_->Ask("POST", "/v1/chat/completions",
                   R"({"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,)"
                   R"("stream_options":{"include_usage":true}})");
  std::vector<std::string> choices;
  std::string_view rest = reply.body;
  for (size_t at = 0; (at = rest.find("\"choices\":")) != rest.npos;) {
    choices.push_back(Between(rest, "\"choices\":", "}\n\n"));
    rest.remove_prefix(at + 1);
  }
  const std::vector<std::string> expected = {
      R"([{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":null,)"
      R"("finish_reason":null}],"usage":null)",
      R"([{"index":0,"delta":{"content":"b"},"logprobs":null,"finish_reason":null}],"usage":null)",
      R"([{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null)",
      R"([],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0})"};
  EXPECT_EQ(choices, expected);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  EXPECT_TRUE(reply.Has("text/event-stream"));
}

TEST_F(OpenAiHandlerTest, CutsAtAStopSequenceAndCancels) {
  Serve("completions");
  std::promise<void> cancelled;  // after the reply
  service_->on_cancel = [&](core::Request&) { cancelled.set_value(); };
  service_->on_infer = Saying({"one E", "ND two", " three"});
  const http::Reply reply = Complete(R"(,"stop":["END"])");
  EXPECT_EQ(Between(reply.body, "\"text\":", ",\"logprobs\""), "\"one \"");
  cancelled.get_future().get();
}

TEST_F(OpenAiHandlerTest, LeavesStopSequencesToAModelThatTakesThem) {
  Serve("completions", true);
  service_->on_infer = [](core::RequestPtr request) {
    const core::RequestInput* const stop = request->FindInput("stop");
    const std::string seen =
        stop == nullptr ? "none" : tensor::ToString(stop->shape) + std::to_string(stop->byte_size);
    Saying({seen + " END"})(std::move(request));
  };
  EXPECT_EQ(Between(Complete(R"(,"stop":["END","x"])").body, "\"text\":", ",\"logprobs\""),
            "\"[2]12 END\"");
}

TEST_F(OpenAiHandlerTest, GivesFieldsToInputsOfTheirNames) {
  Serve("completions");
  service_->on_infer = [](core::RequestPtr request) {
    int32_t number = 0;
    const core::RequestInput* const input = request->FindInput("max_tokens");
    if (input != nullptr) std::memcpy(&number, input->first.data, sizeof(number));
    Saying({std::to_string(number)})(std::move(request));
  };
  EXPECT_EQ(Between(Complete(R"(,"max_tokens":7)").body, "\"text\":", ","), "\"7\"");
  EXPECT_EQ(Between(Complete(R"(,"seed":7)").body, "\"text\":", ","), "\"0\"");
}

TEST_F(OpenAiHandlerTest, GivesModelsNothingButCharacters) {
  Serve("completions");
  EXPECT_EQ(Complete(R"(,"tools":["\ud83c\udf1e"])").status, 200);
  const http::Reply reply = Complete(R"(,"tools":"\udf1e")");
  EXPECT_EQ(reply.status, 400) << reply.body;
  EXPECT_TRUE(reply.body.find("no character") != std::string::npos) << reply.body;
}

TEST_F(OpenAiHandlerTest, GivesCallsOfToolsTheFormThatClientsKnow) {
  Serve("chat");
  service_->on_infer = [](core::RequestPtr request) {
    core::ResponsePtr response = core::Response::Create(*request);
    AddBytes(*response, "tool_calls", DataType::kBytes, {1},
             Serialized(R"([{"id":"c1","function":{"name":"f","arguments":{"x":1}}}])"));
    core::ResponseSink& sink = request->sink();
    sink.Send(std::move(response), true);
    request.reset();
  };
  const http::Reply reply = client_->Ask(
      "POST", "/v1/chat/completions",
      R"({"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function"}]})");
  EXPECT_EQ(Between(reply.body, "\"message\":", ",\"logprobs\""),
            R"({"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c1",)"
            R"("type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]})");
  EXPECT_EQ(Between(reply.body, "\"finish_reason\":", "}"), "\"tool_calls\"");
}

TEST_F(OpenAiHandlerTest, ReportsErrorsInItsOwnForm) {
  Serve("completions");
  service_->on_infer = [](core::RequestPtr request) {
    core::CompleteWithError(std::move(request), base::InternalError("it broke"));
  };
  http::Reply reply = Complete();
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.body,
            R"({"error":{"message":"it broke","type":"server_error","param":null,"code":null}})");
  EXPECT_EQ(Complete(",\"stream\":true").status, 500);
  reply = client_->Ask("POST", "/v1/completions", R"({"model":"x","prompt":""})");
  EXPECT_EQ(reply.status, 404);
  EXPECT_TRUE(reply.body.ends_with(R"("param":"model","code":"model_not_found"}})")) << reply.body;
  reply = client_->Ask("GET", "/v1/completions");
  EXPECT_EQ(reply.status, 405);
  EXPECT_TRUE(reply.body.starts_with(R"({"error":{"message":"Method Not Allowed")")) << reply.body;
  reply = client_->Ask("POST", "/v1/embeddings", R"({"model":"m","input":"x"})");
  EXPECT_EQ(reply.status, 404) << reply.body;
}

TEST_F(OpenAiHandlerTest, NamesWhatIsWrongWithAContract) {
  Serve("completions,chitchat");
  const http::Reply reply = Complete();
  EXPECT_EQ(reply.status, 500);
  EXPECT_NE(reply.body.find("parameter 'openai' of model 'm': 'chitchat' is not one of"),
            std::string::npos)
      << reply.body;
}

TEST_F(OpenAiHandlerTest, EndsAStreamThatFailsWithAnError) {
  Serve("completions");
  service_->on_infer = [](core::RequestPtr request) {
    core::ResponseSink& sink = request->sink();
    sink.Send(TextResponse(*request, "a"), false);
    core::CompleteWithError(std::move(request), base::InternalError("it broke"));
  };
  const http::Reply reply = Complete(",\"stream\":true");
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.body.ends_with(
      "data: {\"error\":{\"message\":\"it broke\",\"type\":\"server_error\",\"param\":null,"
      "\"code\":null}}\n\ndata: [DONE]\n\n"))
      << reply.body;
}

// A model that gives each text of a batch its length and its number.
void EmbedLengths(core::RequestPtr request, std::vector<size_t>& batches) {
  const core::RequestInput& input = *request->FindInput("text_input");
  std::vector<float> values;
  const std::byte* next = input.first.data;
  for (const std::byte* const end = next + input.byte_size; next < end;) {
    uint32_t length = 0;
    std::memcpy(&length, next, sizeof(length));
    values.push_back(static_cast<float>(length));
    values.push_back(0.5F);
    next += sizeof(length) + length;
  }
  const auto count = static_cast<int64_t>(values.size() / 2);
  batches.push_back(static_cast<size_t>(count));
  core::ResponsePtr response = core::Response::Create(*request);
  AddBytes(*response, "embedding", DataType::kFp32, {count, 2}, BytesOf(values));
  core::ResponseSink& sink = request->sink();
  sink.Send(std::move(response), true);
  request.reset();
}

TEST_F(OpenAiHandlerTest, EmbedsListsInBatches) {
  Serve("embeddings", false, 2);
  std::vector<size_t> batches;
  service_->on_infer = [&](core::RequestPtr request) { EmbedLengths(std::move(request), batches); };
  const http::Reply reply = Embed(R"(["a","bb","ccc"])");
  EXPECT_EQ(reply.body,
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[1.0,0.5]},)"
            R"({"object":"embedding","index":1,"embedding":[2.0,0.5]},)"
            R"({"object":"embedding","index":2,"embedding":[3.0,0.5]}],"model":"m",)"
            R"("usage":{"prompt_tokens":0,"total_tokens":0}})");
  EXPECT_EQ(batches, (std::vector<size_t>{2, 1}));
}

TEST_F(OpenAiHandlerTest, EmbedsManyTextsOneByOneWhereAModelDoesNotBatch) {
  Serve("embeddings");
  std::vector<size_t> batches;
  service_->on_infer = [&](core::RequestPtr request) { EmbedLengths(std::move(request), batches); };
  std::string list = "[\"x\"";
  for (int i = 1; i < 2048; ++i) list += ",\"x\"";
  EXPECT_EQ(Embed(list + "]").status, 200);
  EXPECT_EQ(batches.size(), 2048u);
}

// However many requests a call makes of its texts, and wherever the rules of its model lead them.
TEST_F(OpenAiHandlerTest, CountsACallAsOneRequestOfTheVersionThatServesIt) {
  Serve("embeddings", false, 2);
  const std::unique_ptr<core::Model> canary = MakeTextModel("embeddings", false, 2);
  int directed = 0;
  service_->on_direct = [&](core::Request& request) {
    ++directed;
    ASSERT_TRUE(request.model.is_request());
    core::ModelHandle target = service::Pin(*canary);
    ASSERT_TRUE(target.CountAsRequest(100, 1));
    request.model = std::move(target);
  };
  std::vector<size_t> batches;
  service_->on_infer = [&](core::RequestPtr request) {
    EXPECT_EQ(&*request->model, canary.get());
    EXPECT_EQ(canary->request_count(), 1u);
    EXPECT_EQ(service_->model().request_count(), 0u);
    EmbedLengths(std::move(request), batches);
  };
  EXPECT_EQ(Embed(R"(["a","bb","ccc"])").status, 200);
  EXPECT_EQ(batches, (std::vector<size_t>{2, 1}));
  EXPECT_EQ(directed, 1);
  EXPECT_EQ(canary->request_count(), 0u);
  EXPECT_EQ(budgets_.requests.used(), 0u);
  // The reply may be here before the call has let go of it.
  std::promise<void> drained;
  canary->Close([&] { drained.set_value(); });
  drained.get_future().wait();
}

// Whoever keeps its memory for longer.
TEST_F(OpenAiHandlerTest, ARequestIsInFlightUntilItsReplyIsSent) {
  Serve("completions");
  std::vector<core::RequestRef> kept;
  service_->on_infer = [&](core::RequestPtr request) {
    kept.emplace_back(*request);
    EXPECT_EQ(budgets_.requests.used(), 1u);
    EXPECT_EQ(service_->model().request_count(), 1u);
    if (kept.size() % 2 == 0) return Saying({"a"})(std::move(request));
    core::ResponsePtr response = TextResponse(*request, "a");
    core::Complete(std::move(request), std::move(response));
  };
  for (const char* const members : {"", "", R"(,"stream":true)", R"(,"stream":true)"}) {
    EXPECT_EQ(Complete(members).status, 200);
    EXPECT_EQ(budgets_.requests.used(), 0u);
    EXPECT_EQ(service_->model().request_count(), 0u);
  }
  client_.reset();
  server_.reset();
  kept.clear();
}

// Runs functions on a thread each, and waits for all of them.
class ThreadEach {
 public:
  ~ThreadEach() {
    // A function may still add another.
    while (true) {
      std::thread next;
      {
        base::MutexLock lock(mutex_);
        if (threads_.empty()) return;
        next = std::move(threads_.back());
        threads_.pop_back();
      }
      next.join();
    }
  }
  template <typename F>
  void Run(F function) {
    base::MutexLock lock(mutex_);
    threads_.emplace_back(std::move(function));
  }

 private:
  base::Mutex mutex_;
  std::vector<std::thread> threads_ NEREID_GUARDED_BY(mutex_);
};

TEST_F(OpenAiHandlerTest, EmbedsWhateverThreadsRespond) {
  Serve("embeddings");
  std::vector<size_t> batches;
  ThreadEach threads;
  service_->on_infer = [&](core::RequestPtr request) {
    // Every third at once, by the thread that submits it.
    if (batches.size() % 3 == 0) return EmbedLengths(std::move(request), batches);
    threads.Run([&batches, request = std::move(request)]() mutable {
      EmbedLengths(std::move(request), batches);
    });
  };
  std::string list = "[\"\"";
  std::string expected = "0.0";
  for (int i = 1; i < 200; ++i) {
    list += ",\"" + std::string(static_cast<size_t>(i), 'x') + "\"";
    expected += "," + std::to_string(i) + ".0";
  }
  const http::Reply reply = Embed(list + "]");
  std::string lengths;
  std::string_view rest = reply.body;
  for (size_t at = 0; (at = rest.find("\"embedding\":[")) != rest.npos;) {
    if (!lengths.empty()) lengths += ',';
    lengths += Between(rest, "\"embedding\":[", ",");
    rest.remove_prefix(at + 1);
  }
  EXPECT_EQ(lengths, expected);
}

TEST_F(OpenAiHandlerTest, StreamsWhatOtherThreadsSay) {
  Serve("completions");
  ThreadEach threads;
  service_->on_infer = [&](core::RequestPtr request) {
    threads.Run([request = std::move(request)]() mutable {
      Saying(std::vector<std::string>(300, "ab "))(std::move(request));
    });
  };
  const http::Reply reply = Complete(R"(,"stream":true,"stop":"b a!")");
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(Between(Complete("").body, "\"text\":\"", "\"").size(), 900u);
}

TEST_F(OpenAiHandlerTest, CancelsForClientsThatLeave) {
  for (const std::string_view path : {"completions", "embeddings"}) {
    Serve("completions,embeddings");
    std::promise<core::RequestPtr> begun;
    std::promise<void> cancelled;
    service_->on_infer = [&](core::RequestPtr request) { begun.set_value(std::move(request)); };
    service_->on_cancel = [&](core::Request&) { cancelled.set_value(); };
    const std::string body = R"({"model":"m","prompt":"x","input":["x","y"]})";
    client_->Send("POST /v1/" + std::string(path) + " HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                  std::to_string(body.size()) + "\r\n\r\n" + body);
    core::RequestPtr request = begun.get_future().get();
    client_->Close();
    cancelled.get_future().get();
    core::CompleteWithError(std::move(request), base::CancelledError("cancelled"));
  }
}

// They are submitted by the thread that has loaded the model, while the reactor sees the client go.
TEST_F(OpenAiHandlerTest, CancelsForClientsThatLeaveWhileTheirTextsAreSubmitted) {
  Serve("embeddings");
  ThreadEach threads;
  service_->is_loaded = false;
  service_->on_await = [&](service::Service::ModelWaiter done) {
    threads.Run([this, done = std::move(done)]() mutable {
      service_->is_loaded = true;
      done(service_->FindModel("m", ""));
    });
  };
  service_->on_direct = [&](core::Request&) {
    client_->Close();
    // The second reply is of a later round than the first, and that is none before the close.
    http::Client other(server_->port());
    for (int i = 0; i < 2; ++i) EXPECT_EQ(other.Ask("GET", "/v2/health/live").status, 200);
  };
  std::promise<bool> was_cancelled;
  service_->on_infer = [&](core::RequestPtr request) {
    was_cancelled.set_value(request->is_cancelled());
    core::CompleteWithError(std::move(request), base::CancelledError("cancelled"));
  };
  const std::string body = R"({"model":"m","input":"x"})";
  client_->Send("POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_TRUE(was_cancelled.get_future().get());
}

TEST_F(OpenAiHandlerTest, GivesVectorsAsBase64) {
  Serve("embeddings");
  std::vector<size_t> batches;
  service_->on_infer = [&](core::RequestPtr request) { EmbedLengths(std::move(request), batches); };
  // 1.0 and 0.5, little-endian.
  EXPECT_EQ(Between(Embed(R"("a","encoding_format":"base64")").body, "\"embedding\":\"", "\""),
            "AACAPwAAAD8=");
}

TEST_F(OpenAiHandlerTest, StopsEmbeddingAtAnError) {
  Serve("embeddings");
  int count = 0;
  service_->on_infer = [&](core::RequestPtr request) {
    ++count;
    core::CompleteWithError(std::move(request), base::InvalidArgumentError("no"));
  };
  EXPECT_EQ(Embed(R"(["a","b","c"])").status, 400);
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace nereid::openai
