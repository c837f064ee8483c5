// SPDX-License-Identifier: Apache-2.0
// The requests that an isolated model has, by the numbers under which its process knows them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backend_kit/mutex.h"
#include "backend_kit/numbered_table.h"
#include "backend_kit/response_source.h"
#include "isolation_backend/records.h"
#include "python_backend/decode.h"

namespace nereid::backend {
class BackgroundWork;
class ResponseLine;
}  // namespace nereid::backend

namespace nereid::isolation {

// What became of a request, as its process reports it.
struct RequestEnding {
  Ending kind = Ending::kHeld;
  Report report = Report::kNone;
  EndingRecord record{};
  std::vector<python::Tensor> states;  // in the memory shared with the process
};
// Returns nothing if the record is not as records.h describes it.
std::optional<RequestEnding> ReadEnding(python::Reader& reader, const python::Region& region);

// One request. Thread-safe: the process may respond to a request, and release it, at any time.
class OpenRequest {
 public:
  // A thread of `threads` sends the responses for which the request's client is too slow; `threads`
  // outlives the last call.
  OpenRequest(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request,
              bool is_decoupled, uint64_t exec_start_ns, backend::BackgroundWork& threads);

  // Takes over new states and times. Comes before the last response, which a client may follow with
  // the next request of a sequence.
  void Settle(const RequestEnding& ending);
  void Send(const python::ModelResponse& response, bool is_final, python::Lender* lender = nullptr);
  // Ends the request without another response.
  void End();
  // Releases the request as `ending` says; kHeld does nothing.
  void Release(Ending ending);
  // Completes the request with an error and releases it, as far as this has not happened.
  void Fail(const backend::Error& error);
  // Calls `action` when the responses so far have been sent: now, or on another thread.
  void WhenSent(std::function<void()> action);
  // Whether responses wait for the client.
  bool waits_for_client() const;
  // Whether it is completed and released.
  bool is_done();
  // The process gets it now.
  void NoteActivity();
  // When the process got it, or last responded to it, in nanoseconds of the server's clock.
  uint64_t last_activity_ns() const { return last_activity_ns_.load(std::memory_order_relaxed); }
  bool IsCancelled();

 private:
  void ReportFailure() NEREID_KIT_REQUIRES(mutex_);
  void SendError(const backend::Error& error);

  TRITONBACKEND_ModelInstance* const instance_;
  const bool is_decoupled_;
  const uint64_t exec_start_ns_;
  const std::shared_ptr<backend::ResponseLine> line_;
  std::atomic<uint64_t> last_activity_ns_;  // a lone number
  backend::Mutex mutex_;
  // Shared with the end that waits in the line.
  std::shared_ptr<backend::ResponseSource> source_ NEREID_KIT_GUARDED_BY(mutex_);
  bool is_closed_ NEREID_KIT_GUARDED_BY(mutex_) = false;   // has its final response
  bool is_counted_ NEREID_KIT_GUARDED_BY(mutex_) = false;  // in statistics
  uint32_t sent_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
};

// The requests of one process.
using OpenRequests = backend::NumberedTable<OpenRequest>;

}  // namespace nereid::isolation
