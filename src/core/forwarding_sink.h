// SPDX-License-Identifier: Apache-2.0
// A sink in front of another sink, for one request: the base class of everything that observes or
// delays responses (ordered queues, the response cache, sequences). Each method forwards its call;
// derived classes override what they need.
#pragma once

#include <utility>

#include "core/request.h"
#include "core/response.h"
#include "core/response_sink.h"

namespace nereid::core {

// Stands between a request and its sink; see the top of this file.
class ForwardingSink : public ResponseSink {
 public:
  // Inserts this between `request` and its sink. REQUIRES: no response was sent yet. The request
  // owns this until Recycle.
  void PutBefore(Request& request) { next_ = &request.ReplaceSink(*this); }

  void OnResponseCreated(const Request& request) override { next_->OnResponseCreated(request); }
  base::Result<std::optional<memory::Placement>> PredictPlacement(
      const Request& request, const char* name, size_t* byte_size,
      memory::Placement preferred) override {
    return next_->PredictPlacement(request, name, byte_size, preferred);
  }
  base::Result<std::optional<OutputPlacement>> PlaceOutput(const Request& request,
                                                           const ResponseOutput& output,
                                                           size_t byte_size,
                                                           memory::Placement preferred) override {
    return next_->PlaceOutput(request, output, byte_size, preferred);
  }
  void ReleasePlacement(const OutputPlacement& placement, size_t byte_size) override {
    next_->ReleasePlacement(placement, byte_size);
  }
  bool WouldWait() override { return next_->WouldWait(); }
  void AwaitRoom(const Request& request) override { next_->AwaitRoom(request); }
  void Send(ResponsePtr response, bool is_final) override {
    next_->Send(std::move(response), is_final);
  }
  void OnAbandoned() override { next_->OnAbandoned(); }
  void OnExecuted(const ComputeTimes& times) override { next_->OnExecuted(times); }
  void OnExecutionFailed() override { next_->OnExecutionFailed(); }
  void OnRequestReleased(Request& request) override { next_->OnRequestReleased(request); }
  void OnRequestGone() final {
    ResponseSink* const next = std::exchange(next_, nullptr);
    Retire();
    next->OnRequestGone();
  }

 protected:
  ResponseSink& next() const { return *next_; }
  // Called when the request is gone: deletes this, or returns it to its pool.
  virtual void Retire() = 0;

 private:
  ResponseSink* next_ = nullptr;
};

}  // namespace nereid::core
