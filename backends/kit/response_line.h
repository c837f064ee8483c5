// SPDX-License-Identifier: Apache-2.0
// Sends the responses to one request from a thread that serves other requests, too, and must not
// wait for the client of one of them.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "backend_kit/error.h"
#include "backend_kit/mutex.h"
#include "backend_kit/responses.h"
#include "nereid/backend_responses.h"

namespace nereid::backend {

// The responses to one request, in order. A response whose sender would have to wait, and all that
// follow it, are sent by another thread. Managed by a shared_ptr. Thread-safe.
class ResponseLine : public std::enable_shared_from_this<ResponseLine> {
 public:
  // `threads` outlives the last call of Send and Then.
  explicit ResponseLine(BackgroundWork& threads) : threads_(threads) {}

  // Sends `response`, now or later, and passes its ownership to the server; with `error`, unless
  // that is null.
  void Send(TRITONBACKEND_Response* response, bool is_final, Error error) {
    if (!is_busy() && TrySend(response, is_final, error)) return;
    Push([response, is_final, error = std::make_shared<Error>(std::move(error))] {
      ResponseSender::Send(response, error->get(), is_final);
    });
  }
  // Does `action` when all responses before it have been sent: at once, or on the other thread.
  void Then(std::function<void()> action) {
    if (!is_busy()) return action();
    Push(std::move(action));
  }
  // Whether responses wait for another thread.
  bool is_busy() {
    const MutexLock lock(mutex_);
    return is_busy_;
  }

 private:
  // Returns false, and does nothing, if the thread would have to wait.
  static bool TrySend(TRITONBACKEND_Response* response, bool is_final, const Error& error) {
    // Other servers never make a thread wait.
    if (NEREIDBACKEND_ResponseTrySend == nullptr) {
      ResponseSender::Send(response, error.get(), is_final);
      return true;
    }
    bool sent = true;
    LogIfError(
        Error(NEREIDBACKEND_ResponseTrySend(
            response, is_final ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0, error.get(), &sent)),
        "failed to send response");
    return sent;
  }

  void Push(std::function<void()> action) {
    {
      const MutexLock lock(mutex_);
      left_.push_back(std::move(action));
      if (std::exchange(is_busy_, true)) return;
    }
    try {
      threads_.Start([self = shared_from_this()] { self->Drain(); });
    } catch (const std::exception&) {
      Drain();  // there are too many threads
    }
  }

  void Drain() {
    for (;;) {
      std::function<void()> next;
      {
        const MutexLock lock(mutex_);
        if (left_.empty()) {
          is_busy_ = false;
          return;
        }
        next = std::move(left_.front());
        left_.pop_front();
      }
      next();
    }
  }

  BackgroundWork& threads_;
  Mutex mutex_;
  std::deque<std::function<void()>> left_ NEREID_KIT_GUARDED_BY(mutex_);
  bool is_busy_ NEREID_KIT_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::backend
