// SPDX-License-Identifier: Apache-2.0
#include "http1/http_head_parser.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "net/ascii.h"

namespace nereid::http1 {
namespace {

constexpr std::string_view kTooManyChunks =
    "Chunked request body exceeds maximum of 65536 non-empty chunks. Send fewer or larger HTTP "
    "chunks.";
constexpr std::string_view kBadRequest = "malformed HTTP request";

HttpMethod MethodOf(boost::beast::http::verb method) {
  using boost::beast::http::verb;
  switch (method) {
    case verb::get:
      return HttpMethod::kGet;
    case verb::head:
      return HttpMethod::kHead;
    case verb::post:
      return HttpMethod::kPost;
    case verb::put:
      return HttpMethod::kPut;
    case verb::delete_:
      return HttpMethod::kDelete;
    case verb::options:
      return HttpMethod::kOptions;
    case verb::patch:
      return HttpMethod::kPatch;
    default:
      return HttpMethod::kOther;
  }
}

std::string_view Text(boost::beast::string_view view) { return {view.data(), view.size()}; }

// Returns the path and the query of a target that is a whole address, which any server has to take
// (RFC 9112, 3.2.2); any other target as it is.
std::string_view WithoutAuthority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!net::EqualsIgnoringCase(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
    return target.empty() ? "/" : target;
  }
  return target;
}

}  // namespace

std::string_view HttpHead::query() const {
  const size_t mark = target_.find('?');
  return mark == std::string_view::npos ? std::string_view() : target_.substr(mark + 1);
}

std::optional<std::string_view> HttpHead::FindHeader(std::string_view name) const {
  for (const HttpHeader& header : headers_) {
    if (net::EqualsIgnoringCase(header.name, name)) return header.value;
  }
  return std::nullopt;
}

HttpHeadScanner::State HttpHeadScanner::Scan(std::string_view data) {
  while (line_ < data.size()) {
    const char* start = data.data() + line_;
    const auto* end = static_cast<const char*>(std::memchr(start, '\n', data.size() - line_));
    if (end == nullptr) return State::kIncomplete;
    if (end == start || end[-1] != '\r') return State::kBad;                  // bare line feed
    if (line_ != 0 && (*start == ' ' || *start == '\t')) return State::kBad;  // folded line
    const bool blank = end - start == 1;
    const bool first = line_ == 0;
    line_ = static_cast<size_t>(end - data.data()) + 1;
    if (blank && !first) return State::kComplete;
    if (blank) return State::kBad;
  }
  return State::kIncomplete;
}

HttpHeadParser::HttpHeadParser(HttpHead& head, size_t max_header_bytes) : head_(head) {
  header_limit(static_cast<std::uint32_t>(max_header_bytes));
  body_limit(boost::none);
  head.headers_.clear();
  head.content_length_.reset();
  head.chunked_ = head.expect_continue_ = false;
}

void HttpHeadParser::Refuse(int status, std::string_view text, Error& error) {
  refusal_ = {status, text};
  error = boost::beast::http::error::bad_value;
}

HttpRefusal HttpHeadParser::ParseHead(std::string_view data) {
  Error error;
  const size_t consumed = put(boost::asio::const_buffer(data.data(), data.size()), error);
  in_head_ = false;
  if (refusal_.status != 0) return refusal_;
  if (error == boost::beast::http::error::bad_version) {
    return {505, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  }
  if (error || consumed != data.size() || !is_header_done()) return {400, kBadRequest};
  if (encoding_seen_ && (!chunked() || head_.version_ < 11)) {
    return {400, "unsupported Transfer-Encoding"};
  }
  // RFC 9112, 3.2.
  if (!host_seen_ && head_.version_ >= 11) return {400, "a request needs a Host field"};
  head_.keep_alive_ = keep_alive();
  head_.chunked_ = chunked();
  if (const auto length = content_length(); length && !head_.chunked_) {
    head_.content_length_ = *length;
  }
  return {};
}

HttpHeadParser::Progress HttpHeadParser::ParseChunks(std::string_view data, HttpChunkSink& sink) {
  Progress progress;
  sink_ = &sink;
  input_ = data;
  while (!is_done()) {
    Error error;
    const size_t consumed = put(
        boost::asio::const_buffer(data.data() + progress.consumed, data.size() - progress.consumed),
        error);
    progress.consumed += consumed;
    if (refusal_.status != 0) {
      progress.refusal = refusal_;
      return progress;
    }
    if (error == boost::beast::http::error::need_more) return progress;
    if (error) {
      progress.refusal = {400, "malformed chunked request body"};
      return progress;
    }
    if (consumed == 0 && !is_done()) return progress;
  }
  progress.done = true;
  return progress;
}

void HttpHeadParser::on_request_impl(Verb method, boost::beast::string_view method_text,
                                     boost::beast::string_view target, int version, Error&) {
  head_.method_ = MethodOf(method);
  head_.method_text_ = Text(method_text);
  head_.target_ = WithoutAuthority(Text(target));
  head_.version_ = version;
}

void HttpHeadParser::on_field_impl(Field name, boost::beast::string_view name_text,
                                   boost::beast::string_view value, Error& error) {
  if (!in_head_) {
    // The parser checks trailers, but nothing uses them. The value of a folded one lies elsewhere.
    const char* const begin = value.data();
    if (!value.empty() && (begin < input_.data() || begin >= input_.data() + input_.size())) {
      Refuse(400, "a folded line in the trailers", error);
    }
    return;
  }
  if (head_.headers_.size() == HttpHead::kMaxHeaders) {
    return Refuse(431, "too many request header fields", error);
  }
  head_.headers_.push_back({Text(name_text), Text(value)});
  switch (name) {
    case Field::content_length:
      if (length_seen_ || encoding_seen_ || Text(value).find(',') != std::string_view::npos) {
        return Refuse(400, "conflicting Content-Length", error);
      }
      length_seen_ = true;
      break;
    case Field::host:
      if (std::exchange(host_seen_, true)) {
        return Refuse(400, "more than one Host field", error);
      }
      break;
    case Field::transfer_encoding:
      if (length_seen_ || encoding_seen_ || !net::EqualsIgnoringCase(Text(value), "chunked")) {
        return Refuse(400, "unsupported Transfer-Encoding", error);
      }
      encoding_seen_ = true;
      break;
    case Field::expect:
      if (!net::EqualsIgnoringCase(Text(value), "100-continue")) {
        return Refuse(417, "unsupported Expect", error);
      }
      head_.expect_continue_ = head_.version_ >= 11;
      break;
    default:
      break;
  }
}

void HttpHeadParser::on_chunk_header_impl(std::uint64_t size, boost::beast::string_view,
                                          Error& error) {
  if (size != 0 && ++chunk_count_ > kMaxChunks) Refuse(400, kTooManyChunks, error);
}

std::size_t HttpHeadParser::on_chunk_body_impl(std::uint64_t, boost::beast::string_view body,
                                               Error&) {
  sink_->OnChunkBytes(Text(body));
  return body.size();
}

}  // namespace nereid::http1
