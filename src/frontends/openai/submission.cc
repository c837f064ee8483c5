// SPDX-License-Identifier: Apache-2.0
#include "openai/submission.h"

#include "http/infer_call.h"
#include "http/limit_headers.h"

namespace nereid::openai {

base::Status ReadHeaders(const Submission& submission, core::Request& request) {
  NEREID_RETURN_IF_ERROR(http::ReadRequestTimeout(*submission.exchange, request));
  if (submission.forwarder == nullptr) return base::OkStatus();
  return http::ForwardHeaders(*submission.forwarder, submission.exchange->head(), request);
}

}  // namespace nereid::openai
