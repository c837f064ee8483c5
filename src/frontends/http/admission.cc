// SPDX-License-Identifier: Apache-2.0
#include "http/admission.h"

#include <utility>

#include <fmt/format.h>

namespace nereid::http {
namespace {

using access::Denial;
using http1::HttpExchange;
using http1::HttpExchangePtr;

int StatusOf(Denial denial) {
  switch (denial) {
    case Denial::kMissing:
    case Denial::kInvalid:
    case Denial::kExpired:
      return 401;
    case Denial::kScope:
    case Denial::kModel:
      return 403;
    case Denial::kTooMany:
      return 429;
    case Denial::kNotReady:
      return 503;
  }
  return 403;
}

// The lines that tell a client what to do (RFC 6750). `text` has no quotation marks where it is
// used.
std::string HeadersOf(const access::Admission& admission, access::Scope scope) {
  constexpr std::string_view kChallenge = "WWW-Authenticate: Bearer realm=\"nereid\"";
  switch (*admission.denial) {
    case Denial::kMissing:
      return fmt::format("{}\r\n", kChallenge);
    case Denial::kInvalid:
    case Denial::kExpired:
      return fmt::format("{}, error=\"invalid_token\", error_description=\"{}\"\r\n", kChallenge,
                         admission.text);
    case Denial::kScope:
      return fmt::format("{}, error=\"insufficient_scope\", scope=\"{}\"\r\n", kChallenge,
                         access::ScopeName(scope));
    case Denial::kModel:
      return {};
    case Denial::kTooMany:
    case Denial::kNotReady:
      return fmt::format("Retry-After: {}\r\n", admission.retry_after_s);
  }
  return {};
}

void Refuse(HttpExchangePtr exchange, int status, std::string_view text, const Dialect& dialect,
            std::string_view headers = {}) {
  const std::string body = ErrorJson(status, text, dialect);
  HttpExchange::Respond(
      std::move(exchange),
      {.status = status, .content_type = "application/json", .headers = headers, .text = body});
}

void ArrangeAudit(HttpExchange& exchange, const access::Grant* grant) {
  const http1::HttpHead& head = exchange.head();
  if (head.method() == http1::HttpMethod::kGet || head.method() == http1::HttpMethod::kHead) return;
  common::AuditedCall call{.who = common::WhoIs(grant),
                           .what = fmt::format("{} {}", head.method_text(), head.path()),
                           .address = exchange.PeerAddress()};
  exchange.set_on_reply([call = std::move(call)](int status) {
    common::Audit(call, fmt::format("{}", status), status >= 400);
  });
}

}  // namespace

bool AdmitSender(HttpExchangePtr& exchange, access::Gate* gate, access::Scope scope,
                 std::string_view model, const ControlPlace& control, const Dialect& dialect) {
  access::Admission admission;
  if (gate != nullptr) admission = gate->Admit(ExchangeSender(*exchange), scope, model);
  if (access::IsAudited(scope)) [[unlikely]]
    ArrangeAudit(*exchange, admission.grant.get());
  if (admission.denial) [[unlikely]] {
    const std::string headers = HeadersOf(admission, scope);
    Refuse(std::move(exchange), StatusOf(*admission.denial), admission.text, dialect, headers);
    return false;
  }
  if (control.is_elsewhere && access::IsControl(scope)) [[unlikely]] {
    Refuse(std::move(exchange), 403, control.where, dialect);
    return false;
  }
  exchange->set_sender(std::move(admission.grant));
  return true;
}

bool AdmitModel(HttpExchangePtr& exchange, access::Gate* gate, std::string_view model,
                const Dialect& dialect) {
  const access::GrantRef grant = SenderOf(*exchange);
  if (gate == nullptr || grant == nullptr || gate->AllowsModel(*grant, model)) return true;
  Refuse(std::move(exchange), 403, access::Gate::ModelText(*grant, model), dialect);
  return false;
}

bool AdmitToAllModels(HttpExchangePtr& exchange) {
  if (access::SeesAllModels(GrantOf(*exchange))) return true;
  Refuse(std::move(exchange), 403, access::kIsAboutAllModels, kTritonDialect);
  return false;
}

bool IsRefused(const http1::HttpHead& head, const common::Restrictions& restrictions,
               common::Category category) {
  return restrictions.IsRestricted(category) &&
         restrictions.Refuses(category, head.Header(restrictions.key(category)));
}

bool AdmitCategory(HttpExchangePtr& exchange, const common::Restrictions& restrictions,
                   common::Category category, const Dialect& dialect) {
  if (restrictions.empty() || !IsRefused(exchange->head(), restrictions, category)) return true;
  Refuse(std::move(exchange), 403,
         "This API is restricted, expecting header '" + restrictions.key(category) + "'", dialect);
  return false;
}

access::GrantRef SenderOf(const HttpExchange& exchange) {
  return std::static_pointer_cast<const access::Grant>(exchange.sender());
}

}  // namespace nereid::http
