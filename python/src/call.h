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

// Thread-safe. Shared by Python, until it has no more interest in the responses, and the server,
// until it has handed the request back and delivered the last response. Methods say whether they
// need the GIL; what the server's threads call never takes it.
class Call : public std::enable_shared_from_this<Call> {
 public:
  // What the arguments of a request are in Python.
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

  // With the GIL. Throws what is wrong with the arguments.
  Call(const pybind11::object& server, const Arguments& arguments);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  // With the GIL, which it lets go of. Throws when the server refuses the request.
  void Start();

  // With the GIL, which it lets go of while it waits. The next response in the form of
  // Response::ToPython. Throws what a signal handler throws.
  pybind11::object Next();
  // With the GIL. As Next, but None when there is nothing yet.
  pybind11::object TryNext();
  // With the GIL. Has `token` pushed to `waker` with the next response and returns true; false when
  // there is a response already. Replaces an earlier token.
  bool Arm(const std::shared_ptr<Waker>& waker, const pybind11::object& token);

  // With the GIL, which it lets go of. Does nothing when the request is answered.
  void Cancel();

  // With the GIL. Responses that come from now on are thrown away.
  void Abandon();

 private:
  // `owners` get what the inputs' memory belongs to.
  static void AddArguments(TRITONSERVER_InferenceRequest* request, const Arguments& arguments,
                           Owned& owners);
  static void OnReleased(TRITONSERVER_InferenceRequest* request, uint32_t flags, void* userp);
  static void OnResponse(TRITONSERVER_InferenceResponse* response, uint32_t flags, void* userp);
  // Called by both, under no lock, when the server is done with the request.
  void End();
  // With the GIL: what need not wait for anything any more.
  void LetGoOfOwners();
  // Nothing when there is no response yet.
  std::optional<Response> Pop() NEREID_KIT_REQUIRES(mutex_);
  // With the GIL.
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
  // Whether the last response has come.
  bool is_complete_ NEREID_KIT_GUARDED_BY(mutex_) = false;
  bool is_abandoned_ NEREID_KIT_GUARDED_BY(mutex_) = false;
  bool is_over_ NEREID_KIT_GUARDED_BY(mutex_) = false;  // End was called
  // Threads that use request_; the last one deletes it when all is over.
  int cancellers_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  // While the server is at work.
  std::shared_ptr<Call> self_ NEREID_KIT_GUARDED_BY(mutex_);
};

void RegisterCall(pybind11::module_& module);

}  // namespace nereid::python
