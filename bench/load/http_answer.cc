// SPDX-License-Identifier: Apache-2.0
#include "load/http_answer.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "load/options.h"

namespace nereid::bench {
namespace {

constexpr std::string_view kEvent = "data:";

// Returns the value of the header, or nothing.
std::string_view Header(std::string_view head, std::string_view name) {
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

void HttpAnswer::Reset(bool keep_body) {
  state_ = State::kHead;
  keep_body_ = keep_body;
  is_chunked_ = is_events_ = false;
  line_.clear();
  body_.clear();
  body_size_ = matched_ = left_ = 0;
}

uint64_t HttpAnswer::Feed(std::string_view received) {
  uint64_t events = 0;
  while (!received.empty() && state_ != State::kDone) {
    if (state_ == State::kHead) {
      received = ReadHead(received);
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
    if (left_ != 0) continue;
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
  if (!received.empty()) Die("the answer is longer than it says");
  return events;
}

// Consumes the head's bytes and returns the remaining ones.
std::string_view HttpAnswer::ReadHead(std::string_view received) {
  const size_t seen = line_.size();
  line_.append(received.substr(0, 4096));
  const size_t end = line_.find("\r\n\r\n");
  if (end == std::string::npos) {
    if (line_.size() > 16384) Die("the answer's head does not end");
    return received.substr(line_.size() - seen);
  }
  ParseHead(std::string_view(line_).substr(0, end + 2));
  line_.clear();
  return received.substr(end + 4 - seen);
}

void HttpAnswer::ParseHead(std::string_view head) {
  if (head.substr(9, 3) != "200") Die("the server answered: " + std::string(head));
  const std::string_view size = Header(head, "content-length");
  if (!size.empty()) {
    left_ = std::strtoull(size.data(), nullptr, 10);
    state_ = left_ == 0 ? State::kDone : State::kBody;
    return;
  }
  if (Header(head, "transfer-encoding") != "chunked") {
    Die("the answer has neither a length nor chunks: " + std::string(head));
  }
  is_chunked_ = true;
  is_events_ = Header(head, "content-type").starts_with("text/event-stream");
  state_ = State::kChunkSize;
}

std::string_view HttpAnswer::ReadChunkSize(std::string_view received) {
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

void HttpAnswer::TakeBody(std::string_view part) {
  body_size_ += part.size();
  if (keep_body_) body_.append(part);
}

// Events may be split anywhere, also within the text that begins them.
uint64_t HttpAnswer::CountEvents(std::string_view part) {
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

}  // namespace nereid::bench
