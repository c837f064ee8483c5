// SPDX-License-Identifier: Apache-2.0
#include "http/metrics_handler.h"

#include <utility>

#include "http/admission.h"
#include "http/plain_reply.h"
#include "net/compression.h"
#include "observe/metrics_page.h"

namespace nereid::http {
namespace {

using http1::HttpExchange;
using http1::HttpExchangePtr;

void RespondText(HttpExchangePtr exchange, std::string_view text, std::string_view headers) {
  HttpExchange::Respond(std::move(exchange), {.status = 200,
                                              .content_type = "text/plain; charset=utf-8",
                                              .headers = headers,
                                              .text = text});
}

void AddTlsMetrics(observe::MetricsPage& page, const net::TlsReloads& reloads) {
  using Kind = observe::MetricsPage::Kind;
  const auto add = [&page](const char* result, uint64_t count) {
    page.Add(observe::RenderLabels({{"result", result}}), static_cast<double>(count));
  };
  page.StartFamily("nereid_tls_reloads_total",
                   "Number of times a listener read its changed TLS files, by result",
                   Kind::kCounter);
  add("success", reloads.successes.load());
  add("failure", reloads.failures.load());
  page.StartFamily("nereid_tls_files_good",
                   "Whether the TLS files of all listeners, as last seen, are the ones in use",
                   Kind::kGauge);
  page.Add("", reloads.stale_listeners.load() == 0 ? 1 : 0);
}

}  // namespace

std::string MetricsHandler::Text() const {
  observe::MetricsPage page;
  if (gate_ != nullptr) gate_->AddMetrics(page);
  if (tls_ != nullptr) AddTlsMetrics(page, *tls_);
  return service_.MetricsText() + page.text();
}

void MetricsHandler::Handle(HttpExchangePtr exchange) {
  exchange->TreatHeadAsGet();
  if (gate_ != nullptr && !AdmitSender(exchange, gate_, access::Scope::kMetrics, {}, {})) return;
  if (!AdmitToAllModels(exchange)) return;
  if (exchange->head().method() != http1::HttpMethod::kGet) {
    return RespondStatus(std::move(exchange), 405, "Allow: GET, HEAD\r\n");
  }
  // The reply to paths other than the page's own is empty.
  if (exchange->head().path() != "/metrics") return RespondText(std::move(exchange), {}, {});
  const net::Compression encoding =
      net::NegotiateCompression(exchange->head().Header("Accept-Encoding"));
  if (encoding == net::Compression::kIdentity) {
    return RespondText(std::move(exchange), Text(), {});
  }
  workers_.Post([this, exchange = std::move(exchange), encoding]() mutable {
    const std::string text = Text();
    const iovec part{const_cast<char*>(text.data()), text.size()};
    const base::Result<net::BufferView> compressed = net::Compress(encoding, {&part, 1});
    if (!compressed.ok()) return RespondText(std::move(exchange), text, {});
    RespondText(std::move(exchange), compressed->data,
                encoding == net::Compression::kGzip ? "Content-Encoding: gzip\r\n"
                                                    : "Content-Encoding: deflate\r\n");
  });
}

}  // namespace nereid::http
