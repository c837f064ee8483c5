// SPDX-License-Identifier: Apache-2.0
// Field numbers: opentelemetry/proto/trace/v1/trace.proto and its imports.
#include "observe/otlp.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "base/log.h"
#include "base/unique_fd.h"

namespace nereid::observe {
namespace {

// How long the collector may take to connect, and to answer.
constexpr int kTimeoutMs = 10'000;

// -- Protobuf, as much of it as is needed. --

void PutVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void PutBytes(std::string& out, uint32_t field, std::string_view bytes) {
  PutVarint(out, field << 3 | 2);
  PutVarint(out, bytes.size());
  out += bytes;
}

template <size_t size>
void PutBytes(std::string& out, uint32_t field, const std::array<uint8_t, size>& bytes) {
  PutBytes(out, field, {reinterpret_cast<const char*>(bytes.data()), size});
}

void PutNumber(std::string& out, uint32_t field, uint64_t value) {
  PutVarint(out, field << 3);
  PutVarint(out, value);
}

void PutFixed64(std::string& out, uint32_t field, uint64_t value) {
  PutVarint(out, field << 3 | 1);
  for (int i = 0; i < 8; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

void PutAttribute(std::string& out, uint32_t field, const Span::Attribute& attribute) {
  std::string value;
  if (const auto* text = std::get_if<std::string>(&attribute.second); text != nullptr) {
    PutBytes(value, 1, *text);
  } else {
    PutNumber(value, 3, static_cast<uint64_t>(std::get<int64_t>(attribute.second)));
  }
  std::string pair;
  PutBytes(pair, 1, attribute.first);
  PutBytes(pair, 2, value);
  PutBytes(out, field, pair);
}

std::string EncodeSpan(const Span& span) {
  constexpr uint64_t kServer = 2;
  std::string out;
  PutBytes(out, 1, span.context.trace_id);
  PutBytes(out, 2, span.context.span_id);
  if (!span.context.state.empty()) PutBytes(out, 3, span.context.state);
  if (span.parent) PutBytes(out, 4, *span.parent);
  PutBytes(out, 5, span.name);
  PutNumber(out, 6, kServer);
  PutFixed64(out, 7, span.start_unix_ns);
  PutFixed64(out, 8, span.end_unix_ns);
  for (const Span::Attribute& attribute : span.attributes) PutAttribute(out, 9, attribute);
  for (const Span::Event& event : span.events) {
    std::string text;
    PutFixed64(text, 1, event.unix_ns);
    PutBytes(text, 2, event.name);
    PutBytes(out, 11, text);
  }
  return out;
}

// -- W3C trace context. --

template <size_t size>
bool ReadHex(std::string_view text, std::array<uint8_t, size>& bytes) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (text.size() != 2 * size) return false;
  for (size_t i = 0; i < size; ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

template <typename Bytes>
std::string Hex(const Bytes& bytes) {
  std::string text;
  for (const uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

template <size_t size>
std::array<uint8_t, size> RandomBytes() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  std::array<uint8_t, size> bytes{};
  while (std::ranges::all_of(bytes, [](uint8_t b) { return b == 0; })) {
    for (size_t i = 0; i < size; i += 8) {
      const uint64_t value = engine();
      std::memcpy(bytes.data() + i, &value, 8);
    }
  }
  return bytes;
}

// -- One HTTP request at a time. --

bool WaitFor(int fd, short events) {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&entry, 1, kTimeoutMs);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

base::Result<base::UniqueFd> Connect(const HttpUrl& url) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &list);
      error != 0) {
    return base::UnavailableError(::gai_strerror(error));
  }
  std::string why = "no address";
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    base::UniqueFd fd(::socket(entry->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd.get() < 0) continue;
    int error = 0;
    if (::connect(fd.get(), entry->ai_addr, entry->ai_addrlen) != 0) {
      error = errno;
      if (error == EINPROGRESS) {
        socklen_t length = sizeof(error);
        if (!WaitFor(fd.get(), POLLOUT)) {
          error = ETIMEDOUT;
        } else {
          ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
        }
      }
    }
    if (error == 0) {
      ::freeaddrinfo(list);
      return fd;
    }
    why = std::strerror(error);
  }
  ::freeaddrinfo(list);
  return base::UnavailableError(why);
}

base::Status SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (sent < 0 && errno == EAGAIN) {
      if (!WaitFor(fd, POLLOUT)) return base::UnavailableError("the collector takes nothing");
    } else if (sent < 0 && errno != EINTR) {
      return base::UnavailableError(std::strerror(errno));
    }
  }
  return base::OkStatus();
}

// The status of the answer.
base::Result<int> ReceiveStatus(int fd) {
  std::string head;
  char bytes[512];
  while (head.find("\r\n") == std::string::npos && head.size() < 8192) {
    if (!WaitFor(fd, POLLIN)) return base::UnavailableError("the collector does not answer");
    const ssize_t got = ::recv(fd, bytes, sizeof(bytes), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return base::UnavailableError("the collector closed the connection");
    head.append(bytes, static_cast<size_t>(got));
  }
  if (!head.starts_with("HTTP/1.") || head.size() < 12) {
    return base::UnavailableError("the answer is not HTTP");
  }
  return std::atoi(head.c_str() + 9);
}

base::Status Post(const HttpUrl& url, std::string_view body) {
  NEREID_ASSIGN_OR_RETURN(const base::UniqueFd fd, Connect(url));
  const bool is_v6 = url.host.find(':') != std::string::npos;
  const std::string head = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}{}{}:{}\r\nContent-Type: application/x-protobuf\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n",
      url.path, is_v6 ? "[" : "", url.host, is_v6 ? "]" : "", url.port, body.size());
  NEREID_RETURN_IF_ERROR(SendAll(fd.get(), head));
  NEREID_RETURN_IF_ERROR(SendAll(fd.get(), body));
  NEREID_ASSIGN_OR_RETURN(const int status, ReceiveStatus(fd.get()));
  if (status / 100 == 2) return base::OkStatus();
  return base::UnavailableError(fmt::format("the collector answers with status {}", status));
}

}  // namespace

