// SPDX-License-Identifier: Apache-2.0
// A lower limit: an HTTP/1.1 server on one thread that sends the tensor of a request back and does
// nothing else that a server does.
//
//   http_floor --port=8000
//
// It reads only the lengths in a request's head, handles one request of a connection at a time, and
// replies as an identity model would.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "load/options.h"
#include "load/socket.h"

namespace nereid::bench {
namespace {

constexpr size_t kRoom = 16 * 1024;

size_t Number(std::string_view head, std::string_view name) {
  for (size_t at = head.find("\r\n"); at != head.npos; at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2);
    if (line.size() > name.size() && strncasecmp(line.data(), name.data(), name.size()) == 0) {
      return std::strtoull(line.data() + name.size(), nullptr, 10);
    }
  }
  return 0;
}

// A connection: the received part of its request, then the rest of the reply.
class Connection {
 public:
  Connection(int fd, const std::string& events) : fd_(fd), events_(events), data_(kRoom) {}
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
  bool is_sending() const { return sent_ < head_.size() + tail_.size(); }

  // Returns false when the connection is closed.
  bool Read() {
    for (;;) {
      const ssize_t n = recv(fd_, data_.data() + size_, data_.size() - size_, 0);
      if (n < 0 && errno == EAGAIN) return true;
      if (n <= 0) return false;
      size_ += static_cast<size_t>(n);
      if (total_ == 0) ReadHead();
      if (total_ != 0 && size_ >= total_) {
        Answer();
        return Write();
      }
      if (size_ < data_.size() && total_ == 0) return true;
    }
  }

  bool Write() {
    while (is_sending()) {
      const size_t head_sent = std::min(sent_, head_.size());
      iovec parts[2] = {{head_.data() + head_sent, head_.size() - head_sent},
                        {const_cast<char*>(tail_.data()) + (sent_ - head_sent),
                         tail_.size() - (sent_ - head_sent)}};
      msghdr message{};
      message.msg_iov = parts;
      message.msg_iovlen = 2;
      const ssize_t n = sendmsg(fd_, &message, MSG_NOSIGNAL);
      if (n < 0) return errno == EAGAIN;
      sent_ += static_cast<size_t>(n);
    }
    size_ = total_ = sent_ = 0;
    head_.clear();
    tail_ = {};
    return true;
  }

 private:
  void ReadHead() {
    const std::string_view text(data_.data(), size_);
    const size_t end = text.find("\r\n\r\n");
    if (end == text.npos) return;
    const std::string_view head = text.substr(0, end + 2);
    body_at_ = end + 4;
    total_ = body_at_ + Number(head, "content-length:");
    json_size_ = Number(head, "inference-header-content-length:");
    if (total_ > data_.size()) data_.resize(total_);
  }

  void Answer() {
    if (!events_.empty()) {
      head_ = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
      tail_ = events_;
      return;
    }
    const size_t tensor_at = body_at_ + json_size_;
    tail_ = std::string_view(data_.data() + tensor_at, total_ - tensor_at);
    const std::string json =
        "{\"model_name\":\"id\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"OUTPUT0\","
        "\"datatype\":\"FP32\",\"shape\":[" +
        std::to_string(tail_.size() / 4) +
        "],\"parameters\":{\"binary_data_size\":" + std::to_string(tail_.size()) + "}}]}";
    head_ =
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
        "Inference-Header-Content-Length: " +
        std::to_string(json.size()) +
        "\r\nContent-Length: " + std::to_string(json.size() + tail_.size()) + "\r\n\r\n" + json;
  }

  const int fd_;
  const std::string& events_;
  std::vector<char> data_;
  size_t size_ = 0;   // bytes received
  size_t total_ = 0;  // of the request, once its head is known
  size_t body_at_ = 0;
  size_t json_size_ = 0;
  std::string head_;
  std::string_view tail_;
  size_t sent_ = 0;
};

// The reply to a request with this many responses.
std::string MakeEvents(size_t count) {
  if (count == 0) return {};
  const std::string chunk =
      "5a\r\ndata: {\"IDX\":100,\"OUT\":100,\"model_name\":\"repeat\",\"model_version\":\"1\"} "
      "                  \n\n\r\n";
  std::string events;
  for (size_t i = 0; i < count; ++i) events += chunk;
  return events + "0\r\n\r\n";
}

void Serve(int port, const std::string& events) {
  const int listener = ListenAt(port);
  Poller poller;
  poller.Add(listener, nullptr);
  for (;;) {
    poller.Wait(-1, [&](void* user, uint32_t) {
      if (user == nullptr) {
        auto* accepted = new Connection(AcceptFrom(listener), events);
        poller.Add(accepted->fd(), accepted);
        return;
      }
      auto* connection = static_cast<Connection*>(user);
      const bool was_sending = connection->is_sending();
      if (!(was_sending ? connection->Write() : connection->Read())) {
        delete connection;
      } else if (connection->is_sending() != was_sending) {
        poller.WantWrite(connection->fd(), connection, connection->is_sending());
      }
    });
  }
}

}  // namespace
}  // namespace nereid::bench

int main(int argc, char** argv) {
  const nereid::bench::Options options(argc, argv);
  nereid::bench::Serve(static_cast<int>(options.Count("port", 8000)),
                       nereid::bench::MakeEvents(options.Count("responses", 0)));
}
