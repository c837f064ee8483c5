// SPDX-License-Identifier: Apache-2.0
// One inference, from the request to its last response.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <pybind11/pybind11.h>

#include "backend_kit/mutex.h"
#include "deferred.h"
#include "response.h"
#include "triton/core/tritonserver.h"
#include "waker.h"

namespace nereid::python {

// A call. Thread-safe. Shared by Python, until it abandons the responses, and by the server, until
// it has released the request and delivered the last response. Comments say which methods need the
// GIL; methods that server threads call never take it.
class Call : public std::enable_shared_from_this<Call> {
 public:
  // The arguments of a request as Python objects.
  struct Arguments {
    std::string model_name;
    int64_t model_version = -1;
    std::optional<std::string> request_id;
    uint32_t flags = 0;
    pybind11::object correlation_id;  // None, int or str
    uint64_t priority = 0;
    uint64_t timeout_us = 0;
    pybind11::dict inputs;
    pybind11::dict parameters;
    std::vector<std::string> requested_outputs;
    std::optional<Classification> classification;
  };

  // Needs the GIL. Throws an error about the arguments.
  Call(const pybind11::object& server, const Arguments& arguments);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  // Needs the GIL and releases it. Throws if the server refuses the request.
  void Start();

  // Needs the GIL and releases it during the wait. Returns the next response in the form of
  // Response::ToPython. Throws what a signal handler throws.
  pybind11::object Next();
  // Needs the GIL. Like Next, but returns None if there is no response yet.
  pybind11::object TryNext();
  // Needs the GIL. Arranges that `token` is pushed to `waker` with the next response, and returns
  // true; returns false if there is a response already. Replaces an earlier token.
  bool Arm(const std::shared_ptr<Waker>& waker, const pybind11::object& token);

  // Needs the GIL and releases it. Does nothing if the request is complete.
  void Cancel();

  // Needs the GIL. Later responses are discarded.
  void Abandon();

 private:
  // `owners` receives the owners of the inputs' memory.
  static void AddArguments(TRITONSERVER_InferenceRequest* request, const Arguments& arguments,
                           Owned& owners);
  static void OnReleased(TRITONSERVER_InferenceRequest* request, uint32_t flags, void* userp);
  static void OnResponse(TRITONSERVER_InferenceResponse* response, uint32_t flags, void* userp);
  // Called by both callbacks, without a lock, when the server has finished with the request.
  void End();
  // Releases the owners that are not needed any more. Needs the GIL.
  void LetGoOfOwners();
  // Returns nothing if there is no response yet.
  std::optional<Response> Pop() NEREID_KIT_REQUIRES(mutex_);
  // Needs the GIL.
  pybind11::object ToPython(Response response);

  PyObject* server_object_ = nullptr;  // a strong reference: responses need the server
  TRITONSERVER_Server* server_ = nullptr;
  std::optional<Classification> classification_;

  backend::Mutex mutex_;
  backend::CondVar arrived_;
  TRITONSERVER_InferenceRequest* request_ NEREID_KIT_GUARDED_BY(mutex_) = nullptr;
  Owned owners_ NEREID_KIT_GUARDED_BY(mutex_);  // of the inputs' memory
  std::deque<Response> responses_ NEREID_KIT_GUARDED_BY(mutex_);
  std::shared_ptr<Waker> waker_ NEREID_KIT_GUARDED_BY(mutex_);
  PyObject* token_ NEREID_KIT_GUARDED_BY(mutex_) = nullptr;  // owned
  // Whether the server does not have the request.
  bool is_released_ NEREID_KIT_GUARDED_BY(mutex_) = true;
  // Whether the last response has arrived.
  bool is_complete_ NEREID_KIT_GUARDED_BY(mutex_) = false;
  bool is_abandoned_ NEREID_KIT_GUARDED_BY(mutex_) = false;
  bool is_over_ NEREID_KIT_GUARDED_BY(mutex_) = false;  // End was called
  // Threads that use request_; the last one deletes it if is_over_.
  int cancellers_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  // Set while the server uses this.
  std::shared_ptr<Call> self_ NEREID_KIT_GUARDED_BY(mutex_);
};

void RegisterCall(pybind11::module_& module);

}  // namespace nereid::python
