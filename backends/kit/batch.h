// SPDX-License-Identifier: Apache-2.0
// One execution from the backend's side: the requests that the server gave, one response for each,
// the four timestamps, and the end of the execution. Whatever happens, Batch makes sure that every
// request is counted, gets exactly one response and is released.
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

// Nanoseconds of the monotonic clock, which is the clock of statistics.
inline uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

// Meant to live in the instance and to serve one execution after the other, so that its vectors
// keep their memory. Confined to the thread that executes.
class Batch {
 public:
  // Takes over `count` requests, runs `body`, a uint64_t() callable that returns the sum of the
  // batch sizes it executed, and answers and releases every request, also when `body` throws. The
  // execute function must return success after this.
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
  // Owned by the batch until the end. Needs live(r).
  TRITONBACKEND_Response* response(uint32_t r) const { return responses_[r]; }
  // Whether request r has not failed.
  bool live(uint32_t r) const { return all_failed_.ok() && errors_[r].ok(); }
  uint32_t live_count() const { return all_failed_.ok() ? live_count_ : 0; }

  // Request r gets `error` as its response at the end; a second failure of the same request is
  // dropped.
  void Fail(uint32_t r, Error error) {
    if (errors_[r].ok()) {
      errors_[r] = std::move(error);
      --live_count_;
    }
  }
  // Every request that has not failed gets `error` as its response at the end.
  void FailAll(Error error) {
    if (all_failed_.ok()) {
      all_failed_ = std::move(error);
    }
  }
  // Drops the response of request r, with the outputs added to it so far, and makes a new one.
  // Needs live(r); if no response can be made, the request has failed afterwards.
  void RenewResponse(uint32_t r) {
    LogIfError(Error(TRITONBACKEND_ResponseDelete(responses_[r])), "failed to delete response");
    responses_[r] = nullptr;
    if (Error error(TRITONBACKEND_ResponseNew(&responses_[r], requests_[r])); !error.ok()) {
      responses_[r] = nullptr;
      Fail(r, std::move(error));
    }
  }

  void MarkComputeStart() { compute_start_ns_ = NowNs(); }
  void MarkComputeEnd() { compute_end_ns_ = NowNs(); }

 private:
  // A request for which no response can be made is failed at once.
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
  // client that has its response finds its request counted.
  void Finish(TRITONBACKEND_ModelInstance* instance, uint64_t batch_size) {
    const uint64_t exec_end_ns = NowNs();
    // A failure before a mark leaves no time for the steps after it.
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
