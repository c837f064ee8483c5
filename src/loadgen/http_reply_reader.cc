// SPDX-License-Identifier: Apache-2.0
#include "loadgen/http_reply_reader.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace nereid::loadgen {
namespace {

// The text that begins an event. The line's end before it tells it from the same text in the data.
constexpr std::string_view kEvent = "\ndata:";
constexpr std::string_view kLineEnd = "\r\n";
constexpr size_t kHeadStep = 4096;
constexpr size_t kMaxHead = 16384;
constexpr size_t kKeptOfErrors = 4096;

// Returns the value of the header, or nothing.
std::string_view HeaderValue(std::string_view head, std::string_view name) {
  for (size_t at = head.find("\r\n"); at != head.npos; at = head.find("\r\n", at + 2)) {
    std::string_view line = head.substr(at + 2);
    if (line.size() <= name.size() || line[name.size()] != ':') continue;
    if (strncasecmp(line.data(), name.data(), name.size()) != 0) continue;
    line.remove_prefix(name.size() + 1);
    line = line.substr(0, line.find(kLineEnd));
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    while (!line.empty() && line.back() == ' ') line.remove_suffix(1);
    return line;
  }
  return {};
}

bool IsSame(std::string_view text, std::string_view lower_case) {
  return text.size() == lower_case.size() &&
         strncasecmp(text.data(), lower_case.data(), text.size()) == 0;
}

// Reads a text that is nothing but a number.
template <typename Number>
bool ReadNumber(std::string_view text, int base, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc() && at == end;
}

}  // namespace

void HttpReplyReader::Reset(bool keep_body) {
  state_ = State::kHead;
  keep_body_ = keep_body;
  status_ = 0;
  is_events_ = closes_ = false;
  line_.clear();
  body_.clear();
  body_size_ = left_ = 0;
  matched_ = 1;  // the first event has no line before it
}

base::Result<uint64_t> HttpReplyReader::Feed(std::string_view received) {
  uint64_t events = 0;
  while (!received.empty() && state_ != State::kDone) {
    if (state_ == State::kHead) {
      NEREID_ASSIGN_OR_RETURN(received, ReadHead(received));
    } else if (state_ == State::kChunkSize || state_ == State::kTrailers) {
      NEREID_ASSIGN_OR_RETURN(received, ReadLine(received));
    } else {
      const std::string_view part = received.substr(0, left_);
      received.remove_prefix(part.size());
      NEREID_RETURN_IF_ERROR(TakePart(part, events));
    }
  }
  if (!received.empty()) return base::InternalError("the reply is longer than it says");
  return events;
}

// Takes bytes of the body, of a chunk, or of the line's end behind a chunk.
base::Status HttpReplyReader::TakePart(std::string_view part, uint64_t& events) {
  if (state_ == State::kChunkEnd) {
    if (part != kLineEnd.substr(kLineEnd.size() - left_, part.size())) {
      return base::InternalError("a chunk of the reply is longer than it says");
    }
  } else {
    TakeBody(part);
    if (is_events_) events += CountEvents(part);
  }
  left_ -= part.size();
  if (left_ > 0) return base::OkStatus();
  if (state_ == State::kChunk) {
    state_ = State::kChunkEnd;
    left_ = kLineEnd.size();
  } else {
    state_ = state_ == State::kBody ? State::kDone : State::kChunkSize;
  }
  return base::OkStatus();
}

// Consumes the head's bytes and returns the remaining ones.
base::Result<std::string_view> HttpReplyReader::ReadHead(std::string_view received) {
  const size_t seen = line_.size();
  line_.append(received.substr(0, kHeadStep));
  const size_t end = line_.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (line_.size() > kMaxHead) return base::InternalError("the reply's head does not end");
    return received.substr(line_.size() - seen);
  }
  NEREID_RETURN_IF_ERROR(ParseHead(std::string_view(line_).substr(0, end + 2)));
  line_.clear();
  return received.substr(end + 4 - seen);
}

base::Status HttpReplyReader::ParseHead(std::string_view head) {
  if (!head.starts_with("HTTP/1.") || head.size() < 12 ||
      !ReadNumber(head.substr(9, 3), 10, status_) || status_ < 100) {
    return base::InternalError("the reply is not HTTP/1.1");
  }
  const std::string_view connection = HeaderValue(head, "connection");
  closes_ = head.starts_with("HTTP/1.0") ? !IsSame(connection, "keep-alive")
                                         : IsSame(connection, "close");
  // The reply proper follows one that only says that the server is at work.
  if (status_ < 200) return base::OkStatus();
  constexpr int kNoContent = 204;
  constexpr int kNotModified = 304;
  if (status_ == kNoContent || status_ == kNotModified) {
    state_ = State::kDone;
    return base::OkStatus();
  }
  if (IsSame(HeaderValue(head, "transfer-encoding"), "chunked")) {
    is_events_ = HeaderValue(head, "content-type").starts_with("text/event-stream");
    state_ = State::kChunkSize;
    return base::OkStatus();
  }
  const std::string_view size = HeaderValue(head, "content-length");
  if (size.empty()) return base::InternalError("the reply has neither a length nor chunks");
  if (!ReadNumber(size, 10, left_)) {
    return base::InternalError("the reply's content-length is not a number");
  }
  state_ = left_ == 0 ? State::kDone : State::kBody;
  return base::OkStatus();
}

// Consumes a line between chunks, or behind the last one, and returns the remaining bytes.
base::Result<std::string_view> HttpReplyReader::ReadLine(std::string_view received) {
  const size_t end = received.find('\n');
  line_.append(received.substr(0, end));
  if (line_.size() > kMaxHead) return base::InternalError("a line of the reply does not end");
  if (end == received.npos) return std::string_view();
  if (line_.ends_with('\r')) line_.pop_back();
  NEREID_RETURN_IF_ERROR(EndLine());
  line_.clear();
  return received.substr(end + 1);
}

base::Status HttpReplyReader::EndLine() {
  if (state_ == State::kTrailers) {
    if (line_.empty()) state_ = State::kDone;
    return base::OkStatus();
  }
  // Extensions of a chunk may follow its size.
  if (!ReadNumber(std::string_view(line_).substr(0, line_.find_first_of("; ")), 16, left_)) {
    return base::InternalError("the size of a chunk of the reply is not a number");
  }
  state_ = left_ == 0 ? State::kTrailers : State::kChunk;
  return base::OkStatus();
}

void HttpReplyReader::TakeBody(std::string_view part) {
  body_size_ += part.size();
  if (keep_body_) {
    body_.append(part);
  } else if (status_ != 200 && body_.size() < kKeptOfErrors) {
    body_.append(part.substr(0, kKeptOfErrors - body_.size()));
  }
}

// Events may be split anywhere, also within the text that begins them.
uint64_t HttpReplyReader::CountEvents(std::string_view part) {
  uint64_t events = 0;
  for (size_t at = 0; at < part.size();) {
    if (matched_ == 0) {
      at = part.find(kEvent, at);
      if (at == part.npos) {
        // The end may contain the beginning of that text.
        size_t tail = std::min(kEvent.size() - 1, part.size());
        while (tail > 0 && part.substr(part.size() - tail) != kEvent.substr(0, tail)) --tail;
        matched_ = tail;
        return events;
      }
      ++events;
      at += kEvent.size();
    } else if (part[at] == kEvent[matched_]) {
      ++at;
      if (++matched_ == kEvent.size()) {
        ++events;
        matched_ = 0;
      }
    } else {
      matched_ = 0;
    }
  }
  return events;
}

}  // namespace nereid::loadgen
