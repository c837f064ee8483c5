// SPDX-License-Identifier: Apache-2.0
// Runs codecs and schedulers on one thread, without sockets, so that check.py can count their
// instructions.
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "access/gate.h"
#include "access/key_file.h"
#include "base/check.h"
#include "base/temporary_folder.h"
#include "core/testing/fakes.h"
#include "grpc/infer_request.h"
#include "grpc/infer_response.h"
#include "grpc_service.pb.h"
#include "http/infer_request.h"
#include "http/infer_response.h"
#include "http/route.h"
#include "http1/http_head_parser.h"
#include "http2/grpc_message.h"
#include "measured_runs.h"
#include "schedule/batch_scheduler.h"
#include "schedule/caller_quotas.h"
#include "schedule/ensemble_scheduler.h"
#include "schedule/sequence_scheduler.h"
#include "schedule/testing/context.h"
#include "schedule/testing/sequences.h"

using namespace nereid;

namespace {

// Counts completed requests, without a lock.
class Sink final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr, bool) override {}
  void OnRequestGone() override { gone_.fetch_add(1, std::memory_order_release); }
  void WaitFor(size_t count) const {
    while (gone_.load(std::memory_order_acquire) < count) std::this_thread::yield();
  }

 private:
  std::atomic<size_t> gone_{0};
};

core::ResponsePtr Echo(core::Request& request, size_t elements) {
  core::ResponsePtr response = core::Response::Create(request);
  const std::array<int64_t, 2> shape{1, static_cast<int64_t>(elements)};
  core::ResponseOutput* const output =
      response->AddOutput("OUTPUT0", tensor::DataType::kFp32, shape);
  NEREID_CHECK(response->AllocateBuffer(*output, elements * sizeof(float), {}, false).ok());
  auto* const values = reinterpret_cast<float*>(output->data);
  for (size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i) / 7;
  return response;
}

struct Codecs {
  std::unique_ptr<core::Model> model = core::MakeFakeModel(8, {-1});
  Sink sink;

  core::RequestPtr NewRequest() {
    core::RequestPtr request = core::Request::Create(sink);
    NEREID_CHECK(model->TryPin());
    request->model = core::ModelHandle(*model);
    return request;
  }
};

// Adds the readable bytes after the text that readers require.
std::string Padded(std::string text) { return text.append(64, '\0'); }

void MeasureHttpHead() {
  const std::string head =
      "POST /v2/models/model/infer HTTP/1.1\r\nHost: localhost:8000\r\nAccept: */*\r\n"
      "User-Agent: client/1.0\r\nContent-Type: application/octet-stream\r\n"
      "Inference-Header-Content-Length: 153\r\nContent-Length: 217\r\n\r\n";
  Measure("http_plain_head", [&] {
    http1::HttpHead parsed;
    NEREID_CHECK(http1::HttpHeadParser::ReadPlain(head, 65536, parsed) == head.size());
  });
  Measure("http_head", [&] {
    http1::HttpHead parsed;
    http1::HttpHeadScanner scanner;
    NEREID_CHECK(scanner.Scan(head) == http1::HttpHeadScanner::State::kComplete);
    http1::HttpHeadParser parser(parsed, 65536);
    NEREID_CHECK(parser.ParseHead(head).status == 0);
    NEREID_CHECK(parsed.Header("Inference-Header-Content-Length") == "153");
  });
}

void MeasureHttpRoute() {
  Measure("http_route", [] {
    const http::Route route = http::MatchRoute("/v2/models/model/versions/1/infer");
    NEREID_CHECK(route.kind == http::RouteKind::kModelInfer && route.version == "1");
    NEREID_CHECK(http::MatchRoute("/v2/models/model/infer").model == "model");
  });
}

void MeasureHttpRequest(const char* name, std::string json, std::string binary) {
  Codecs codecs;
  const size_t json_size = json.size();
  const size_t size = json_size + binary.size();
  const std::string body = Padded(std::move(json) + binary);
  http::InferRequestReader reader(1 << 26);
  http::ResponseOptions answer;
  Measure(name, [&] {
    core::RequestPtr request = codecs.NewRequest();
    NEREID_CHECK(
        reader.Read({std::string_view(body).substr(0, size), json_size}, *request, answer).ok());
    answer.Clear();
  });
}

void MeasureHttpResponse(const char* name, size_t elements, bool is_binary) {
  Codecs codecs;
  core::RequestPtr request = codecs.NewRequest();
  const core::ResponsePtr response = Echo(*request, elements);
  http::ResponseOptions options;
  options.is_binary_by_default = is_binary;
  http::InferResponseBody answer;
  Measure(name, [&] {
    NEREID_CHECK(http::WriteInferResponse(*response, options, answer).ok());
    answer.json.clear();
    answer.parts.clear();
  });
}

