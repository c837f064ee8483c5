// SPDX-License-Identifier: Apache-2.0
#include "http2/message_delivery.h"

#include <algorithm>
#include <utility>

#include "base/buffer_budget.h"
#include "http2/call_host.h"
#include "net/compression.h"

namespace nereid::http2 {
namespace {

using Place = CallInput::Place;

// Limits decompressed messages: any message may grow to the first limit, and beyond it only to so
// many times its size. Real tensors stay below.
constexpr size_t kFreeInflation = size_t{64} << 20;
constexpr size_t kMaxInflation = 200;
// A compressed message up to this size is inflated at once, which makes at most a thousand times as
// much of it, unless this turn has already inflated the following amount.
constexpr size_t kInflatedHere = 1 << 10;
constexpr size_t kInflatedPerTurn = size_t{1} << 20;
// Smaller messages are never heavy, so their calls are not asked.
constexpr size_t kHeavyFrom = size_t{64} << 10;

base::Result<net::BufferView> Inflate(std::string_view message, const GrpcServerOptions& options) {
  net::DecompressOptions limits;
  limits.max_bytes =
      std::min(options.max_message_bytes, std::max(kFreeInflation, kMaxInflation * message.size()));
  base::Result<net::BufferView> plain = net::Decompress(message, limits);
  base::Budget* const budget = options.received_bytes;
  if (plain.ok() && budget != nullptr && plain->buffer &&
      !base::ChargeBuffer(plain->buffer, *budget, plain->data.size())) {
    return base::UnavailableError(
        "The server holds as many bytes of requests as --max-request-memory allows");
  }
  return plain;
}

GrpcError Error(const base::Status& status) {
  const bool is_for_budget = status.code() == base::StatusCode::kUnavailable;
  return {is_for_budget ? GrpcStatus::kResourceExhausted : GrpcStatus::kInternal,
          std::string(status.message())};
}

}  // namespace

std::optional<GrpcError> MessageDelivery::Deliver(GrpcStream& stream,
                                                  MessageAssembler::Message&& message) {
  const size_t size = message.bytes.size();
  room_.Hold(stream.held_bytes, size);
  const bool is_free =
      stream.input.place == Place::kHere && stream.input.empty() && !IsSlowReader(stream);
  if (is_free && !message.is_compressed && size < kHeavyFrom) [[likely]] {
    stream.events->OnMessage(std::move(message.buffer), message.bytes);
    return std::nullopt;
  }
  stream.input.Push(std::move(message));
  waiting_bytes_ += size;
  ++waiting_messages_;
  return is_free ? Continue(stream) : std::nullopt;
}

bool MessageDelivery::IsSlowReader(const GrpcStream& stream) const {
  return stream.unsent_bytes() > options_.max_stream_backlog_bytes;
}

MessageAssembler::Message MessageDelivery::Take(GrpcStream& stream) {
  MessageAssembler::Message message = stream.input.Pop();
  waiting_bytes_ -= message.bytes.size();
  --waiting_messages_;
  return message;
}

bool MessageDelivery::NeedsWorker(GrpcStream& stream) const {
  const MessageAssembler::Message& next = stream.input.front();
  if (next.is_compressed) {
    return next.bytes.size() > kInflatedHere || inflated_bytes_ > kInflatedPerTurn;
  }
  if (next.bytes.size() < kHeavyFrom || !stream.events->IsHeavy(next.bytes)) return false;
  stream.input.is_heavy = true;
  return true;
}

void MessageDelivery::PutFirst(GrpcStream& stream, net::BufferView plain) {
  room_.Hold(stream.held_bytes, plain.data.size());
  waiting_bytes_ += plain.data.size();
  ++waiting_messages_;
  stream.input.PushFront({std::move(plain.buffer), plain.data, false});
}

std::optional<GrpcError> MessageDelivery::Continue(GrpcStream& stream) {
  CallInput& input = stream.input;
  if (input.place != Place::kHere || stream.is_rejected) return std::nullopt;
  while (!input.empty() && !stream.is_finished) {
    if (IsSlowReader(stream)) return std::nullopt;
    if (NeedsWorker(stream)) {
      StandInLine(stream);
      return std::nullopt;
    }
    MessageAssembler::Message next = Take(stream);
    if (next.is_compressed) {
      base::Result<net::BufferView> plain = Inflate(next.bytes, options_);
      if (!plain.ok()) return Error(plain.status());
      inflated_bytes_ += plain->data.size();
      room_.Release(stream.held_bytes, next.bytes.size());
      PutFirst(stream, std::move(*plain));
    } else {
      stream.events->OnMessage(std::move(next.buffer), next.bytes);
    }
  }
  if (input.is_half_closed && !input.is_end_told && !stream.is_finished) TellEnd(stream);
  return std::nullopt;
}

void MessageDelivery::EndInput(GrpcStream& stream) {
  if (stream.input.place == Place::kHere && stream.input.empty()) TellEnd(stream);
}

void MessageDelivery::TellEnd(GrpcStream& stream) {
  stream.input.is_end_told = true;
  if (stream.input.is_heavy) return StandInLine(stream);
  stream.events->OnHalfClose();
}

void MessageDelivery::StandInLine(GrpcStream& stream) {
  stream.input.place = Place::kInLine;
  line_.push_back(&stream);
  MoveLine();
}

void MessageDelivery::MoveLine() {
  while (!has_away_ && !line_.empty() && !room_.IsOverBudget(waiting_bytes_)) {
    GrpcStream& stream = *line_.front();
    line_.erase(line_.begin());
    stream.input.place = Place::kHere;
    if (!stream.is_finished) SendAway(stream);
  }
}

void MessageDelivery::SendAway(GrpcStream& stream) {
  has_away_ = true;
  stream.input.place = Place::kAtWorker;
  base::TaskPool& workers = stream.host().workers();
  if (stream.input.empty()) {
    workers.Post([call = GrpcCallRef(stream)] {
      auto& returned = static_cast<GrpcStream&>(*call);
      returned.events->OnHalfClose();
      returned.Return();
    });
    return;
  }
  MessageAssembler::Message next = Take(stream);
  if (!next.is_compressed) {
    workers.Post([call = GrpcCallRef(stream), next = std::move(next)]() mutable {
      auto& returned = static_cast<GrpcStream&>(*call);
      returned.events->OnMessage(std::move(next.buffer), next.bytes);
      returned.Return();
    });
    return;
  }
  // Released here, because the result of the worker is counted again.
  room_.Release(stream.held_bytes, next.bytes.size());
  workers.Post([call = GrpcCallRef(stream), next = std::move(next), &options = options_]() mutable {
    auto& returned = static_cast<GrpcStream&>(*call);
    returned.input.inflated = Inflate(next.bytes, options);
    next.buffer.Reset();
    returned.Return();
  });
}

std::optional<GrpcError> MessageDelivery::TakeBack(GrpcStream& stream) {
  has_away_ = false;
  stream.ReportReturned();
  std::optional<GrpcError> error;
  std::optional<base::Result<net::BufferView>> inflated = std::move(stream.input.inflated);
  stream.input.inflated.reset();
  if (!stream.is_closed && !stream.is_finished) {
    if (inflated.has_value() && !inflated->ok()) {
      error = Error(inflated->status());
    } else {
      if (inflated.has_value()) PutFirst(stream, std::move(**inflated));
      error = Continue(stream);
    }
  }
  MoveLine();
  return error;
}

void MessageDelivery::Credit(GrpcStream& stream, size_t bytes) {
  room_.Release(stream.held_bytes, bytes);
  MoveLine();
}

void MessageDelivery::Close(GrpcStream& stream) {
  while (!stream.input.empty()) Take(stream);
  if (stream.input.place == Place::kInLine) {
    std::erase(line_, &stream);
    stream.input.place = Place::kHere;
  }
  room_.Release(stream.held_bytes, stream.held_bytes);
  MoveLine();
}

}  // namespace nereid::http2
