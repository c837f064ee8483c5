// SPDX-License-Identifier: Apache-2.0
#include "console/live_streams.h"

#include <string>
#include <utility>

#include "http/admission.h"

namespace nereid::console {

using http1::HttpExchange;

namespace {

constexpr http1::HttpReply kHead = {.status = 200,
                                    .content_type = "text/event-stream; charset=utf-8",
                                    .headers =
                                        "Cache-Control: no-store\r\n"
                                        "X-Accel-Buffering: no\r\n"
                                        "X-Content-Type-Options: nosniff\r\n"};

}  // namespace

void LiveStreams::RespondToHead(http1::HttpExchangePtr exchange) {
  HttpExchange::Respond(std::move(exchange), kHead);
}

bool LiveStreams::Add(http1::HttpExchangePtr& exchange, const access::Gate* gate) {
  const uint64_t generation = gate == nullptr ? 0 : gate->generation();
  {
    base::MutexLock lock(mutex_);
    if (has_ended_ || streams_.size() + starting_ + sending_ >= kMaxStreams) return false;
    // Holds its place while the head is sent without the lock.
    ++starting_;
  }
  // A comment, which tells the browser that the stream is open.
  exchange->StartStream(kHead, ": open\n\n");
  bool is_late = false;
  {
    base::MutexLock lock(mutex_);
    --starting_;
    started_.NotifyAll();
    is_late = has_ended_;
    if (!is_late) streams_.push_back({std::move(exchange), gate, generation});
  }
  if (is_late) HttpExchange::EndStream(std::move(exchange));
  return true;
}

bool LiveStreams::IsAdmitted(const Stream& stream) {
  if (stream.gate == nullptr) return true;
  const access::Grant* const grant = http::GrantOf(*stream.exchange);
  return grant != nullptr && stream.gate->IsCurrent(*grant, stream.generation);
}

// Sockets are written without the lock, so the streams are taken out meanwhile. A browser that has
// seen the head of its stream misses no event, so streams that are about to be there are waited
// for; nothing that they do blocks.
void LiveStreams::Send(std::string_view json) {
  std::vector<Stream> taken;
  {
    base::MutexLock lock(mutex_);
    while (starting_ > 0) started_.Wait(mutex_);
    taken.swap(streams_);
    sending_ += taken.size();
  }
  if (taken.empty()) return;
  const std::string event = "data: " + std::string(json) + "\n\n";
  std::vector<Stream> left;
  for (Stream& stream : taken) {
    if (stream.exchange->disconnected() || !IsAdmitted(stream) ||
        !stream.exchange->WriteChunk(event)) {
      HttpExchange::EndStream(std::move(stream.exchange));
    } else {
      left.push_back(std::move(stream));
    }
  }
  {
    base::MutexLock lock(mutex_);
    sending_ -= taken.size();
    if (!has_ended_) {
      for (Stream& stream : left) streams_.push_back(std::move(stream));
      left.clear();
    }
  }
  for (Stream& stream : left) HttpExchange::EndStream(std::move(stream.exchange));
}

void LiveStreams::End() {
  std::vector<Stream> streams;
  {
    base::MutexLock lock(mutex_);
    has_ended_ = true;
    streams.swap(streams_);
  }
  for (Stream& stream : streams) HttpExchange::EndStream(std::move(stream.exchange));
}

bool LiveStreams::any() const {
  base::MutexLock lock(mutex_);
  return starting_ > 0 || !streams_.empty();
}

}  // namespace nereid::console
