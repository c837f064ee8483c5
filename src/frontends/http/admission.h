// SPDX-License-Identifier: Apache-2.0
// Requests over HTTP at the gate: who sends them, what they need, and the replies to those that are
// refused.
#pragma once

#include <string>
#include <string_view>

#include "access/gate.h"
#include "common/audit.h"
#include "common/restrictions.h"
#include "http/dialect.h"
#include "http1/http_server.h"

namespace nereid::http {

// The sender of a request, as far as its head tells.
class HeadSender final : public access::Sender {
 public:
  explicit HeadSender(const http1::HttpHead& head) : head_(head) {}
  std::string_view Authorization() const override { return head_.Header("Authorization"); }
  std::string_view ApiKey() const override { return head_.Header("X-API-Key"); }
  const net::PeerIdentity* certificate() const override { return nullptr; }
  std::string Address() const override { return {}; }

 private:
  const http1::HttpHead& head_;
};

// The sender of a request, as its head and its connection identify it.
class ExchangeSender final : public access::Sender {
 public:
  explicit ExchangeSender(const http1::HttpExchange& exchange)
      : head_(exchange.head()), exchange_(exchange) {}
  std::string_view Authorization() const override { return head_.Authorization(); }
  std::string_view ApiKey() const override { return head_.ApiKey(); }
  const net::PeerIdentity* certificate() const override { return exchange_.peer_identity(); }
  std::string Address() const override { return exchange_.PeerAddress(); }

 private:
  const HeadSender head_;
  const http1::HttpExchange& exchange_;
};

// Where requests of the control scopes are served, if not everywhere.
struct ControlPlace {
  bool is_elsewhere = false;
  std::string where;  // for the message to those who ask here
};

// Asks the gate, if there is one (null: everybody may do everything), and arranges for the line in
// the log that requests of some scopes get. Replies and returns false if the request may not
// proceed; otherwise SenderOf tells who sent it.
bool AdmitSender(http1::HttpExchangePtr& exchange, access::Gate* gate, access::Scope scope,
                 std::string_view model, const ControlPlace& control,
                 const Dialect& dialect = kTritonDialect);

// Like AdmitSender, for a model that is known only when the body has been read.
bool AdmitModel(http1::HttpExchangePtr& exchange, access::Gate* gate, std::string_view model,
                const Dialect& dialect = kTritonDialect);

// Refuses what tells of all models, or changes something for all of them, to an admitted sender who
// may use only some. Replies and returns false if so.
bool AdmitToAllModels(http1::HttpExchangePtr& exchange);

// Refuses requests of a category that need a header which this one lacks (--http-restricted-api).
// Replies and returns false if so.
bool AdmitCategory(http1::HttpExchangePtr& exchange, const common::Restrictions& restrictions,
                   common::Category category, const Dialect& dialect = kTritonDialect);
// Whether AdmitCategory will refuse a request with this head.
bool IsRefused(const http1::HttpHead& head, const common::Restrictions& restrictions,
               common::Category category);

// What the sender was found to be allowed. Null if nobody asked. Valid until the reply.
inline const access::Grant* GrantOf(const http1::HttpExchange& exchange) {
  return static_cast<const access::Grant*>(exchange.sender().get());
}
access::GrantRef SenderOf(const http1::HttpExchange& exchange);
inline core::CallerRef CallerOf(const http1::HttpExchange& exchange) {
  const access::Grant* const grant = GrantOf(exchange);
  return grant == nullptr ? nullptr : grant->caller;
}

}  // namespace nereid::http
