// SPDX-License-Identifier: Apache-2.0
// The part of request_client.h for HTTP/1.1: a connection for each call.
#include <vector>

#include <fmt/format.h>

#include "loadgen/http_reply_reader.h"
#include "loadgen/request_client.h"

namespace nereid::loadgen {
namespace {

constexpr size_t kReplyBufferSize = 1 << 20;

// The text of a reply that refuses a request: the value of "error" in its JSON, else its beginning.
std::string RefusalText(const HttpReplyReader& reply) {
  constexpr std::string_view kKey = "\"error\"";
  constexpr size_t kShown = 200;
  const std::string_view body = reply.body();
  const size_t key = body.find(kKey);
  const size_t begin = key == std::string_view::npos
                           ? std::string_view::npos
                           : body.find_first_not_of(" :", key + kKey.size());
  if (begin == std::string_view::npos || body[begin] != '"') {
    return fmt::format("HTTP status {}{}{}", reply.status(), body.empty() ? "" : ": ",
                       body.substr(0, std::min(kShown, body.find_first_of("\r\n"))));
  }
  std::string text;
  for (size_t at = begin + 1; at < body.size() && body[at] != '"'; ++at) {
    if (body[at] != '\\' || at + 1 == body.size()) {
      text += body[at];
    } else if (const char escaped = body[++at];
               escaped == 'n' || escaped == 'r' || escaped == 't') {
      text += ' ';  // an error is shown in one line
    } else {
      text += escaped;
    }
  }
  return text;
}

// The connection of a call.
struct Connection {
  Stream stream;
  std::string_view request;
  size_t sent = 0;
  bool is_busy = false;
  bool wants_write = false;
  HttpReplyReader reply;
};

class HttpRequestClient final : public RequestClient {
 public:
  HttpRequestClient(const Target& target, size_t calls, Poller& poller, OnEnd on_end)
      : target_(target),
        poller_(poller),
        on_end_(std::move(on_end)),
        connections_(calls),
        buffer_(new char[kReplyBufferSize]) {}

  base::Status Begin(size_t call, std::string_view request) override {
    Connection& connection = connections_[call];
    connection.request = request;
    connection.reply.Reset(/*keep_body=*/false);
    connection.is_busy = true;
    // A connection that the server has closed meanwhile fails at once and is made again.
    for (const bool is_last : {false, true}) {
      connection.sent = 0;
      if (!connection.stream.is_open()) {
        auto stream = Stream::Connect(target_.address, target_.tls);
        if (!stream.ok()) {
          connection.is_busy = false;
          return stream.status();
        }
        connection.stream = *std::move(stream);
        connection.wants_write = false;
        poller_.Add(connection.stream.fd(), &connection);
      }
      if (SendSome(connection)) return base::OkStatus();
      connection.stream.Close();
      if (is_last) break;
    }
    connection.is_busy = false;
    return base::UnavailableError(connection.stream.failure());
  }

  void Abandon(size_t call) override {
    connections_[call].stream.Close();
    connections_[call].is_busy = false;
  }

  void Handle(void* user, uint32_t events) override {
    Connection& connection = *static_cast<Connection*>(user);
    // An earlier event of the same round may have closed it.
    if (!connection.stream.is_open()) return;
    if ((events & ~uint32_t{EPOLLOUT}) != 0) Receive(connection);
    // TLS sends only after it has received its handshake, so both are tried.
    if (connection.stream.is_open() && connection.is_busy &&
        connection.sent < connection.request.size() && !SendSome(connection)) {
      Lose(connection, connection.stream.failure());
    }
  }

  void Flush() override {}

 private:
  // Sends what the socket accepts. Returns false if the connection has ended.
  bool SendSome(Connection& connection) {
    bool is_full = false;
    while (connection.sent < connection.request.size() && !is_full) {
      size_t count = 0;
      switch (connection.stream.Send(connection.request.substr(connection.sent), count)) {
        case Stream::Outcome::kSome:
          connection.sent += count;
          break;
        case Stream::Outcome::kNothingYet:
          is_full = true;
          break;
        case Stream::Outcome::kEnd:
          return false;
      }
    }
    if (is_full != connection.wants_write) {
      connection.wants_write = is_full;
      poller_.WantWrite(connection.stream.fd(), &connection, is_full);
    }
    return true;
  }

  void Receive(Connection& connection) {
    do {
      size_t count = 0;
      switch (connection.stream.Receive(buffer_.get(), kReplyBufferSize, count)) {
        case Stream::Outcome::kNothingYet:
          return;
        case Stream::Outcome::kEnd:
          return Lose(connection, connection.stream.failure());
        case Stream::Outcome::kSome:
          break;
      }
      if (!connection.is_busy) return Lose(connection, "a reply to no request");
      const auto fed = connection.reply.Feed({buffer_.get(), count});
      if (!fed.ok()) return Lose(connection, std::string(fed.status().message()));
      if (connection.reply.is_complete()) return Complete(connection);
    } while (connection.stream.has_received());
  }

  void Complete(Connection& connection) {
    const HttpReplyReader& reply = connection.reply;
    connection.is_busy = false;
    // A server that refuses a request while it is still being sent does not read the rest.
    if (reply.closes() || connection.sent < connection.request.size()) connection.stream.Close();
    if (reply.status() == 200) return on_end_(IndexOf(connection), Ending::kSuccess, {});
    on_end_(IndexOf(connection), Ending::kRefused, RefusalText(reply));
  }

  // Ends the connection, and the request on it if there is one.
  void Lose(Connection& connection, std::string why) {
    const bool was_busy = connection.is_busy;
    connection.is_busy = false;
    connection.stream.Close();
    if (!was_busy) return;
    if (why.empty()) why = "the server closed the connection";
    on_end_(IndexOf(connection),
            connection.stream.was_established() ? Ending::kLost : Ending::kNoServer, why);
  }

  size_t IndexOf(const Connection& connection) const {
    return static_cast<size_t>(&connection - connections_.data());
  }

  const Target& target_;
  Poller& poller_;
  const OnEnd on_end_;
  std::vector<Connection> connections_;
  std::unique_ptr<char[]> buffer_;
};

}  // namespace

std::unique_ptr<RequestClient> MakeHttpClient(const Target& target, size_t calls, Poller& poller,
                                              RequestClient::OnEnd on_end) {
  return std::make_unique<HttpRequestClient>(target, calls, poller, std::move(on_end));
}

}  // namespace nereid::loadgen
