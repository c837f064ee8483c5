// SPDX-License-Identifier: Apache-2.0
#include "python_backend/pending.h"

namespace nereid::python {

using backend::Error;
using backend::LogIfError;
using backend::Result;

Error Pending::Send(const ModelResponse& from, bool is_final, Lender* lender) {
  TRITONBACKEND_Response* response = nullptr;
  {
    const backend::MutexLock lock(mutex_);
    if (is_closed_.load()) {
      return Error::Internal("Unable to send response. Response sender has been closed.");
    }
    NEREID_KIT_ASSIGN(response, source_->NewResponse());
    ++sent_;
    NoteActivity();
    if (is_final) is_closed_.store(true);
  }
  Error error = from.kind == ResponseKind::kError ? Error(from.code, from.text)
                                                  : FillResponse(response, from, lender);
  // An error that the model made is a response like others.
  Error failure = from.kind == ResponseKind::kError ? Error() : error.Copy();
  line_->Send(response, is_final, std::move(error));
  return failure;
}

Error Pending::Check(const ModelResponse& response) {
  const backend::MutexLock lock(mutex_);
  TRITONBACKEND_Request* request = source_->request();
  return request != nullptr ? rules_.Check(response, request) : rules_.Check(response, owed_);
}

Error Pending::End() {
  std::shared_ptr<backend::ResponseSource> source;
  {
    const backend::MutexLock lock(mutex_);
    if (is_closed_.load()) {
      return Error::Internal("Unable to send response. Response sender has been closed.");
    }
    NEREID_KIT_TRY(source_->EnsureFactory().Release());
    is_closed_.store(true);
    source = source_;
  }
  line_->Then([source] { LogIfError(source->SendEnd(), "failed to end a request"); });
  return {};
}

void Pending::Fail(const Error& error) {
  TRITONBACKEND_Response* response = nullptr;
  bool has_responded = false;
  {
    const backend::MutexLock lock(mutex_);
    has_responded = !is_decoupled_ && sent_ > 0 && !is_closed_.load();
    if (!has_responded) {
      if (is_closed_.exchange(true)) return;
      auto made = source_->NewResponse();
      if (!made.ok()) return LogIfError(made.TakeError(), "failed to create a response");
      response = made.value();
    }
  }
  if (has_responded) return LogIfError(End(), "failed to end a request");
  line_->Send(response, true, error.Copy());
}

void Pending::Abandon() {
  bool is_complete = false;
  {
    const backend::MutexLock lock(mutex_);
    if (is_closed_.load()) return;
    is_complete = is_decoupled_ || sent_ > 0;
  }
  if (is_complete) {
    LogIfError(End(), "failed to end a request");
  } else {
    Fail(Error::Internal("the model dropped the request without a response"));
  }
}

Result<bool> Pending::IsCancelled() {
  const backend::MutexLock lock(mutex_);
  return source_->IsCancelled();
}

void Pending::Detach() {
  const backend::MutexLock lock(mutex_);
  if (!is_closed_.load()) {
    LogIfError(source_->EnsureFactory(), "failed to create a response factory");
    if (source_->request() != nullptr) owed_ = rules_.OwedTo(source_->request());
  }
  source_->set_request(nullptr);
}

}  // namespace nereid::python