void MeasureGrpc() {
  Codecs codecs;
  inference::ModelInferRequest message;
  message.set_model_name("model");
  message.set_id("1");
  auto* const input = message.add_inputs();
  input->set_name("INPUT0");
  input->set_datatype("FP32");
  input->add_shape(1);
  input->add_shape(16);
  message.add_outputs()->set_name("OUTPUT0");
  message.add_raw_input_contents(std::string(64, '\1'));
  const std::string bytes = message.SerializeAsString();
  grpc::InferMessage parsed;
  Measure("grpc_request", [&] {
    NEREID_CHECK(parsed.Parse(bytes));
    core::RequestPtr request = codecs.NewRequest();
    NEREID_CHECK(grpc::FillRequest(parsed, *request).ok());
    parsed.Clear();
  });
  core::RequestPtr request = codecs.NewRequest();
  Measure("grpc_answer", [&] {
    core::ResponsePtr response = Echo(*request, 16);
    NEREID_CHECK(grpc::EncodeInferResponse(response).ok());
  });
}

class KeyBearer final : public access::Sender {
 public:
  explicit KeyBearer(const std::string& key) : authorization_("Bearer " + key) {}
  std::string_view Authorization() const override { return authorization_; }
  std::string_view ApiKey() const override { return {}; }
  const net::PeerIdentity* certificate() const override { return nullptr; }
  std::string Address() const override { return "10.0.0.7"; }

 private:
  std::string authorization_;
};

// A key that the thread has seen before, and the limits of its owner.
void MeasureAccess() {
  const auto folder = base::MakeTemporaryFolder("instructions");
  NEREID_CHECK(folder.ok());
  const std::string file = folder->path + "/keys.json";
  const auto key = access::AddKey(
      file, {.id = "ci", .scopes = {"infer"}, .models = {}, .expires = {}, .created = {}});
  NEREID_CHECK(key.ok());
  const auto gate = access::Gate::CreateForTest(file);
  NEREID_CHECK(gate.ok());
  std::filesystem::remove_all(folder->path);
  const KeyBearer sender(*key);
  Measure("access_known_key", [&] {
    const access::Admission admission = (*gate)->Admit(sender, access::Scope::kInfer, "model");
    NEREID_CHECK(!admission.denial);
  });

  constexpr double kUnreachable = 1e9;
  const auto limited =
      std::make_shared<const core::Caller>(core::Caller{.id = "ci",
                                                        .limits = {.requests_per_s = kUnreachable,
                                                                   .bytes_per_s = kUnreachable,
                                                                   .in_flight = 8,
                                                                   .weight = 2}});
  Codecs codecs;
  schedule::CallerQuotas quotas;
  uint64_t now_ns = base::NowNs();
  const auto send = [&](const core::CallerRef& caller) {
    const core::RequestPtr request = codecs.NewRequest();
    request->caller = caller;
    NEREID_CHECK(quotas.Admit(*request, ++now_ns).ok());
  };
  Measure("request_without_limits", [&] { send(nullptr); });
  Measure("request_of_limited_caller", [&] { send(limited); });
}

// Measures from Enqueue to the last response of `batch` requests, in the reactor's own thread.
void MeasureBatches(const char* name, bool is_dynamic, size_t batch) {
  const std::unique_ptr<core::Model> model = core::MakeFakeModel(is_dynamic ? 8 : 0, {16});
  Sink sink;
  schedule::TestContext context;
  core::FakeRounds rounds;
  schedule::BatchSchedulerOptions options;
  options.policy.is_dynamic = is_dynamic;
  options.policy.max_batch_size = is_dynamic ? 8 : 0;
  options.pool.inline_budget = std::chrono::hours(1);
  std::vector<schedule::NewInstance> instances;
  instances.emplace_back(std::make_unique<core::FakeInstance>("i", true, nullptr));
  auto scheduler = schedule::BatchScheduler::Create(*model, context.Get(), std::move(options),
                                                    std::move(instances));
  NEREID_CHECK(scheduler.ok());
  size_t sent = 0;
  Measure(name, [&] {
    for (size_t i = 0; i < batch; ++i) {
      core::RequestPtr request = core::MakeFakeRequest(*model, sink, {1, 16});
      request->round = &rounds;
      (*scheduler)->Enqueue(std::move(request));
    }
    rounds.EndRound();
    sent += batch;
    sink.WaitFor(sent);
  });
}

