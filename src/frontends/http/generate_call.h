// SPDX-License-Identifier: Apache-2.0
// One generate or generate_stream request over HTTP, from its submission to the end of its reply:
// the sink of its responses and the listener that cancels it when the client disconnects.
//
// Every response of a stream is a server-sent event, written by the thread that sends it. A client
// that reads more slowly than the model writes blocks the model: Send waits until there is room,
// and aborts the stream if the client has taken nothing for a while. On a reactor, which must not
// wait, the stream is aborted if too much is waiting.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/header_forwarding.h"
#include "core/caller.h"
#include "core/cancel_handle.h"
#include "core/request.h"
#include "core/response.h"
#include "core/response_sink.h"
#include "http/stream_pacer.h"
#include "http1/http_server.h"
#include "service/service.h"

namespace nereid::http {

// The arguments of a request of the generate extension.
struct GenerateSubmission {
  http1::HttpExchangePtr exchange;
  core::ModelHandle model;
  base::UnitGrant in_flight;
  bool is_stream = false;
  size_t max_input_bytes = 0;
  StreamLimits limits;
  core::RoundExecutor* round = nullptr;
  const common::HeaderForwarder* forwarder = nullptr;  // of headers that become parameters
  std::shared_ptr<observe::Trace> trace;               // null unless the request is traced
  core::CallerRef caller;                              // null unless senders are asked
};

// Pooled. The core ends its life (OnRequestGone); before that the exchange has been replied to,
// after which none of its events runs. One thread at a time calls Send, as for every sink.
class GenerateCall final : public core::ResponseSink, private http1::HttpExchangeEvents {
 public:
  // Reads the body and passes the request to `service`, or replies at once with an error. `service`
  // outlives every request.
  static void Submit(GenerateSubmission submission, service::Service& service);

  // core::ResponseSink
  bool WouldWait() override { return pacer_.IsFull(); }
  void AwaitRoom(const core::Request& /*request*/) override { pacer_.AwaitRoom(limits_); }
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestGone() override;

  // For ObjectPool.
  void Recycle();

 private:
  void OnDisconnect() override;
  void OnStreamWritable() override;

  void Pass(const core::Response* response, bool is_final);
  void Collect(const core::Response& response);
  void SendReply();
  void SendEvent(const core::Response& response, bool is_final);
  // Sends the head of the stream, for its first event.
  bool StartStream(const base::Status& error, std::string_view event);
  void GiveUp(const char* why);
  void CancelRequest();
  // Returns the header lines of every reply but its type.
  std::string Headers() const;

  service::Service* service_ = nullptr;
  base::UnitGrant in_flight_;
  http1::HttpExchangePtr exchange_;  // until it is replied to or aborted
  StreamLimits limits_;
  bool is_stream_ = false;
  bool has_started_ = false;  // the stream's head is sent
  uint64_t response_count_ = 0;
  core::QuotaLeft quota_left_;  // as of the first response
  base::Status error_;          // the error of the only response of generate
  std::string text_;            // its body, or the event that is being written
  std::shared_ptr<observe::Trace> trace_;
  StreamPacer pacer_;

  core::CancelHandle cancellation_;  // until no response follows
};

}  // namespace nereid::http