std::optional<SpanContext> ParseTraceParent(std::string_view traceparent,
                                            std::string_view tracestate) {
  constexpr size_t kLength = 55;
  SpanContext context;
  std::array<uint8_t, 1> version{};
  std::array<uint8_t, 1> flags{};
  if (traceparent.size() < kLength || traceparent[2] != '-' || traceparent[35] != '-' ||
      traceparent[52] != '-' || !ReadHex(traceparent.substr(0, 2), version) ||
      !ReadHex(traceparent.substr(3, 32), context.trace_id) ||
      !ReadHex(traceparent.substr(36, 16), context.span_id) ||
      !ReadHex(traceparent.substr(53, 2), flags)) {
    return std::nullopt;
  }
  // Later versions may say more behind it.
  if (version[0] == 0xFF || (version[0] == 0 && traceparent.size() != kLength) ||
      (traceparent.size() > kLength && traceparent[kLength] != '-')) {
    return std::nullopt;
  }
  if (context.trace_id == TraceIdBytes{} || context.span_id == SpanIdBytes{}) return std::nullopt;
  context.flags = flags[0];
  context.state = tracestate;
  return context;
}

std::string FormatTraceParent(const SpanContext& context) {
  return fmt::format("00-{}-{}-{:02x}", Hex(context.trace_id), Hex(context.span_id), context.flags);
}

SpanIdBytes RandomSpanId() { return RandomBytes<8>(); }
TraceIdBytes RandomTraceId() { return RandomBytes<16>(); }

std::string EncodeSpans(const std::vector<std::pair<std::string, std::string>>& resource,
                        const std::deque<Span>& spans) {
  std::string attributes;
  for (const auto& [key, value] : resource) PutAttribute(attributes, 1, {key, value});
  std::string scope;
  PutBytes(scope, 1, "triton-server");
  std::string scope_spans;
  PutBytes(scope_spans, 1, scope);
  for (const Span& span : spans) PutBytes(scope_spans, 2, EncodeSpan(span));
  std::string resource_spans;
  PutBytes(resource_spans, 1, attributes);
  PutBytes(resource_spans, 2, scope_spans);
  std::string request;
  PutBytes(request, 1, resource_spans);
  return request;
}

