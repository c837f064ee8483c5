// SPDX-License-Identifier: Apache-2.0
// One inference, from the request to its last response.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <pybind11/pybind11.h>

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
  void Prepare(const Arguments& arguments);
  static void OnReleased(TRITONSERVER_InferenceRequest* request, uint32_t flags, void* userp);
  static void OnResponse(TRITONSERVER_InferenceResponse* response, uint32_t flags, void* userp);
  // Called by both, under no lock, when the server is done with the request.
  void End();
  // With the GIL: what need not wait for anything any more.
  void LetGoOfOwners();
  pybind11::object Pop(std::unique_lock<std::mutex>& lock);

  PyObject* server_object_ = nullptr;  // a strong reference: responses need the server
  TRITONSERVER_Server* server_ = nullptr;
  std::optional<Classification> classification_;

  std::mutex mutex_;
  // What follows is guarded by mutex_.
  std::condition_variable arrived_;
  TRITONSERVER_InferenceRequest* request_ = nullptr;
  Owned owners_;  // of the inputs' memory
  std::deque<Response> responses_;
  std::shared_ptr<Waker> waker_;
  PyObject* token_ = nullptr;  // owned
  bool is_released_ = true;    // the server does not have the request
  bool is_complete_ = false;   // the last response has come
  bool is_abandoned_ = false;
  bool is_over_ = false;  // End was called
  int cancellers_ = 0;    // threads that use request_; the last one deletes it when all is over
  // While the server is at work.
  std::shared_ptr<Call> self_;
};

void RegisterCall(pybind11::module_& module);

}  // namespace nereid::python
