// SPDX-License-Identifier: Apache-2.0
// A load generator for HTTP inference with little overhead: one thread, one epoll, prepared
// requests.
//
//   http_load --port=8000 --path=/v2/models/M/infer --body=FILE [--head=N] [--connections=16] ...
//
//   --path=P        may be repeated: each request chooses one by Zipf's law (--zipf=1)
//   --body=FILE     the body; --head=N: its first N bytes are JSON, the rest tensors
//   --header=LINE   a further header of every request ("Content-Type: application/json"); may be
//   repeated
//   --middle=FILE --last=FILE --sequence-length=20
//                   sequences, whose first request is --body; each has "sequence_id":1000000000;
//                   --middle-head=N, --last-head=N
//   --check         every reply must be the same as the first, byte for byte
//   --answer=FILE   writes the first reply's body
//   --any-length    replies to the same request may differ in length, as numbers in JSON do when
//   the
//                   size of the batch that a request was part of decides how their last digit is
//                   rounded
//
// and the options of load/driver.h. Prints one JSON object. A reply that is not 200, or (without
// --any-length) one to the same request whose length differs from the first, ends the run with an
// error.

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "load/driver.h"
#include "load/options.h"
#include "load/socket.h"
#include "loadgen/http_reply_reader.h"

namespace nereid::bench {
namespace {

std::string MakeRequest(const std::string& path, const std::vector<std::string>& headers,
                        const std::string& body, size_t head_size) {
  std::string request = "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ";
  request += std::to_string(body.size());
  if (head_size != 0) {
    request += "\r\nInference-Header-Content-Length: " + std::to_string(head_size);
  }
  for (const std::string& header : headers) request += "\r\n" + header;
  return request + "\r\n\r\n" + body;
}

Requests MakeRequests(const Options& options) {
  const std::vector<std::string> headers = options.All("header");
  const std::vector<std::string> paths = options.All("path");
  if (paths.empty()) Die("--path is missing");
  const size_t head_size = options.Count("head", 0);
  const std::string body = options.File("body");
  if (options.Has("middle")) {
    const auto request = [&](const std::string& which) {
      return MakeRequest(paths[0], headers, options.File(which), options.Count(which + "-head", 0));
    };
    return Requests::Sequence(MakeRequest(paths[0], headers, body, head_size), request("middle"),
                              request("last"), options.Count("sequence-length", 20),
                              Requests::IdForm::kDecimal);
  }
  if (paths.size() == 1) return Requests::One(MakeRequest(paths[0], headers, body, head_size));
  std::vector<std::string> requests;
  for (const std::string& path : paths) {
    requests.push_back(MakeRequest(path, headers, body, head_size));
  }
  return Requests::Zipf(std::move(requests), options.Number("zipf", 1));
}

struct Connection : Slot {
  int fd = -1;
  std::string_view request;
  size_t sent = 0;
  loadgen::HttpReplyReader answer;
};

// Runs the load. Confined to one thread.
class Load {
 public:
  explicit Load(const Options& options)
      : driver_(options, MakeRequests(options),
                [this](Slot& slot, std::string_view request) {
                  Begin(static_cast<Connection&>(slot), request);
                }),
        connections_(options.Count("connections", 1)),
        buffer_(new char[kBufferSize]),
        check_(options.Has("check")),
        any_length_(options.Has("any-length")),
        answer_file_(options.Text("answer", "")) {
    for (Connection& connection : connections_) {
      connection.fd = ConnectTo(static_cast<int>(options.Count("port", 8000)));
      poller_.Add(connection.fd, &connection);
      driver_.Add(connection);
    }
  }

  void Run() {
    driver_.Begin();
    while (!driver_.IsDone()) {
      poller_.Wait(driver_.WaitMs(), [this](void* user, uint32_t events) {
        Connection& connection = *static_cast<Connection*>(user);
        if (events & EPOLLOUT) SendRest(connection);
        if (events & ~uint32_t{EPOLLOUT}) Receive(connection);
      });
      driver_.Tick();
    }
    driver_.Print();
  }

 private:
  static constexpr size_t kBufferSize = 1 << 20;

  void Begin(Connection& connection, std::string_view request) {
    connection.request = request;
    connection.sent = 0;
    connection.answer.Reset(check_ || (!has_first_ && !answer_file_.empty()));
    if (!SendSome(connection)) poller_.WantWrite(connection.fd, &connection, true);
  }

  void SendRest(Connection& connection) {
    if (SendSome(connection)) poller_.WantWrite(connection.fd, &connection, false);
  }

  // Sends what the socket accepts; returns whether that was everything.
  static bool SendSome(Connection& connection) {
    while (connection.sent < connection.request.size()) {
      const std::string_view rest = connection.request.substr(connection.sent);
      const ssize_t n = send(connection.fd, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EAGAIN) return false;
      if (n < 0) Die(std::string("send: ") + std::strerror(errno));
      connection.sent += static_cast<size_t>(n);
    }
    return true;
  }

  void Receive(Connection& connection) {
    const ssize_t n = recv(connection.fd, buffer_.get(), kBufferSize, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) Die("the server closed a connection");
    loadgen::HttpReplyReader& answer = connection.answer;
    if (answer.is_complete()) Die("an answer to no request");
    const auto events = answer.Feed({buffer_.get(), static_cast<size_t>(n)});
    if (!events.ok()) Die(std::string(events.status().message()));
    if (answer.is_complete() && answer.status() != 200) {
      Die("the server answered with status " + std::to_string(answer.status()) + ": " +
          answer.body());
    }
    if (*events != 0) driver_.Responded(connection, *events);
    if (!answer.is_complete()) return;
    if (!answer.is_events()) {
      CheckAnswer(answer);
      driver_.Responded(connection);
    }
    driver_.Finished(connection);
  }

  void CheckAnswer(const loadgen::HttpReplyReader& answer) {
    if (!has_first_) {
      has_first_ = true;
      first_size_ = answer.body_size();
      first_body_ = answer.body();
      if (!answer_file_.empty()) WriteFile(answer_file_, first_body_);
    }
    if (!driver_.answers_are_alike()) return;
    if (!any_length_ && answer.body_size() != first_size_)
      Die("an answer of another length than the first");
    if (check_ && answer.body() != first_body_) Die("another answer than the first");
  }

  Driver driver_;
  Poller poller_;
  std::vector<Connection> connections_;
  std::unique_ptr<char[]> buffer_;
  const bool check_;
  const bool any_length_;
  const std::string answer_file_;
  bool has_first_ = false;
  size_t first_size_ = 0;
  std::string first_body_;
};

}  // namespace
}  // namespace nereid::bench

int main(int argc, char** argv) {
  nereid::bench::RaiseFileLimit();
  const nereid::bench::Options options(argc, argv);
  nereid::bench::Load(options).Run();
}