base::Result<HttpUrl> ParseHttpUrl(std::string_view url) {
  if (url.starts_with("https://")) {
    return base::UnsupportedError(
        "collectors are reached over http://; a collector on this machine can pass traces on");
  }
  if (url.starts_with("http://")) url.remove_prefix(7);
  const size_t slash = url.find('/');
  std::string_view host = url.substr(0, slash);
  HttpUrl parsed;
  parsed.path = slash == std::string_view::npos ? "/" : std::string(url.substr(slash));
  const size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && !host.ends_with(']');
  parsed.port = has_port ? std::string(host.substr(colon + 1)) : "80";
  host = has_port ? host.substr(0, colon) : host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  parsed.host = host;
  const bool is_number = !parsed.port.empty() && std::ranges::all_of(parsed.port, [](char c) {
    return c >= '0' && c <= '9';
  });
  const bool is_clean = std::ranges::none_of(
      url, [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; });
  if (parsed.host.empty() || !is_number || !is_clean) {
    return base::InvalidArgumentError(
        fmt::format("expected http://<host>:<port>/<path>, got: {}", url));
  }
  return parsed;
}

base::Result<std::unique_ptr<OtlpExporter>> OtlpExporter::Start(OtlpOptions options) {
  NEREID_ASSIGN_OR_RETURN(HttpUrl url, ParseHttpUrl(options.url));
  return std::unique_ptr<OtlpExporter>(new OtlpExporter(std::move(options), std::move(url)));
}

OtlpExporter::OtlpExporter(OtlpOptions options, HttpUrl url)
    : options_(std::move(options)), url_(std::move(url)) {
  resource_ = {{"service.name", "triton-inference-server"},
               {"telemetry.sdk.language", "cpp"},
               {"telemetry.sdk.name", "nereid"}};
  for (const auto& [key, value] : options_.resource) {
    const auto known = std::ranges::find(resource_, key, &decltype(resource_)::value_type::first);
    if (known != resource_.end()) {
      known->second = value;
    } else {
      resource_.emplace_back(key, value);
    }
  }
  thread_ = base::Thread("otlp", [this] { Run(); });
}

OtlpExporter::~OtlpExporter() {
  {
    base::MutexLock lock(mutex_);
    is_ending_ = true;
    wake_.NotifyOne();
  }
  thread_.Join();
}

void OtlpExporter::Add(Span span) {
  base::MutexLock lock(mutex_);
  if (queue_.size() >= options_.max_queue_size) {
    ++dropped_;
    return;
  }
  queue_.push_back(std::move(span));
  if (queue_.size() >= options_.max_export_batch_size) wake_.NotifyOne();
}

void OtlpExporter::Run() {
  base::TimePoint due = std::chrono::steady_clock::now() + options_.schedule_delay;
  while (true) {
    std::deque<Span> batch;
    uint64_t dropped = 0;
    bool is_ending = false;
    {
      base::MutexLock lock(mutex_);
      while (!is_ending_ && queue_.size() < options_.max_export_batch_size) {
        if (!wake_.WaitUntil(mutex_, due)) break;
      }
      is_ending = is_ending_;
      const size_t count = std::min<size_t>(queue_.size(), options_.max_export_batch_size);
      for (size_t i = 0; i < count; ++i) {
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      dropped = std::exchange(dropped_, 0);
    }
    if (dropped > 0) {
      // The first sentence is OpenTelemetry's, which people look for.
      NEREID_LOG(kWarning,
                 "BatchSpanProcessor queue is full - dropping span. {} were dropped: the collector "
                 "is too slow",
                 dropped);
    }
    if (!batch.empty()) Send(batch);
    if (is_ending && (batch.empty() || has_failed_)) return;
    due = std::chrono::steady_clock::now() + options_.schedule_delay;
  }
}

void OtlpExporter::Send(const std::deque<Span>& spans) {
  const base::Status status = Post(url_, EncodeSpans(resource_, spans));
  const bool had_failed = std::exchange(has_failed_, !status.ok());
  // Once, not with every batch.
  if (!status.ok() && !had_failed) {
    NEREID_LOG(kError, "failed to export {} spans to {}: {}", spans.size(), options_.url,
               status.message());
  }
}

}  // namespace nereid::observe
