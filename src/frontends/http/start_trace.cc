// SPDX-License-Identifier: Apache-2.0
#include "http/start_trace.h"

namespace nereid::http {

std::shared_ptr<observe::Trace> StartTrace(observe::Tracing* tracing,
                                           const http1::HttpExchange& exchange,
                                           std::string_view model) {
  if (tracing == nullptr || !tracing->is_on()) [[likely]]
    return nullptr;
  const http1::HttpHead& head = exchange.head();
  std::shared_ptr<observe::Trace> trace = tracing->Start(
      model, {.traceparent = head.Header("traceparent"), .tracestate = head.Header("tracestate")});
  if (trace != nullptr) {
    trace->ReportFrontend("HTTP_RECV_START", exchange.start_ns());
    trace->ReportFrontend("HTTP_RECV_END", exchange.received_ns());
  }
  return trace;
}

}  // namespace nereid::http
