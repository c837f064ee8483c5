// SPDX-License-Identifier: Apache-2.0
// A closed-loop load generator for HTTP inference that costs little itself: one thread, one epoll,
// the same request over and over on every connection, the next one as soon as the answer is in.
//
//   http_load --port=8000 --model=identity --shape=1,16 --connections=16 --seconds=2 [--warmup=0.5]
//             [--input=INPUT0] [--datatype=FP32] [--json]
//
// Prints one JSON object: requests counted, all requests made, seconds, requests per second, and
// latencies in microseconds. An answer that is not 200, or not as long as the first, ends the run
// with an error.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "http_load: %s\n", message.c_str());
  std::exit(1);
}

// --- Options ---------------------------------------------------------------------------------

// The command line as --name=value pairs; a bare --name has the value "1".
class Options {
 public:
  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      std::string_view argument = argv[i];
      if (argument.substr(0, 2) != "--") Die("unknown argument " + std::string(argument));
      argument.remove_prefix(2);
      const size_t equals = argument.find('=');
      const std::string name(argument.substr(0, equals));
      values_[name] = equals == argument.npos ? "1" : std::string(argument.substr(equals + 1));
    }
  }

  std::string Text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }
  double Number(const std::string& name, double otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::strtod(found->second.c_str(), nullptr);
  }
  bool Has(const std::string& name) const { return values_.count(name) != 0; }

 private:
  std::map<std::string, std::string> values_;
};

// --- The request -----------------------------------------------------------------------------

size_t ElementCount(const std::string& shape) {
  size_t count = 1;
  for (const char* at = shape.c_str(); *at != '\0';) {
    char* end = nullptr;
    count *= std::strtoull(at, &end, 10);
    if (end == at) Die("a shape is numbers with commas between them, not " + shape);
    at = *end == ',' ? end + 1 : end;
  }
  return count;
}

size_t ElementSize(const std::string& datatype) {
  static const std::map<std::string, size_t> kSizes = {
      {"BOOL", 1},   {"UINT8", 1}, {"INT8", 1},  {"UINT16", 2}, {"INT16", 2},
      {"FP16", 2},   {"BF16", 2},  {"INT32", 4}, {"UINT32", 4}, {"FP32", 4},
      {"UINT64", 8}, {"INT64", 8}, {"FP64", 8}};
  const auto found = kSizes.find(datatype);
  if (found == kSizes.end()) Die("no such data type: " + datatype);
  return found->second;
}

// The body: a JSON head and, unless `json`, the tensor's bytes, which are all zero.
std::string MakeBody(const Options& options, size_t* head_size) {
  const std::string shape = options.Text("shape", "1,16");
  const std::string datatype = options.Text("datatype", "FP32");
  const size_t count = ElementCount(shape);
  std::string body = "{\"inputs\":[{\"name\":\"" + options.Text("input", "INPUT0") +
                     "\",\"shape\":[" + shape + "],\"datatype\":\"" + datatype + "\",";
  if (options.Has("json")) {
    body += "\"data\":[";
    for (size_t i = 0; i < count; ++i) {
      char number[32];
      std::snprintf(number, sizeof(number), "%s%g", i == 0 ? "" : ",",
                    static_cast<double>(i % 997) / 8);
      body += number;
    }
    body += "]}]}";
    *head_size = body.size();
    return body;
  }
  const size_t bytes = count * ElementSize(datatype);
  body += "\"parameters\":{\"binary_data_size\":" + std::to_string(bytes) +
          "}}],\"parameters\":{\"binary_data_output\":true}}";
  *head_size = body.size();
  body.append(bytes, '\0');
  return body;
}

std::string MakeRequest(const Options& options) {
  size_t head_size = 0;
  const std::string body = MakeBody(options, &head_size);
  return "POST /v2/models/" + options.Text("model", "identity") +
         "/infer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nInference-Header-Content-Length: " + std::to_string(head_size) + "\r\n\r\n" + body;
}

// --- The connections -------------------------------------------------------------------------

// Where a connection is in its request or in the answer to it.
struct Connection {
  int fd = -1;
  size_t sent = 0;
  std::string head;      // of the answer, until its end is seen
  size_t body_left = 0;  // of the answer, once its head is known
  bool head_is_read = false;
  Clock::time_point start;
};

// The value of Content-Length in an answer's head, whose status must be 200.
size_t BodySize(std::string_view head) {
  if (head.substr(9, 3) != "200") Die("the server answered: " + std::string(head));
  for (size_t at = head.find("\r\n"); at != head.npos; at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2);
    constexpr std::string_view kName = "content-length:";
    if (line.size() > kName.size() && strncasecmp(line.data(), kName.data(), kName.size()) == 0) {
      return std::strtoull(line.data() + kName.size(), nullptr, 10);
    }
  }
  Die("the answer has no Content-Length: " + std::string(head));
}

// Runs the load. Confined to one thread.
class Load {
 public:
  explicit Load(const Options& options)
      : request_(MakeRequest(options)), port_(static_cast<int>(options.Number("port", 8000))) {
    connections_.resize(static_cast<size_t>(options.Number("connections", 1)));
    latencies_.reserve(1 << 20);
    buffer_.reset(new char[kBufferSize]);
  }

