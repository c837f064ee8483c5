// SPDX-License-Identifier: Apache-2.0
#include "loadgen/http_reply_reader.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace nereid::loadgen {
namespace {

constexpr std::string_view kEvent = "data:";
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
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    return line.substr(0, line.find("\r\n"));
  }
  return {};
}

}  // namespace

void HttpReplyReader::Reset(bool keep_body) {
  state_ = State::kHead;
  keep_body_ = keep_body;
  status_ = 0;
  is_chunked_ = is_events_ = closes_ = false;
  line_.clear();
  body_.clear();
  body_size_ = matched_ = left_ = 0;
}

base::Result<uint64_t> HttpReplyReader::Feed(std::string_view received) {
  uint64_t events = 0;
  while (!received.empty() && state_ != State::kDone) {
    if (state_ == State::kHead) {
      NEREID_ASSIGN_OR_RETURN(received, ReadHead(received));
      continue;
    }
    if (state_ == State::kChunkSize) {
      received = ReadChunkSize(received);
      continue;
    }
    const std::string_view part = received.substr(0, left_);
    received.remove_prefix(part.size());
    left_ -= part.size();
    if (state_ != State::kChunkEnd) {
      TakeBody(part);
      if (is_events_) events += CountEvents(part);
    }
    if (left_ == 0) EndPart();
  }
  if (!received.empty()) return base::InternalError("the reply is longer than it says");
  return events;
}

void HttpReplyReader::EndPart() {
  if (state_ == State::kBody) {
    state_ = State::kDone;
  } else if (state_ == State::kChunk) {
    state_ = State::kChunkEnd;
    left_ = 2;
  } else {
    state_ = is_chunked_ && line_ == "0" ? State::kDone : State::kChunkSize;
    line_.clear();
  }
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
  if (!head.starts_with("HTTP/1.") || head.size() < 12) {
    return base::InternalError("the reply is not HTTP/1.1");
  }
  status_ = std::atoi(std::string(head.substr(9, 3)).c_str());
  const std::string_view connection = HeaderValue(head, "connection");
  closes_ = !connection.empty() && strncasecmp(connection.data(), "close", 5) == 0;
  const std::string_view size = HeaderValue(head, "content-length");
  if (!size.empty()) {
    left_ = std::strtoull(size.data(), nullptr, 10);
    state_ = left_ == 0 ? State::kDone : State::kBody;
    return base::OkStatus();
  }
  if (HeaderValue(head, "transfer-encoding") != "chunked") {
    return base::InternalError("the reply has neither a length nor chunks");
  }
  is_chunked_ = true;
  is_events_ = HeaderValue(head, "content-type").starts_with("text/event-stream");
  state_ = State::kChunkSize;
  return base::OkStatus();
}

std::string_view HttpReplyReader::ReadChunkSize(std::string_view received) {
  const size_t end = received.find('\n');
  line_.append(received.substr(0, end));
  if (end == received.npos) return {};
  left_ = std::strtoull(line_.c_str(), nullptr, 16);
  // The last chunk, of size 0, is followed by an empty line like any other.
  line_ = left_ == 0 ? "0" : "";
  state_ = left_ == 0 ? State::kChunkEnd : State::kChunk;
  if (left_ == 0) left_ = 2;
  return received.substr(end + 1);
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
      at = part.find("data:", at);
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
