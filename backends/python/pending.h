// SPDX-License-Identifier: Apache-2.0
// Requests that a model has and that are not answered completely, by the numbers under which its
// worker knows them.
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
  // `rules` outlive this.
  Pending(TRITONBACKEND_Request* request, bool is_decoupled, const OutputRules& rules)
      : is_decoupled_(is_decoupled), rules_(rules), request_(request) {}
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  // Sends a response; with `is_final`, nothing follows it. Fails when something final was sent.
  backend::Error Send(const ModelResponse& response, bool is_final, Lender* lender = nullptr);
  // Whether the response is what the model's configuration says; see OutputRules.
  backend::Error Check(const ModelResponse& response);
  // Says that nothing follows.
  backend::Error End();
  // Answers with an error as the last thing, unless something final was sent.
  // Or a model that answers once did so: then that was all.
  void Fail(const backend::Error& error);
  // The model has dropped the request: nothing follows, and a client that waits for one is told.
  void Abandon();
  bool is_closed() const { return is_closed_.load(); }
  backend::Result<bool> IsCancelled();
  // Calls use(trace) with the request's trace, null if there is none or the request was released.
  template <typename Use>
  auto WithTrace(Use&& use) {
    const backend::MutexLock lock(mutex_);
    TRITONSERVER_InferenceTrace* trace = nullptr;
    if (request_ != nullptr) {
      if (!backend::Error(TRITONBACKEND_RequestTrace(request_, &trace)).ok()) trace = nullptr;
    }
    return use(trace);
  }
  // The request is about to be released; what comes later is answered without it.
  void Detach();

 private:
  backend::Result<TRITONBACKEND_Response*> NewResponse() NEREID_KIT_REQUIRES(mutex_);
  backend::Error EnsureFactory() NEREID_KIT_REQUIRES(mutex_);

  const bool is_decoupled_;
  const OutputRules& rules_;
  backend::Mutex mutex_;
  TRITONBACKEND_Request* request_ NEREID_KIT_GUARDED_BY(mutex_);  // null once detached
  TRITONBACKEND_ResponseFactory* factory_ NEREID_KIT_GUARDED_BY(mutex_) = nullptr;
  OutputRules::Set owed_ NEREID_KIT_GUARDED_BY(mutex_);  // once detached
  uint32_t sent_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> is_closed_{false};
};

// Thread-safe.
class PendingTable {
 public:
  uint64_t Add(std::shared_ptr<Pending> pending);
  std::shared_ptr<Pending> Find(uint64_t handle);
  void Remove(uint64_t handle);
  // Answers all with an error, and forgets them.
  void FailAll(const backend::Error& error);

 private:
  backend::Mutex mutex_;
  uint64_t last_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Pending>> table_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::python
