// SPDX-License-Identifier: Apache-2.0
// One infer request over HTTP, from its submission to the last byte of its reply: the sink of its
// responses, the owner of its reply's bytes, and the listener that cancels it when the client
// disconnects.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/budget.h"
#include "common/header_forwarding.h"
#include "core/caller.h"
#include "core/cancel_handle.h"
#include "core/kept_response.h"
#include "core/request.h"
#include "core/response.h"
#include "core/response_sink.h"
#include "http/dialect.h"
#include "http/infer_request.h"
#include "http/infer_response.h"
#include "http1/http_server.h"
#include "net/compression.h"
#include "service/service.h"

namespace nereid::http {

// The arguments of an infer request.
struct InferSubmission {
  http1::HttpExchangePtr exchange;
  core::ModelHandle model;
  base::UnitGrant in_flight;
  // The body as the model gets it (decompressed) and the buffer that keeps it alive.
  InferBody body;
  base::BufferRef body_buffer;
  net::Compression reply_compression = net::Compression::kIdentity;
  core::RoundExecutor* round = nullptr;
  const Dialect* dialect = &kTritonDialect;
  const common::HeaderForwarder* forwarder = nullptr;  // of headers that become parameters
  std::shared_ptr<observe::Trace> trace;               // null unless the request is traced
  core::CallerRef caller;                              // null unless senders are asked
  bool may_use_regions = true;                         // of shared memory
};

// Pooled. It lives until three things have happened, in any order and on any threads: the core
// released the request (OnRequestGone), the reply's bytes are no longer needed (ReplySent), and the
// call that sent the reply has returned.
class InferCall final : public core::ResponseSink,
                        private http1::HttpReplyOwner,
                        private http1::HttpExchangeEvents {
 public:
  // Reads the body and passes the request to `service`, or replies at once with an error. `service`
  // outlives every request.
  static void Submit(InferSubmission submission, InferRequestReader& reader,
                     service::Service& service);

  // core::ResponseSink
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnAbandoned() override;
  void OnRequestGone() override;

  // For ObjectPool.
  void Recycle();

 private:
  void ReplySent() override;
  void OnDisconnect() override;

  base::Status WriteBody();
  void SendResponse();
  void SendError(const base::Status& error);
  // Records the last event of the trace.
  void NoteSent();
  void Release(uint32_t parts);

  service::Service* service_ = nullptr;
  base::UnitGrant in_flight_;
  http1::HttpExchangePtr exchange_;  // until it is replied to
  ResponseOptions options_;
  net::Compression compression_ = net::Compression::kIdentity;
  const Dialect* dialect_ = &kTritonDialect;

  std::atomic<uint32_t> parts_left_{0};
  core::CancelHandle cancellation_;  // until the request has completed or is released

  uint64_t response_count_ = 0;
  core::KeptResponse first_response_;  // until it is known whether more follow
  core::ResponsePtr response_;         // the one that the reply is made of
  InferResponseBody body_;
  std::string headers_;
  std::shared_ptr<observe::Trace> trace_;
};

// Makes the headers that `forwarder` selects parameters of `request`; fails if one is reserved.
base::Status ForwardHeaders(const common::HeaderForwarder& forwarder, const http1::HttpHead& head,
                            core::Request& request);

// Passes a request to service::Service::Direct, with the headers of `head`.
void DirectRequest(service::Service& service, const http1::HttpHead& head, core::Request& request);

// Replies with the status that belongs to the error's code and a body in the form of the dialect.
void RespondError(http1::HttpExchangePtr exchange, const base::Status& error,
                  std::string_view headers = {}, const Dialect& dialect = kTritonDialect);

}  // namespace nereid::http
