// SPDX-License-Identifier: Apache-2.0
// One execution of a backend: the requests from the server, one response for each, the four
// timestamps, and the end of the execution. In all cases Batch ensures that every request is
// counted, gets exactly one response and is released.
//
//   batch.Process(instance, requests, count, [&]() -> uint64_t {
//     ... batch.Fail(r, error) for a request that cannot be served, batch.FailAll(error) for all
//     batch.MarkComputeStart();   // inputs are in place
//     ... compute ...
//     batch.MarkComputeEnd();     // outputs are ready to be copied out
//     ... fill batch.response(r) of every live request ...
//     return total_batch_size;
//   });
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <vector>

#include "backend_kit/handles.h"

namespace nereid::backend {

// Nanoseconds of the monotonic clock, which statistics use.
inline uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// A batch. Usually a member of the instance that is reused by each execution, so that its vectors
// keep their memory. Confined to the thread that executes.
class Batch {
 public:
  // Takes ownership of `count` requests and runs `body`, a uint64_t() callable that returns the sum
  // of the batch sizes it executed. Completes and releases every request, also if `body` throws.
  // The execute function must return success after this.
  template <typename Body>
  void Process(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests,
               uint32_t count, Body&& body) {
    uint64_t batch_size = 0;
    Begin(requests, count);
    try {
      batch_size = body();
    } catch (const std::exception& e) {
      FailAll(Error::Internal(e.what()));
    }
    Finish(instance, batch_size);
  }

  uint32_t size() const { return static_cast<uint32_t>(responses_.size()); }
  TRITONBACKEND_Request* request(uint32_t r) const { return requests_[r]; }
  // Returns a response that the batch owns. REQUIRES: live(r).
  TRITONBACKEND_Response* response(uint32_t r) const { return responses_[r]; }
  // Whether request r has not failed.
  bool live(uint32_t r) const { return all_failed_.ok() && errors_[r].ok(); }
  uint32_t live_count() const { return all_failed_.ok() ? live_count_ : 0; }

  // Makes `error` the response of request r, to be sent at the end; a second failure of the same
  // request is dropped.
  void Fail(uint32_t r, Error error) {
    if (errors_[r].ok()) {
      errors_[r] = std::move(error);
      --live_count_;
    }
  }
  // Makes `error` the response of every request that has not failed.
  void FailAll(Error error) {
    if (all_failed_.ok()) {
      all_failed_ = std::move(error);
    }
  }
  // Drops the response of request r, with its outputs so far, and makes a new one. If that fails,
  // the request has failed. REQUIRES: live(r).
  void RenewResponse(uint32_t r) {
    LogIfError(Error(TRITONBACKEND_ResponseDelete(responses_[r])), "failed to delete response");
    responses_[r] = nullptr;
    if (Error error(TRITONBACKEND_ResponseNew(&responses_[r], requests_[r])); !error.ok()) {
      responses_[r] = nullptr;
      Fail(r, std::move(error));
    }
  }

  // A backend whose device measures the time itself passes it.
  void MarkComputeStart(uint64_t ns = NowNs()) { compute_start_ns_ = ns; }
  void MarkComputeEnd(uint64_t ns = NowNs()) { compute_end_ns_ = ns; }

 private:
  // A request for which no response can be made fails at once.
  void Begin(TRITONBACKEND_Request** requests, uint32_t count) {
    exec_start_ns_ = NowNs();
    compute_start_ns_ = 0;
    compute_end_ns_ = 0;
    requests_ = requests;
    all_failed_.Ignore();
    responses_.assign(count, nullptr);
    errors_.clear();
    errors_.resize(count);
    live_count_ = count;
    for (uint32_t r = 0; r < count; ++r) {
      if (Error error(TRITONBACKEND_ResponseNew(&responses_[r], requests[r])); !error.ok()) {
        responses_[r] = nullptr;
        Fail(r, std::move(error));
      }
    }
  }

  // Counts every request, sends its response and releases it. Statistics come first, so that a
  // client with a response finds its request counted.
  void Finish(TRITONBACKEND_ModelInstance* instance, uint64_t batch_size) {
    const uint64_t exec_end_ns = NowNs();
    // After an early failure, the steps that were not reached have a duration of zero.
    compute_start_ns_ = compute_start_ns_ == 0 ? exec_end_ns : compute_start_ns_;
    compute_end_ns_ = compute_end_ns_ == 0 ? exec_end_ns : compute_end_ns_;
    for (uint32_t r = 0; r < size(); ++r) {
      LogIfError(Error(TRITONBACKEND_ModelInstanceReportStatistics(
                     instance, requests_[r], live(r), exec_start_ns_, compute_start_ns_,
                     compute_end_ns_, exec_end_ns)),
                 "failed reporting request statistics");
    }
    if (live_count() > 0) {
      LogIfError(Error(TRITONBACKEND_ModelInstanceReportBatchStatistics(
                     instance, batch_size, exec_start_ns_, compute_start_ns_, compute_end_ns_,
                     exec_end_ns)),
                 "failed reporting batch request statistics");
    }
    for (uint32_t r = 0; r < size(); ++r) {
      if (responses_[r] != nullptr) {
        TRITONSERVER_Error* error = errors_[r].ok() ? all_failed_.get() : errors_[r].get();
        LogIfError(Error(TRITONBACKEND_ResponseSend(responses_[r],
                                                    TRITONSERVER_RESPONSE_COMPLETE_FINAL, error)),
                   "failed to send response");
      }
    }
    for (uint32_t r = 0; r < size(); ++r) {
      LogIfError(
          Error(TRITONBACKEND_RequestRelease(requests_[r], TRITONSERVER_REQUEST_RELEASE_ALL)),
          "failed releasing request");
    }
  }

  TRITONBACKEND_Request** requests_ = nullptr;
  std::vector<TRITONBACKEND_Response*> responses_;
  std::vector<Error> errors_;
  Error all_failed_;
  uint32_t live_count_ = 0;
  uint64_t exec_start_ns_ = 0;
  uint64_t compute_start_ns_ = 0;
  uint64_t compute_end_ns_ = 0;
};

}  // namespace nereid::backend
