// SPDX-License-Identifier: Apache-2.0
// What requests of both kinds (TextCall, EmbeddingCall) are made of. Private to this module.
#pragma once

#include <memory>

#include "base/budget.h"
#include "base/status.h"
#include "common/header_forwarding.h"
#include "common/reactor_rounds.h"
#include "config/openai_contract.h"
#include "core/caller.h"
#include "core/model_handle.h"
#include "core/request.h"
#include "http/stream_pacer.h"
#include "http1/http_server.h"
#include "observe/trace.h"

namespace nereid::openai {

// The arguments of a request of either kind.
struct Submission {
  http1::HttpExchangePtr exchange;
  core::ModelHandle model;
  base::UnitGrant in_flight;
  config::OpenAiContract contract;  // of the model
  http::StreamLimits limits;
  const common::RoundExecutors* rounds = nullptr;
  const common::HeaderForwarder* forwarder = nullptr;  // of headers that become parameters
  std::shared_ptr<observe::Trace> trace;               // null unless the request is traced
  core::CallerRef caller;                              // null unless senders are asked
};

// Sets what `request` takes from the head of the HTTP request: its time limit, and the headers that
// become parameters.
base::Status ReadHeaders(const Submission& submission, core::Request& request);

}  // namespace nereid::openai
