// SPDX-License-Identifier: Apache-2.0
// The requests that a model has and that have not completed, by the numbers under which its worker
// knows them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "backend_kit/mutex.h"
#include "backend_kit/numbered_table.h"
#include "backend_kit/response_line.h"
#include "backend_kit/response_source.h"
#include "backend_kit/responses.h"
#include "python_backend/outputs.h"

namespace nereid::python {

// One request. Thread-safe.
class Pending {
 public:
  // `rules` outlives this object. A thread of `threads` sends the responses for which the request's
  // client is too slow; `threads` outlives the last call.
  Pending(TRITONBACKEND_Request* request, bool is_decoupled, const OutputRules& rules,
          backend::BackgroundWork& threads)
      : is_decoupled_(is_decoupled),
        rules_(rules),
        line_(std::make_shared<backend::ResponseLine>(threads)),
        last_activity_ns_(backend::NowNs()),
        source_(std::make_shared<backend::ResponseSource>(request)) {}

  // Sends a response, now or, if its client reads too slowly, later; if `is_final`, it is the last
  // one. Fails if a final response was sent before.
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
  // Calls `action` when the responses so far have been sent: now, or on another thread.
  void WhenSent(std::function<void()> action) { line_->Then(std::move(action)); }
  // Whether responses wait for the client.
  bool waits_for_client() const { return line_->is_busy(); }
  bool is_closed() const { return is_closed_.load(); }
  // The worker gets it now.
  void NoteActivity() { last_activity_ns_.store(backend::NowNs(), std::memory_order_relaxed); }
  // When the worker got it, or last responded to it, in nanoseconds of the server's clock.
  uint64_t last_activity_ns() const { return last_activity_ns_.load(std::memory_order_relaxed); }
  backend::Result<bool> IsCancelled();
  // Calls use(trace) with the request's trace, which is null if there is none or the request was
  // released.
  template <typename Use>
  auto WithTrace(Use&& use) {
    const backend::MutexLock lock(mutex_);
    TRITONSERVER_InferenceTrace* trace = nullptr;
    if (source_->request() != nullptr) {
      if (!backend::Error(TRITONBACKEND_RequestTrace(source_->request(), &trace)).ok()) {
        trace = nullptr;
      }
    }
    return use(trace);
  }
  // Called before the request is released. Later responses are sent without it.
  void Detach();

 private:
  const bool is_decoupled_;
  const OutputRules& rules_;
  const std::shared_ptr<backend::ResponseLine> line_;
  std::atomic<uint64_t> last_activity_ns_;  // a lone number
  backend::Mutex mutex_;
  // Shared with the end that waits in the line.
  std::shared_ptr<backend::ResponseSource> source_ NEREID_KIT_GUARDED_BY(mutex_);
  OutputRules::Set owed_ NEREID_KIT_GUARDED_BY(mutex_);  // set once detached
  uint32_t sent_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> is_closed_{false};
};

// The pending requests by the numbers under which the worker knows them.
using PendingTable = backend::NumberedTable<Pending>;

}  // namespace nereid::python
