// SPDX-License-Identifier: Apache-2.0
#include "http1/http_exchange.h"

#include "http1/http1_connection.h"

namespace nereid::http1 {

void HttpExchangeDropper::operator()(HttpExchange* exchange) const {
  static_cast<Http1Connection*>(exchange)->Drop();
}

std::string HttpExchange::PeerAddress() const {
  return static_cast<const Http1Connection*>(this)->net::Connection::PeerAddress();
}

const net::PeerIdentity* HttpExchange::peer_identity() const {
  return static_cast<const Http1Connection*>(this)->net::Connection::peer_identity();
}

void HttpExchange::SetEvents(HttpExchangeEvents* events) {
  if (events != nullptr) {
    listener_.Set(*events);
  } else {
    listener_.Clear();
  }
}

void HttpExchange::Respond(HttpExchangePtr exchange, HttpReply reply) {
  static_cast<Http1Connection*>(exchange.release())->Reply(reply);
}

bool HttpExchange::StartStream(const HttpReply& reply, std::string_view chunk) {
  return static_cast<Http1Connection*>(this)->BeginStream(reply, chunk);
}

bool HttpExchange::WriteChunk(std::string_view chunk) {
  return static_cast<Http1Connection*>(this)->StreamChunk(chunk);
}

void HttpExchange::EndStream(HttpExchangePtr exchange, std::string_view chunk) {
  static_cast<Http1Connection*>(exchange.release())->FinishStream(chunk);
}

}  // namespace nereid::http1
