// SPDX-License-Identifier: Apache-2.0
#include "http2/grpc_stream.h"

#include "http2/call_host.h"

namespace nereid::http2 {

void GrpcStream::Begin(CallHost& host, int32_t stream_id, uint64_t now_ns) {
  references_.store(1, std::memory_order_relaxed);
  host.Hold();
  host_ = &host;
  id = stream_id;
  start_ns_ = now_ns;
}

void GrpcStream::ReportCancel() {
  is_cancelled_.store(true, std::memory_order_release);
  if (events == nullptr || was_cancelled || input.is_away()) return;
  was_cancelled = true;
  events->OnCancelled();
}

void GrpcStream::ReportDone() {
  if (events == nullptr || input.is_away()) return;
  std::exchange(events, nullptr)->OnDone();
}

void GrpcStream::ReportReturned() {
  input.place = CallInput::Place::kHere;
  if (is_cancelled()) ReportCancel();
  if (is_closed) ReportDone();
}

void GrpcStream::SetEnd(GrpcOrder& order) {
  is_finished = true;
  status_code = order.status_code;
  status_text = order.status_text;
  trailers = std::move(order.trailers);
}

void GrpcStream::Recycle() {
  host_ = nullptr;
  head_.reset();
  deadline_.reset();
  response_encoding_ = net::Compression::kIdentity;
  is_cancelled_.store(false, std::memory_order_relaxed);
  unsent_.Recycle();
  events = nullptr;
  content_left = -1;
  unconsumed = 0;
  held_bytes = 0;
  is_rejected = false;
  is_finished = false;
  is_closed = false;
  has_response = false;
  was_cancelled = false;
  is_reset_next = false;
  status_code = 0;
  status_text.clear();
  trailers.reset();
  assembler.Recycle();
  input.Recycle();
}

}  // namespace nereid::http2
