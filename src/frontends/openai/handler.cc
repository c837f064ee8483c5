// SPDX-License-Identifier: Apache-2.0
#include "openai/handler.h"

#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/admission.h"
#include "common/json_text.h"
#include "common/visible_models.h"
#include "config/openai_contract.h"
#include "core/model.h"
#include "http/admission.h"
#include "http/start_trace.h"
#include "net/compression.h"
#include "openai/embedding_call.h"
#include "openai/text_call.h"

namespace nereid::openai {
namespace {

using config::OpenAiContract;
using http1::HttpExchange;
using http1::HttpExchangePtr;

int64_t NowSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void RespondJson(HttpExchangePtr exchange, std::string_view json) {
  HttpExchange::Respond(std::move(exchange),
                        {.status = 200, .content_type = "application/json", .text = json});
}

// Makes the error for a model that was not found, or is not ready.
ApiError ModelError(const base::Status& status) {
  if (status.code() != base::StatusCode::kNotFound) return status;
  return {status, "model", kModelNotFound};
}

// Returns what the model promises for the task, or why it cannot serve it.
struct Promise {
  ApiError error;
  OpenAiContract contract;
};
Promise ContractFor(const core::Model& model, Task task) {
  const auto contract = config::ReadOpenAiContract(model.config());
  // The model's owner has to mend this, not the client.
  if (!contract.ok()) return {base::InternalError(std::string(contract.status().message())), {}};
  const auto refuse = [&](std::string_view text) {
    const base::Status status =
        base::NotFoundError(fmt::format("the model '{}' {}", model.name(), text));
    return Promise{{status, "model", kModelNotFound}, {}};
  };
  if (!*contract) {
    return refuse("is not served by this API: its configuration has no parameter 'openai'");
  }
  const bool serves = task == Task::kChat          ? (*contract)->serves_chat
                      : task == Task::kCompletions ? (*contract)->serves_completions
                                                   : (*contract)->serves_embeddings;
  const std::string_view name = task == Task::kChat          ? "chat"
                                : task == Task::kCompletions ? "completions"
                                                             : "embeddings";
  if (!serves) {
    return refuse(
        fmt::format("does not serve '{}': the parameter 'openai' of its configuration "
                    "does not name that",
                    name));
  }
  return {{}, **contract};
}

// Whether the list has a model: its owner said something about it, right or wrong.
bool IsListed(const config::ModelConfig& config) { return config.parameters.contains("openai"); }

}  // namespace

Handler::Handler(const http::ApiOptions& options, service::Service& service,
                 const common::RoundExecutors& rounds)
    : options_(options),
      service_(service),
      rounds_(rounds),
      started_s_(NowSeconds()),
      nonce_(uint64_t{std::random_device{}()} << 32 | std::random_device{}()) {}

void Handler::Serve(HttpExchangePtr exchange, const http::Route& route) {
  switch (route.kind) {
    case http::RouteKind::kOpenAiModels:
      // Reads the repositories.
      return service_.RunBlocking(
          [this, exchange = std::move(exchange)]() mutable { ListModels(std::move(exchange)); });
    case http::RouteKind::kOpenAiModel:
      return DescribeModel(std::move(exchange), route.model);
    case http::RouteKind::kOpenAiChat:
      return ServeTask(std::move(exchange), Task::kChat);
    case http::RouteKind::kOpenAiCompletions:
      return ServeTask(std::move(exchange), Task::kCompletions);
    case http::RouteKind::kOpenAiEmbeddings:
      return ServeTask(std::move(exchange), Task::kEmbeddings);
    default:
      return RespondError(std::move(exchange), base::NotFoundError("Not Found"));
  }
}

void Handler::AppendModel(std::string_view name, std::string& json) const {
  json += "{\"id\":";
  common::AppendJsonString(json, name);
  json += ",\"object\":\"model\",\"created\":";
  common::AppendJsonInteger(json, started_s_);
  json += R"(,"owned_by":"nereid"})";
}

void Handler::ListModels(HttpExchangePtr exchange) {
  common::VisibleModels visible(service_, http::SenderOf(*exchange));
  std::set<std::string> names;
  for (const service::IndexEntry& entry : visible.RepositoryIndex(true)) names.insert(entry.name);
  std::string json = R"({"object":"list","data":[)";
  bool is_first = true;
  for (const std::string& name : names) {
    const auto config = service_.GetModelConfig(name, "");
    if (!config.ok() || !IsListed(**config)) continue;
    if (!is_first) json += ',';
    is_first = false;
    AppendModel(name, json);
  }
  json += "]}";
  RespondJson(std::move(exchange), json);
}

bool Handler::AwaitModel(HttpExchangePtr& exchange, const std::string& name,
                         std::function<void(HttpExchangePtr)> next) {
  if (!service_.LoadsOnDemand(name)) return false;
  service_.AwaitModel(name, "",
                      [exchange = std::move(exchange), next = std::move(next)](
                          const base::Result<core::ModelHandle>& pinned) mutable {
                        if (!pinned.ok()) {
                          return RespondError(std::move(exchange), ModelError(pinned.status()));
                        }
                        // The pin keeps the model while the request looks for it again.
                        next(std::move(exchange));
                      });
  return true;
}

void Handler::DescribeModel(HttpExchangePtr exchange, std::string_view name) {
  const auto config = service_.GetModelConfig(name, "");
  if (!config.ok() &&
      AwaitModel(exchange, std::string(name), [this, model = std::string(name)](auto resumed) {
        DescribeModel(std::move(resumed), model);
      })) {
    return;
  }
  if (!config.ok()) return RespondError(std::move(exchange), ModelError(config.status()));
  if (!IsListed(**config)) {
    return RespondError(
        std::move(exchange),
        ModelError(base::NotFoundError(fmt::format(
            "the model '{}' is not served by this API: its configuration has no parameter 'openai'",
            name))));
  }
  std::string json;
  AppendModel(name, json);
  RespondJson(std::move(exchange), json);
}

ApiError Handler::Prepare(HttpExchangePtr& exchange, Task task, rapidjson::Document& body,
                          Submission& submission) {
  const auto encoding = net::ParseContentEncoding(exchange->head().Header("Content-Encoding"));
  if (!encoding.ok() || *encoding != net::Compression::kIdentity) {
    return base::InvalidArgumentError("the body of the request must not be compressed");
  }
  if (exchange->body_truncated() || exchange->body().size() > options_.max_input_bytes) {
    return base::InvalidArgumentError(
        fmt::format("request JSON size of {} bytes exceeds the maximum allowed input size of {} "
                    "bytes. Use --http-max-input-size to increase the limit.",
                    exchange->body_size(), options_.max_input_bytes));
  }
  NEREID_RETURN_IF_ERROR(ParseBody(exchange->body(), body));
  NEREID_RETURN_IF_API_ERROR(CheckFields(body, task));
  const std::string_view name = ModelName(body);
  if (!http::AdmitModel(exchange, options_.gate, name, http::kOpenAiDialect)) return {};
  base::Result<core::ModelHandle> model = service_.FindModel(name, "");
  if (!model.ok() && AwaitModel(exchange, std::string(name), [this, task](auto resumed) {
        ServeTask(std::move(resumed), task);
      })) {
    return {};
  }
  if (!model.ok()) return ModelError(model.status());
  Promise promise = ContractFor(**model, task);
  NEREID_RETURN_IF_API_ERROR(promise.error);
  NEREID_RETURN_IF_API_ERROR(CheckAbilities(body, task, **model));
  submission.contract = promise.contract;
  NEREID_RETURN_IF_ERROR(
      common::Admit(options_.budgets, *model, exchange->body().size(), submission.in_flight));
  submission.model = *std::move(model);
  submission.limits = options_.stream_limits;
  submission.rounds = &rounds_;
  submission.forwarder = options_.forwarder.get();
  submission.trace = http::StartTrace(service_.tracing(), *exchange, submission.model->name());
  submission.caller = http::CallerOf(*exchange);
  return {};
}

void Handler::ServeTask(HttpExchangePtr exchange, Task task) {
  rapidjson::Document body;
  Submission submission;
  const ApiError error = Prepare(exchange, task, body, submission);
  if (!error.ok()) return RespondError(std::move(exchange), error);
  if (exchange == nullptr) return;
  submission.exchange = std::move(exchange);
  if (task == Task::kEmbeddings) return ServeEmbeddings(std::move(submission), std::move(body));
  ServeText(std::move(submission), task, body);
}

void Handler::ServeEmbeddings(Submission submission, rapidjson::Document body) {
  Texts read = ReadTexts(body, Task::kEmbeddings);
  if (!read.error.ok()) return RespondError(std::move(submission.exchange), read.error);
  EmbeddingCall::Submit(std::move(submission), std::move(body), std::move(read.texts),
                        MakeId("embd"), service_);
}

void Handler::ServeText(Submission submission, Task task, const JsonValue& body) {
  const OpenAiContract& contract = submission.contract;
  const bool is_chat = task == Task::kChat;
  std::string made;
  TextInput input{.name = contract.text_input, .texts = {}};
  std::string_view text;
  ApiError error;
  if (is_chat && !contract.messages_input.empty()) {
    AppendJson(*FindField(body, "messages"), made);
    input.name = contract.messages_input;
    text = made;
  } else if (is_chat) {
    error = AppendPrompt(body, made);
    text = made;
  } else {
    const Texts read = ReadTexts(body, task);
    error = read.error;
    if (error.ok()) text = read.texts.front();
  }
  if (!error.ok()) return RespondError(std::move(submission.exchange), error);
  input.texts = {&text, 1};
  TextOptions options{.head = {.id = MakeId(is_chat ? "chatcmpl" : "cmpl"),
                               .created = NowSeconds(),
                               .model = std::string(ModelName(body)),
                               .is_chat = is_chat},
                      .is_stream = Flag(body, "stream"),
                      .wants_usage = WantsUsage(body),
                      .stops = {}};
  // A model that knows its tokens stops sooner, and says how.
  if (submission.model->FindInput("stop") < 0) options.stops = StopSequences(body);
  TextCall::Submit(std::move(submission), std::move(options), body, input, service_);
}

std::string Handler::MakeId(std::string_view prefix) {
  return fmt::format("{}-{:016x}{:08x}", prefix, nonce_, next_id_.fetch_add(1));
}

}  // namespace nereid::openai
