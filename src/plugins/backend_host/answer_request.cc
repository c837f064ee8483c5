// SPDX-License-Identifier: Apache-2.0
#include "backend_host/answer_request.h"

namespace nereid::backend_host {
namespace {

base::Status AnsweredError(const core::Request& request) {
  return base::InternalError(request.LogPrefix() +
                             "the final response of the request has been sent already");
}

}  // namespace

base::Status SendResponse(core::ResponsePtr response, bool is_final) {
  core::Request& request = response->request();
  if (is_final ? !request.MarkAnswered() : request.is_answered()) [[unlikely]] {
    return AnsweredError(request);
  }
  request.NoteResponse(*response);
  request.sink().Send(std::move(response), is_final);
  return base::OkStatus();
}

base::Status SendEnd(core::Request& request) {
  if (!request.MarkAnswered()) return AnsweredError(request);
  request.sink().Send(nullptr, true);
  return base::OkStatus();
}

}  // namespace nereid::backend_host
