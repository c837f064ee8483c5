// SPDX-License-Identifier: Apache-2.0
#include "console/console_handler.h"

#include <charconv>
#include <optional>
#include <utility>

#include "base/recent_log.h"
#include "common/admission.h"
#include "common/json_text.h"
#include "common/visible_models.h"
#include "console/model_load.h"
#include "console/recent_json.h"
#include "http/admission.h"
#include "http/infer_call.h"
#include "http/origin.h"
#include "http/route.h"
#include "net/compression.h"
#include "observe/recent_traces.h"

namespace nereid::console {
namespace {

using http1::HttpExchange;
using http1::HttpExchangePtr;

constexpr std::string_view kPage = "/ui";
constexpr std::string_view kData = "/ui/api/";
// The most sequences of each kind that are listed.
constexpr size_t kMaxSequences = 200;

// The page may load what this server sends and nothing else, and no other page may show it in a
// frame.
constexpr std::string_view kPageHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Permissions-Policy: camera=(), geolocation=(), microphone=()\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n";
constexpr std::string_view kDataHeaders =
    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";

constexpr std::string_view kNotBuilt =
    "This server was built without its console. To have it:\n\n"
    "  tools/setup --console\n"
    "  ./x build\n\n"
    "The first command builds the page in .deps/console, the second puts it into the program. "
    "docs/console.md says more. Everything else is served as usual.\n";

void SendJson(HttpExchangePtr exchange, std::string_view json, std::string_view headers) {
  HttpExchange::Respond(
      std::move(exchange),
      {.status = 200, .content_type = "application/json", .headers = headers, .text = json});
}

void Refuse(HttpExchangePtr exchange, int status, std::string_view text,
            std::string_view headers = {}) {
  const std::string body = common::JsonError(text);
  HttpExchange::Respond(
      std::move(exchange),
      {.status = status, .content_type = "application/json", .headers = headers, .text = body});
}

void SendText(HttpExchangePtr exchange, int status, std::string_view text) {
  HttpExchange::Respond(std::move(exchange), {.status = status,
                                              .content_type = "text/plain; charset=utf-8",
                                              .headers = kPageHeaders,
                                              .text = text});
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Sends the messages that are newer than the one that the query names: after=ID.
void SendLog(HttpExchangePtr exchange) {
  constexpr std::string_view kAfter = "after=";
  const std::string_view query = exchange->head().query();
  uint64_t after = 0;
  if (!query.empty()) {
    const auto number =
        query.starts_with(kAfter) ? ParseNumber(query.substr(kAfter.size())) : std::nullopt;
    if (!number) {
      return Refuse(std::move(exchange), 400,
                    "expected no query, or after= and the number of a message");
    }
    after = *number;
  }
  SendJson(std::move(exchange), LogJson(base::RecentLogOfProcess().After(after)), kDataHeaders);
}

}  // namespace

bool IsConsolePath(std::string_view path) {
  return path.starts_with(kPage) && (path.size() == kPage.size() || path[kPage.size()] == '/');
}

void ConsoleHandler::Handle(HttpExchangePtr exchange) {
  const std::string_view sent = exchange->head().path();
  base::Result<std::string> path = http::DecodePath(sent);
  if (!path.ok()) return http::RespondError(std::move(exchange), path.status());
  if (!IsConsolePath(*path)) return Refuse(std::move(exchange), 404, "Not Found");
  if (exchange->is_crowded()) {
    return http::RespondError(std::move(exchange),
                              base::UnavailableError(std::string(common::kCrowdedText)));
  }
  const bool is_head = exchange->head().method() == http1::HttpMethod::kHead;
  exchange->TreatHeadAsGet();
  const bool is_data = path->starts_with(kData);
  // HandleData looks at the sender before it looks at the method, so that a wrong method tells
  // nobody anything.
  if (is_data) {
    return HandleData(std::move(exchange), std::string_view(*path).substr(kData.size()), is_head);
  }
  if (exchange->head().method() != http1::HttpMethod::kGet) {
    return Refuse(std::move(exchange), 405, "Method Not Allowed", "Allow: GET, HEAD\r\n");
  }
  if (*path == kPage) {
    // The links of the page are relative to the folder, whatever a proxy puts in front of it.
    return HttpExchange::Respond(std::move(exchange),
                                 {.status = 308, .headers = "Location: ui/\r\n"});
  }
  SendAsset(std::move(exchange), std::string_view(*path).substr(kPage.size() + 1));
}

void ConsoleHandler::SendAsset(HttpExchangePtr exchange, std::string_view path) const {
  if (options_.assets.empty()) {
    return SendText(std::move(exchange), path.empty() ? 503 : 404, kNotBuilt);
  }
  const Asset* const asset = FindAsset(options_.assets, path.empty() ? "index.html" : path);
  if (asset == nullptr) return SendText(std::move(exchange), 404, "There is no such file.\n");
  // The names of all other files change with what is in them.
  std::string headers(kPageHeaders);
  headers += path.starts_with("assets/") ? "Cache-Control: public, max-age=31536000, immutable\r\n"
                                         : "Cache-Control: no-cache\r\n";
  headers += "ETag: ";
  headers += asset->etag;
  headers += "\r\nVary: Accept-Encoding\r\n";
  if (exchange->head().Header("If-None-Match").find(asset->etag) != std::string_view::npos) {
    return HttpExchange::Respond(std::move(exchange), {.status = 304, .headers = headers});
  }
  if (net::NegotiateCompression(exchange->head().Header("Accept-Encoding")) ==
      net::Compression::kGzip) {
    headers += "Content-Encoding: gzip\r\n";
    return HttpExchange::Respond(std::move(exchange), {.status = 200,
                                                       .content_type = asset->content_type,
                                                       .headers = headers,
                                                       .text = asset->gzip});
  }
  const auto plain = net::Decompress(asset->gzip, {.limit_hint = ""});
  if (!plain.ok()) return http::RespondError(std::move(exchange), plain.status());
  HttpExchange::Respond(std::move(exchange), {.status = 200,
                                              .content_type = asset->content_type,
                                              .headers = headers,
                                              .text = plain->data});
}

bool ConsoleHandler::Admit(HttpExchangePtr& exchange, const DataRoute& route) const {
  if (options_.gate != nullptr) {
    if (!http::AdmitSender(exchange, options_.gate, route.scope, route.model, /*control=*/{})) {
      return false;
    }
    if (route.is_about_all && !access::SeesAllModels(http::GrantOf(*exchange))) {
      Refuse(std::move(exchange), 403, access::kIsAboutAllModels);
      return false;
    }
  }
  if (access::IsControl(route.scope)) {
    const std::string reason =
        http::RefusePublicHost(exchange->head(), options_.gate != nullptr, options_.own_names);
    if (!reason.empty()) {
      Refuse(std::move(exchange), 403, reason);
      return false;
    }
  }
  return http::AdmitCategory(exchange, options_.restrictions, route.category);
}

// `path` is what follows /ui/api/.
void ConsoleHandler::HandleData(HttpExchangePtr exchange, std::string_view path, bool is_head) {
  const DataRoute route = MatchData(path);
  if (route.kind == DataKind::kNone) return Refuse(std::move(exchange), 404, "Not Found");
  if (!Admit(exchange, route)) return;
  if (exchange->head().method() != http1::HttpMethod::kGet) {
    return Refuse(std::move(exchange), 405, "Method Not Allowed", "Allow: GET, HEAD\r\n");
  }
  switch (route.kind) {
    case DataKind::kNone:
      break;
    case DataKind::kHistory:
      return SendHistory(std::move(exchange));
    case DataKind::kLive:
      if (is_head) return LiveStreams::RespondToHead(std::move(exchange));
      return StartLive(std::move(exchange));
    case DataKind::kModels:
    case DataKind::kModel:
      return SendModelLoad(std::move(exchange), route.model);
    case DataKind::kSequences:
      return SendSequences(std::move(exchange), route.model);
    case DataKind::kExplanation:
      return SendExplanation(std::move(exchange), route.model);
    case DataKind::kLog:
      return SendLog(std::move(exchange));
    case DataKind::kTraces:
      return SendTraces(std::move(exchange));
    case DataKind::kTrace:
      return SendTrace(std::move(exchange), route.id);
  }
}

// An hour is some 200 KB, or a fifth of that compressed.
void ConsoleHandler::SendHistory(HttpExchangePtr exchange) {
  workers_.Post([this, exchange = std::move(exchange)]() mutable {
    const std::string json = recorder_.history().Json();
    const net::Compression encoding =
        net::NegotiateCompression(exchange->head().Header("Accept-Encoding"));
    if (encoding != net::Compression::kGzip) {
      return SendJson(std::move(exchange), json, kDataHeaders);
    }
    const iovec part{const_cast<char*>(json.data()), json.size()};
    const base::Result<net::BufferView> compressed = net::Compress(encoding, {&part, 1});
    if (!compressed.ok()) return SendJson(std::move(exchange), json, kDataHeaders);
    SendJson(std::move(exchange), compressed->data,
             std::string(kDataHeaders) + "Content-Encoding: gzip\r\n");
  });
}

void ConsoleHandler::SendModelLoad(HttpExchangePtr exchange, std::string_view model) {
  common::VisibleModels visible(service_, http::SenderOf(*exchange));
  const auto models = visible.ReadStatistics(model, "");
  if (!models.ok()) return http::RespondError(std::move(exchange), models.status());
  SendJson(std::move(exchange), ModelLoadJson(*models), kDataHeaders);
}

void ConsoleHandler::SendSequences(HttpExchangePtr exchange, std::string_view name) {
  const base::Result<core::ModelHandle> model = service_.FindModel(name, "");
  if (!model.ok()) return http::RespondError(std::move(exchange), model.status());
  const auto sequences = (*model)->scheduler().ReadSequences(kMaxSequences);
  if (!sequences) {
    return Refuse(std::move(exchange), 400,
                  "the configuration of model '" + std::string(name) +
                      "' has no sequence_batching, so there are no sequences");
  }
  SendJson(std::move(exchange), SequencesJson(**model, *sequences), kDataHeaders);
}

void ConsoleHandler::SendExplanation(HttpExchangePtr exchange, std::string_view name) {
  if (!options_.explain) return Refuse(std::move(exchange), 404, "Not Found");
  // Files are read for it.
  service_.RunBlocking([this, name = std::string(name), exchange = std::move(exchange)]() mutable {
    const base::Result<std::string> json = options_.explain(name);
    if (!json.ok()) return http::RespondError(std::move(exchange), json.status());
    SendJson(std::move(exchange), *json, kDataHeaders);
  });
}

void ConsoleHandler::SendTraces(HttpExchangePtr exchange) {
  observe::Tracing* const tracing = service_.tracing();
  if (tracing == nullptr) return SendJson(std::move(exchange), TracesJson(false, {}), kDataHeaders);
  SendJson(std::move(exchange), TracesJson(tracing->is_on(), tracing->recent().All()),
           kDataHeaders);
}

void ConsoleHandler::SendTrace(HttpExchangePtr exchange, std::string_view id) {
  const std::optional<uint64_t> number = ParseNumber(id);
  observe::Tracing* const tracing = service_.tracing();
  const auto trace = number && tracing != nullptr ? tracing->recent().Find(*number) : nullptr;
  if (trace == nullptr) {
    return Refuse(std::move(exchange), 404,
                  "there is no trace of this number, or not any more: the last 100 are kept");
  }
  SendJson(std::move(exchange), TraceJson(*trace), kDataHeaders);
}

void ConsoleHandler::StartLive(HttpExchangePtr exchange) {
  if (recorder_.streams().Add(exchange, options_.gate)) return;
  Refuse(std::move(exchange), 503,
         "the server ends, or as many browsers follow it as it allows; try again later",
         "Retry-After: 5\r\n");
}

}  // namespace nereid::console
