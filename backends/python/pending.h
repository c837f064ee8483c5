// SPDX-License-Identifier: Apache-2.0
// The requests that a model has and that have not completed, by the numbers under which its worker
// knows them.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backend_kit/mutex.h"
#include "backend_kit/responses.h"
#include "python_backend/outputs.h"

namespace nereid::python {

// One request. Thread-safe.
class Pending {
 public:
  // `rules` outlive this object.
  Pending(TRITONBACKEND_Request* request, bool is_decoupled, const OutputRules& rules)
      : is_decoupled_(is_decoupled), rules_(rules), request_(request) {}
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  // Sends a response; if `is_final`, it is the last one. Fails if a final response was sent before.
  backend::Error Send(const ModelResponse& response, bool is_final, Lender* lender = nullptr);
  // Checks the response against the model's configuration; see OutputRules.
  backend::Error Check(const ModelResponse& response);
  // Ends the request without another response.
  backend::Error End();
  // Completes the request with an error, unless it has completed. If a model with one response has
  // sent that, only ends the request.
  void Fail(const backend::Error& error);
  // Completes a request that the model has dropped: a client that waits for a response gets an
  // error.
  void Abandon();
  bool is_closed() const { return is_closed_.load(); }
  backend::Result<bool> IsCancelled();
  // Calls use(trace) with the request's trace, which is null if there is none or the request was
  // released.
  template <typename Use>
  auto WithTrace(Use&& use) {
    const backend::MutexLock lock(mutex_);
    TRITONSERVER_InferenceTrace* trace = nullptr;
    if (request_ != nullptr) {
      if (!backend::Error(TRITONBACKEND_RequestTrace(request_, &trace)).ok()) trace = nullptr;
    }
    return use(trace);
  }
  // Called before the request is released. Later responses are sent without it.
  void Detach();

 private:
  backend::Result<TRITONBACKEND_Response*> NewResponse() NEREID_KIT_REQUIRES(mutex_);
  backend::Error EnsureFactory() NEREID_KIT_REQUIRES(mutex_);

  const bool is_decoupled_;
  const OutputRules& rules_;
  backend::Mutex mutex_;
  TRITONBACKEND_Request* request_ NEREID_KIT_GUARDED_BY(mutex_);  // null once detached
  TRITONBACKEND_ResponseFactory* factory_ NEREID_KIT_GUARDED_BY(mutex_) = nullptr;
  OutputRules::Set owed_ NEREID_KIT_GUARDED_BY(mutex_);  // set once detached
  uint32_t sent_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> is_closed_{false};
};

// The pending requests by their numbers. Thread-safe.
class PendingTable {
 public:
  uint64_t Add(std::shared_ptr<Pending> pending);
  std::shared_ptr<Pending> Find(uint64_t handle);
  void Remove(uint64_t handle);
  // Completes all requests with an error, and forgets them.
  void FailAll(const backend::Error& error);

 private:
  backend::Mutex mutex_;
  uint64_t last_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Pending>> table_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::python
