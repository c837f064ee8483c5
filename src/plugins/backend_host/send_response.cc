// SPDX-License-Identifier: Apache-2.0
#include "backend_host/send_response.h"

#include "core/model.h"
#include "memory/gpus.h"

namespace nereid::backend_host {
namespace {

base::Status CompletedError(const core::Request& request) {
  return base::InternalError(request.LogPrefix() +
                             "the final response of the request has been sent already");
}

}  // namespace

base::Status SendResponse(core::ResponsePtr response, bool is_final) {
  core::Request& request = response->request();
  if (is_final ? !request.MarkCompleted() : request.is_completed()) [[unlikely]] {
    return CompletedError(request);
  }
  if (response->error().ok()) {
    if (base::Status moved = response->MoveStagedOutputs(); !moved.ok()) [[unlikely]] {
      response->SetError(moved.WithPrefix(request.LogPrefix()));
    }
  }
  if (!response->error().ok() && request.model && request.model->gpus() != nullptr) [[unlikely]] {
    request.model->gpus()->LookForFailures();
  }
  request.NoteResponse(*response);
  request.sink().Send(std::move(response), is_final);
  return base::OkStatus();
}

base::Status SendEnd(core::Request& request) {
  if (!request.MarkCompleted()) return CompletedError(request);
  request.sink().Send(nullptr, true);
  return base::OkStatus();
}

}  // namespace nereid::backend_host