  void Run(double warmup_seconds, double seconds) {
    epoll_ = epoll_create1(0);
    for (Connection& connection : connections_) Open(connection);
    const auto start = Clock::now();
    count_from_ = start + Seconds(warmup_seconds);
    const auto end = count_from_ + Seconds(seconds);
    for (Connection& connection : connections_) Start(connection);
    epoll_event events[256];
    while (Clock::now() < end) {
      const int ready = epoll_wait(epoll_, events, 256, 1000);
      for (int i = 0; i < ready; ++i) {
        Connection& connection = *static_cast<Connection*>(events[i].data.ptr);
        if (events[i].events & (EPOLLERR | EPOLLHUP)) Die("a connection broke");
        if (events[i].events & EPOLLOUT) Send(connection);
        if (events[i].events & EPOLLIN) Receive(connection);
      }
    }
    measured_seconds_ = std::chrono::duration<double>(Clock::now() - count_from_).count();
  }

  void Print() {
    if (latencies_.empty()) Die("no request was answered in time");
    std::sort(latencies_.begin(), latencies_.end());
    const auto at = [this](double share) {
      return latencies_[std::min(latencies_.size() - 1,
                                 static_cast<size_t>(share * latencies_.size()))] /
             1000.0;
    };
    std::printf(
        "{\"requests\":%zu,\"all_requests\":%zu,\"seconds\":%.3f,\"per_second\":%.1f,"
        "\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,\"body_bytes\":%zu}\n",
        latencies_.size(), all_, measured_seconds_, latencies_.size() / measured_seconds_, at(0.5),
        at(0.99), latencies_.back() / 1000.0, body_size_);
  }

 private:
  static constexpr size_t kBufferSize = 1 << 20;

  static Clock::duration Seconds(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  void Open(Connection& connection) {
    connection.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(connection.fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      Die("cannot connect to port " + std::to_string(port_) + ": " + std::strerror(errno));
    }
    const int on = 1;
    setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event);
  }

  void Start(Connection& connection) {
    connection.sent = 0;
    connection.head_is_read = false;
    connection.head.clear();
    connection.start = Clock::now();
    Send(connection);
  }

  // Sends what the socket takes; a rest waits for EPOLLOUT.
  void Send(Connection& connection) {
    const bool had_waited = connection.sent != 0;
    while (connection.sent < request_.size()) {
      const ssize_t n = send(connection.fd, request_.data() + connection.sent,
                             request_.size() - connection.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0) {
        if (errno != EAGAIN) Die(std::string("send: ") + std::strerror(errno));
        if (!had_waited) Watch(connection, EPOLLIN | EPOLLOUT);
        return;
      }
      connection.sent += static_cast<size_t>(n);
    }
    if (had_waited) Watch(connection, EPOLLIN);
  }

  void Watch(Connection& connection, uint32_t what) {
    epoll_event event{.events = what, .data = {.ptr = &connection}};
    epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event);
  }

  void Receive(Connection& connection) {
    const ssize_t n = recv(connection.fd, buffer_.get(), kBufferSize, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) Die("the server closed a connection");
    std::string_view got(buffer_.get(), static_cast<size_t>(n));
    if (!connection.head_is_read) {
      got = ReadHead(connection, got);
      if (!connection.head_is_read) return;
    }
    if (got.size() > connection.body_left) Die("the answer is longer than it says");
    connection.body_left -= got.size();
    if (connection.body_left == 0) Finish(connection);
  }

  // Takes the head's bytes off what was received and gives what is left of it.
  std::string_view ReadHead(Connection& connection, std::string_view got) {
    const size_t seen = connection.head.size();
    connection.head.append(got.substr(0, 4096));
    const size_t end = connection.head.find("\r\n\r\n");
    if (end == std::string::npos) {
      if (connection.head.size() > 16384) Die("the answer's head does not end");
      return {};
    }
    connection.head_is_read = true;
    connection.body_left = BodySize(std::string_view(connection.head).substr(0, end + 2));
    if (body_size_ == 0) body_size_ = connection.body_left;
    if (connection.body_left != body_size_) Die("an answer of another length than the first");
    return got.substr(end + 4 - seen);
  }

  void Finish(Connection& connection) {
    ++all_;
    const auto now = Clock::now();
    if (connection.start >= count_from_) {
      latencies_.push_back(
          std::chrono::duration_cast<std::chrono::nanoseconds>(now - connection.start).count());
    }
    Start(connection);
  }

  const std::string request_;
  const int port_;
  int epoll_ = -1;
  std::vector<Connection> connections_;
  std::unique_ptr<char[]> buffer_;
  Clock::time_point count_from_;
  double measured_seconds_ = 0;
  size_t all_ = 0;
  size_t body_size_ = 0;
  std::vector<int64_t> latencies_;  // nanoseconds
};

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  Load load(options);
  load.Run(options.Number("warmup", 0.5), options.Number("seconds", 2));
  load.Print();
}
