// SPDX-License-Identifier: Apache-2.0
// Multiple responses to one request, for decoupled models. They may be sent from any thread until
// End, also after the request was released.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "backend_kit/batch.h"
#include "backend_kit/mutex.h"
#include "backend_kit/tensors.h"

namespace nereid::backend {

// The responses to one request. Thread-compatible.
class ResponseSender {
 public:
  // REQUIRES: the request was not released yet.
  static Result<ResponseSender> Create(TRITONBACKEND_Request* request) {
    TRITONBACKEND_ResponseFactory* factory = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ResponseFactoryNew(&factory, request));
    return ResponseSender(factory);
  }

  bool IsCancelled() const {
    bool cancelled = false;
    Error(TRITONBACKEND_ResponseFactoryIsCancelled(factory_.get(), &cancelled)).Ignore();
    return cancelled;
  }
  // Makes a response, to be filled and then sent with Send.
  Result<TRITONBACKEND_Response*> New() const {
    TRITONBACKEND_Response* response = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ResponseNewFromFactory(&response, factory_.get()));
    return response;
  }
  // Sends `response` and passes its ownership to the server. The caller keeps `error`, which is
  // null for success.
  static void Send(TRITONBACKEND_Response* response, TRITONSERVER_Error* error = nullptr,
                   bool is_final = false) {
    LogIfError(Error(TRITONBACKEND_ResponseSend(
                   response, is_final ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0, error)),
               "failed to send response");
  }
  // Sends an error as the last response.
  void Fail(Error error) const {
    TRITONBACKEND_Response* response = nullptr;
    Error made(TRITONBACKEND_ResponseNewFromFactory(&response, factory_.get()));
    if (made.ok()) {
      Send(response, error.get(), true);
    } else {
      LogIfError(std::move(made), "failed to create response");
    }
  }
  // Tells the server that no more responses follow.
  void End() const {
    LogIfError(Error(TRITONBACKEND_ResponseFactorySendFlags(factory_.get(),
                                                            TRITONSERVER_RESPONSE_COMPLETE_FINAL)),
               "failed to send the final response");
  }
  // Counts the next response in the model's statistics; `output_start_ns` is 0 for one without
  // outputs.
  void Report(TRITONBACKEND_ModelInstance* instance, uint64_t start_ns, uint64_t output_start_ns,
              uint64_t end_ns, TRITONSERVER_Error* error) const {
    LogIfError(TryReport(instance, start_ns, output_start_ns, end_ns, error),
               "failed reporting response statistics");
  }

 private:
  // Calls TRITONBACKEND_ResponseFactoryDelete.
  struct Delete {
    void operator()(TRITONBACKEND_ResponseFactory* factory) const {
      Error(TRITONBACKEND_ResponseFactoryDelete(factory)).Ignore();
    }
  };
  // Calls TRITONBACKEND_ModelInstanceResponseStatisticsDelete.
  struct DeleteReport {
    void operator()(TRITONBACKEND_ModelInstanceResponseStatistics* report) const {
      Error(TRITONBACKEND_ModelInstanceResponseStatisticsDelete(report)).Ignore();
    }
  };

  explicit ResponseSender(TRITONBACKEND_ResponseFactory* factory) : factory_(factory) {}

  Error TryReport(TRITONBACKEND_ModelInstance* instance, uint64_t start_ns,
                  uint64_t output_start_ns, uint64_t end_ns, TRITONSERVER_Error* error) const {
    TRITONBACKEND_ModelInstanceResponseStatistics* raw = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceResponseStatisticsNew(&raw));
    const std::unique_ptr<TRITONBACKEND_ModelInstanceResponseStatistics, DeleteReport> report(raw);
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(raw, instance));
    NEREID_KIT_TRY(
        TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(raw, factory_.get()));
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(raw, start_ns));
    NEREID_KIT_TRY(
        TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(raw, output_start_ns));
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(raw, end_ns));
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(raw, error));
    return Error(TRITONBACKEND_ModelInstanceReportResponseStatistics(raw));
  }

  std::unique_ptr<TRITONBACKEND_ResponseFactory, Delete> factory_;
};

// Threads for background work, each with one piece of work at a time. A few threads are kept for
// later requests, because starting a thread costs more than many responses. The destructor waits
// for all of them. Thread-safe.
class BackgroundWork {
 public:
  BackgroundWork() = default;
  BackgroundWork(const BackgroundWork&) = delete;
  ~BackgroundWork() {
    const MutexLock lock(mutex_);
    is_ending_ = true;
    wake_.NotifyAll();
    while (threads_ != 0) gone_.Wait(mutex_);
  }

  // Runs `work` on a thread without other work. Throws std::system_error if no thread can be
  // started; then `work` has not begun.
  void Start(std::function<void()> work) {
    if (GiveToIdleThread(work)) {
      wake_.NotifyOne();
      return;
    }
    try {
      std::thread([this, work = std::move(work)]() mutable { Run(std::move(work)); }).detach();
    } catch (...) {
      const MutexLock lock(mutex_);
      --threads_;
      throw;
    }
  }

 private:
  static constexpr size_t kMaxIdleThreads = 4;
  static constexpr std::chrono::seconds kMaxIdleTime{5};

  // Assigns `work` to an idle thread. Returns false if there is none, and then counts the thread
  // that the caller starts.
  bool GiveToIdleThread(std::function<void()>& work) {
    const MutexLock lock(mutex_);
    if (idle_ == 0) {
      ++threads_;
      return false;
    }
    queue_.push_back(std::move(work));
    --idle_;
    return true;
  }

  // Returns the next work of the calling thread, or null if the thread is to end.
  std::function<void()> NextWork() {
    const auto end = CondVar::Clock::now() + kMaxIdleTime;
    const MutexLock lock(mutex_);
    if (idle_ < kMaxIdleThreads && !is_ending_) {
      ++idle_;
      while (!is_ending_ && queue_.empty() && wake_.WaitUntil(mutex_, end)) {
      }
      if (!is_ending_ && queue_.empty()) --idle_;
    }
    if (queue_.empty()) {
      if (--threads_ == 0) gone_.NotifyAll();
      return nullptr;
    }
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    return work;
  }

  void Run(std::function<void()> work) {
    while (work != nullptr) {
      work();
      work = nullptr;  // destroyed before an idle thread lets the owners of its captures end
      work = NextWork();
    }
  }

  Mutex mutex_;
  CondVar wake_;
  CondVar gone_;
  // Each one is assigned to a waiting thread.
  std::deque<std::function<void()>> queue_ NEREID_KIT_GUARDED_BY(mutex_);
  // Waiting threads without queued work.
  size_t idle_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  size_t threads_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  bool is_ending_ NEREID_KIT_GUARDED_BY(mutex_) = false;
};

// Waits for `time`, or until shortly after the request is cancelled. Returns whether it was
// cancelled.
inline bool WaitUnlessCancelled(const ResponseSender& sender, std::chrono::nanoseconds time) {
  constexpr std::chrono::milliseconds kMoment(10);
  const auto end = std::chrono::steady_clock::now() + time;
  for (auto now = std::chrono::steady_clock::now(); now < end;
       now = std::chrono::steady_clock::now()) {
    if (sender.IsCancelled()) {
      return true;
    }
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(end - now, kMoment));
  }
  return sender.IsCancelled();
}

}  // namespace nereid::backend
