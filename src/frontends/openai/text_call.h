// SPDX-License-Identifier: Apache-2.0
// One request for a chat or a completion, from its submission to the end of its reply: the sink of
// the model's responses, which it joins to one completion or sends as events, and the listener that
// cancels the request when the client disconnects. Private to this module.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "config/openai_contract.h"
#include "core/cancel_handle.h"
#include "core/request.h"
#include "core/response.h"
#include "core/response_sink.h"
#include "http/stream_pacer.h"
#include "http1/http_server.h"
#include "openai/api_error.h"
#include "openai/completion.h"
#include "openai/inputs.h"
#include "openai/submission.h"
#include "openai/text_filter.h"
#include "service/service.h"

namespace nereid::openai {

// What the client wants of a text.
struct TextOptions {
  CompletionHead head;
  bool is_stream = false;
  bool wants_usage = false;        // at the end of a stream
  std::vector<std::string> stops;  // where the server is to cut the text
};

// Owns itself. The core ends its life (OnRequestGone); before that the exchange has been replied
// to, after which none of its events runs. One thread at a time calls Send, as for every sink.
class TextCall final : public core::ResponseSink, private http1::HttpExchangeEvents {
 public:
  // Passes the request to `service`, or replies at once with an error. `service` outlives every
  // request; `body` and `text` are needed only during the call.
  static void Submit(Submission submission, TextOptions options, const JsonValue& body,
                     const TextInput& text, service::Service& service);

  // core::ResponseSink
  bool WouldWait() override { return pacer_.IsFull(); }
  void AwaitRoom(const core::Request& /*request*/) override { pacer_.AwaitRoom(limits_); }
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestGone() override;

 private:
  TextCall(Submission& submission, TextOptions options, service::Service& service);

  void OnDisconnect() override;
  void OnStreamWritable() override;

  ApiError Prepare(Submission& submission, const JsonValue& body, const TextInput& text,
                   core::Request& request);
  void Take(const core::Response& response, bool is_final);
  void TakePiece(Piece piece, bool is_final);
  void SendPart(std::span<const std::string> calls);
  void Finish();
  void Fail(const base::Status& error);
  // Writes `event_`, as the head's first or a later chunk.
  void Write();
  void End();
  void CancelRequest();
  std::string Headers() const;

  service::Service& service_;
  base::UnitGrant in_flight_;
  http1::HttpExchangePtr exchange_;  // until it is replied to or aborted
  const config::OpenAiContract contract_;
  const http::StreamLimits limits_;
  const TextOptions options_;
  std::shared_ptr<observe::Trace> trace_;

  TextFilter filter_;
  std::string text_;  // of the whole completion, or of the next event
  std::vector<std::string> tool_calls_;
  size_t tool_call_bytes_ = 0;  // of those
  size_t call_count_ = 0;
  std::string finish_reason_;
  Usage usage_;
  core::QuotaLeft quota_left_;  // as of the last response
  std::string event_;
  bool has_started_ = false;    // the stream's head is sent
  bool has_sent_part_ = false;  // so is an event

  http::StreamPacer pacer_;
  core::CancelHandle cancellation_;  // until no response follows
};

}  // namespace nereid::openai
