// SPDX-License-Identifier: Apache-2.0
#include "python_backend/pending.h"

namespace nereid::python {

using backend::Error;
using backend::LogIfError;
using backend::Result;

Pending::~Pending() {
  if (factory_ != nullptr) Error(TRITONBACKEND_ResponseFactoryDelete(factory_)).Ignore();
}

Error Pending::EnsureFactory() {
  if (factory_ != nullptr) return {};
  if (request_ == nullptr) return Error::Internal("the request is gone");
  return Error(TRITONBACKEND_ResponseFactoryNew(&factory_, request_));
}

Result<TRITONBACKEND_Response*> Pending::NewResponse() {
  TRITONBACKEND_Response* response = nullptr;
  if (factory_ != nullptr) {
    NEREID_KIT_TRY(TRITONBACKEND_ResponseNewFromFactory(&response, factory_));
  } else if (request_ != nullptr) {
    NEREID_KIT_TRY(TRITONBACKEND_ResponseNew(&response, request_));
  } else {
    return Error::Internal("the request is gone");
  }
  return response;
}

Error Pending::Send(const ModelResponse& from, bool is_final, Lender* lender) {
  TRITONBACKEND_Response* response = nullptr;
  {
    const backend::MutexLock lock(mutex_);
    if (is_closed_.load()) {
      return Error::Internal("Unable to send response. Response sender has been closed.");
    }
    NEREID_KIT_ASSIGN(response, NewResponse());
    ++sent_;
    if (is_final) is_closed_.store(true);
  }
  Error error = from.kind == ResponseKind::kError ? Error(from.code, from.text)
                                                  : FillResponse(response, from, lender);
  LogIfError(Error(TRITONBACKEND_ResponseSend(
                 response, is_final ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0, error.get())),
             "failed to send the response");
  // An error that the model made is a response like others.
  if (from.kind == ResponseKind::kError) return {};
  return error;
}

Error Pending::Check(const ModelResponse& response) {
  const backend::MutexLock lock(mutex_);
  return request_ != nullptr ? rules_.Check(response, request_) : rules_.Check(response, owed_);
}

Error Pending::End() {
  const backend::MutexLock lock(mutex_);
  if (is_closed_.load()) {
    return Error::Internal("Unable to send response. Response sender has been closed.");
  }
  NEREID_KIT_TRY(EnsureFactory().Release());
  is_closed_.store(true);
  return Error(
      TRITONBACKEND_ResponseFactorySendFlags(factory_, TRITONSERVER_RESPONSE_COMPLETE_FINAL));
}

void Pending::Fail(const Error& error) {
  TRITONBACKEND_Response* response = nullptr;
  bool has_responded = false;
  {
    const backend::MutexLock lock(mutex_);
    has_responded = !is_decoupled_ && sent_ > 0 && !is_closed_.load();
    if (!has_responded) {
      if (is_closed_.exchange(true)) return;
      auto made = NewResponse();
      if (!made.ok()) return LogIfError(made.TakeError(), "failed to create a response");
      response = made.value();
    }
  }
  if (has_responded) return LogIfError(End(), "failed to end a request");
  LogIfError(Error(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL,
                                              error.get())),
             "failed to send the error response");
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
  bool is_cancelled = false;
  if (factory_ != nullptr) {
    NEREID_KIT_TRY(TRITONBACKEND_ResponseFactoryIsCancelled(factory_, &is_cancelled));
  } else if (request_ != nullptr) {
    NEREID_KIT_TRY(TRITONBACKEND_RequestIsCancelled(request_, &is_cancelled));
  }
  return is_cancelled;
}

void Pending::Detach() {
  const backend::MutexLock lock(mutex_);
  if (!is_closed_.load()) {
    LogIfError(EnsureFactory(), "failed to create a response factory");
    if (request_ != nullptr) owed_ = rules_.OwedTo(request_);
  }
  request_ = nullptr;
}

uint64_t PendingTable::Add(std::shared_ptr<Pending> pending) {
  const backend::MutexLock lock(mutex_);
  table_.emplace(++last_, std::move(pending));
  return last_;
}

std::shared_ptr<Pending> PendingTable::Find(uint64_t handle) {
  const backend::MutexLock lock(mutex_);
  const auto found = table_.find(handle);
  return found == table_.end() ? nullptr : found->second;
}

void PendingTable::Remove(uint64_t handle) {
  const backend::MutexLock lock(mutex_);
  table_.erase(handle);
}

void PendingTable::FailAll(const Error& error) {
  std::unordered_map<uint64_t, std::shared_ptr<Pending>> all;
  {
    const backend::MutexLock lock(mutex_);
    all.swap(table_);
  }
  for (const auto& [handle, pending] : all) pending->Fail(error);
}

}  // namespace nereid::python
