// SPDX-License-Identifier: Apache-2.0
// One infer request over HTTP, from its submission to the last byte of its reply: the sink of its
// responses, the owner of its reply's bytes, and the listener that cancels it when the client
// leaves.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "common/header_forwarding.h"
#include "core/cancel_handle.h"
#include "core/request.h"
#include "core/response.h"
#include "core/response_sink.h"
#include "http/dialect.h"
#include "http/infer_answer.h"
#include "http/infer_request.h"
#include "http1/http_server.h"
#include "net/compression.h"
#include "service/service.h"

namespace nereid::http {

// What a submission is made of.
struct InferSubmission {
  http1::HttpExchangePtr exchange;
  core::ModelHandle model;
  // The body as the model gets it (decompressed) and what keeps it alive.
  InferBody body;
  base::BufferRef body_buffer;
  net::Compression reply_compression = net::Compression::kIdentity;
  core::RoundExecutor* round = nullptr;
  const Dialect* dialect = &kTritonDialect;
  const common::HeaderForwarder* forwarder = nullptr;  // of headers that become parameters
  std::shared_ptr<observe::Trace> trace;               // null but for requests that are traced
};

// Pooled. It lives until three things have happened, in whatever order and on whatever threads: the
// core let go of the request (OnRequestGone), the reply's bytes are not needed any more
// (ReplySent), and the call that sent the reply has returned.
class HttpInfer final : public core::ResponseSink,
                        private http1::HttpReplyOwner,
                        private http1::HttpExchangeEvents {
 public:
  // Reads the body and hands the request to `service`, or answers at once with what is wrong with
  // it. `service` outlives every request.
  static void Submit(InferSubmission submission, InferRequestReader& reader,
                     service::Service& service);

  // core::ResponseSink
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestReleased(core::Request& request) override;
  void OnRequestGone() override;

  // For ObjectPool.
  void Recycle();

 private:
  void ReplySent() override;
  void OnDisconnect() override;

  base::Status Answer();
  void SendAnswer();
  void SendError(const base::Status& error);
  // The last the trace hears of.
  void NoteSent();
  void Release(uint32_t parts);

  service::Service* service_ = nullptr;
  http1::HttpExchangePtr exchange_;  // until it is answered
  AnswerOptions options_;
  net::Compression compression_ = net::Compression::kIdentity;
  const Dialect* dialect_ = &kTritonDialect;

  std::atomic<uint32_t> parts_left_{0};
  core::CancelHandle cancellation_;  // until the request is answered or released

  uint64_t response_count_ = 0;
  core::ResponsePtr response_;
  InferAnswer answer_;
  std::string headers_;
  std::shared_ptr<observe::Trace> trace_;
};

// Makes those headers parameters of `request` that `forwarder` wants; an error when one is
// reserved.
base::Status ForwardHeaders(const common::HeaderForwarder& forwarder, const http1::HttpHead& head,
                            core::Request& request);

// A reply of {"error": <message>} with the status that belongs to the error's code.
void RespondError(http1::HttpExchangePtr exchange, const base::Status& error,
                  std::string_view headers = {}, const Dialect& dialect = kTritonDialect);

}  // namespace nereid::http