void MeasureSequence() {
  const std::unique_ptr<core::Model> model =
      schedule::MakeSequenceModel({.max_batch_size = 4, .batching = schedule::AllControls()});
  Sink sink;
  schedule::TestContext context;
  core::FakeRounds rounds;
  schedule::SequenceSchedulerOptions options;
  std::vector<schedule::NewInstance> instances;
  instances.emplace_back(std::make_unique<core::FakeInstance>("i", true, nullptr));
  auto scheduler = schedule::SequenceScheduler::Create(*model, context.Get(), std::move(options),
                                                       std::move(instances));
  NEREID_CHECK(scheduler.ok());
  size_t sent = 0;
  Measure("sequence_scheduler", [&] {
    core::RequestPtr request = schedule::MakeSequenceRequest(
        *model, sink, uint64_t{7}, sent == 0 ? uint32_t{core::kSequenceStart} : 0);
    request->round = &rounds;
    (*scheduler)->Enqueue(std::move(request));
    rounds.EndRound();
    sink.WaitFor(++sent);
  });
}

// Completes every request of the one step model at once.
class StepModels final : public core::Submitter {
 public:
  base::Result<core::ModelHandle> PinModel(std::string_view, int64_t) override {
    NEREID_CHECK(model_->TryPin());
    return core::ModelHandle(*model_);
  }
  void Submit(core::RequestPtr request) override {
    core::ResponsePtr response = Echo(*request, 16);
    core::ResponseSink& sink = request->sink();
    request.reset();
    sink.Send(std::move(response), true);
  }
  void CancelSubmitted(core::Request& request) override { request.Cancel(); }

 private:
  const std::unique_ptr<core::Model> model_ = core::MakeFakeModel(0, {1, 16});
};

void MeasureEnsemble() {
  auto config = std::make_shared<config::ModelConfig>();
  config->name = "model";
  config->input.push_back({.name = "INPUT0", .dims = {1, 16}});
  config->output.push_back({.name = "OUTPUT0", .dims = {1, 16}});
  config::Ensembling ensemble;
  const char* const names[] = {"INPUT0", "first", "second", "OUTPUT0"};
  for (size_t i = 0; i < 3; ++i) {
    ensemble.step.push_back({.model_name = "step",
                             .model_version = -1,
                             .input_map = {{"INPUT0", names[i]}},
                             .output_map = {{"OUTPUT0", names[i + 1]}}});
  }
  config->scheduling_choice = ensemble;
  auto plan = schedule::EnsemblePlan::Compile(*config, std::vector<schedule::StepModel>(3));
  NEREID_CHECK(plan.ok());
  StepModels models;
  base::Timers timers;
  schedule::ProducerWaits waits;
  const std::unique_ptr<core::Model> model = core::MakeFakeModel(0, {1, 16});
  model->SetScheduler(std::make_unique<schedule::EnsembleScheduler>(*model, std::move(*plan),
                                                                    models, waits, timers));
  Sink sink;
  const std::array<std::byte, 64> data{};
  size_t sent = 0;
  Measure("ensemble_of_3", [&] {
    core::RequestPtr request = core::MakeFakeRequest(*model, sink, {1, 16});
    request->inputs[0].Append({.data = data.data(), .size = data.size(), .where = {}});
    request->inputs[0].model_index = 0;
    model->scheduler().Enqueue(std::move(request));
    sink.WaitFor(++sent);
  });
}

// 1,000 numbers as clients print them: `format` gets a comma or nothing, and a number.
std::string JsonTensor(const char* format) {
  std::string json = R"({"inputs":[{"name":"INPUT0","shape":[1,1000],"datatype":"FP32","data":[)";
  for (int i = 0; i < 1000; ++i) {
    char number[32];
    std::snprintf(number, sizeof number, format, i == 0 ? "" : ",", i / 7.0);
    json += number;
  }
  return json + "]}]}";
}

}  // namespace

int main() {
  MeasureHttpHead();
  MeasureHttpRoute();
  MeasureHttpRequest(
      "http_request",
      R"({"id":"1","inputs":[{"name":"INPUT0","shape":[1,16],"datatype":"FP32",)"
      R"("parameters":{"binary_data_size":64}}],"parameters":{"binary_data_output":true}})",
      std::string(64, '\1'));
  MeasureHttpResponse("http_answer", 16, true);
  MeasureHttpRequest("json_request_1000", JsonTensor("%s%.8g"), "");
  // Python prints a number of 32 bits with the digits of one of 64.
  MeasureHttpRequest("json_request_1000_17_digits", JsonTensor("%s%.17g"), "");
  MeasureHttpResponse("json_answer_1000", 1000, false);
  MeasureGrpc();
  MeasureAccess();
  MeasureBatches("default_scheduler", false, 1);
  MeasureBatches("dynamic_scheduler_of_8", true, 8);
  MeasureSequence();
  MeasureEnsemble();
}
