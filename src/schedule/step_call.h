// SPDX-License-Identifier: Apache-2.0
// One request of an ensemble to the model of a step, and the sink of its responses.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/inbox.h"
#include "base/linked_list.h"
#include "core/cancel_handle.h"
#include "core/request.h"
#include "core/response.h"
#include "schedule/ensemble_frame.h"
#include "schedule/ensemble_room.h"
#include "schedule/step_limiter.h"

namespace nereid::schedule {

class EnsembleRun;
struct StepCall;

// An event of a run: an entry of its strand.
struct EnsembleEvent : base::Queueable {
  enum class Kind : uint8_t {
    kBegin,
    kResponse,      // a response of `call`, with others to follow
    kLastResponse,  // the last response of `call`, or null: nothing else follows
    kLost,          // the request of `call` is gone without a last response
    kPlace,         // the place that `call` waited for
    kCancel,
    kExpire,  // the deadline has passed
  };

  Kind kind = Kind::kBegin;
  StepCall* call = nullptr;
  core::ResponsePtr response;

  // For ObjectPool.
  void Recycle() { response.reset(); }
};

// Pooled. It ends when its request is gone (OnRequestGone) and the run has dropped it (Drop). The
// public members belong to the run: only events of its strand touch them, except where stated
// otherwise.
struct StepCall final : core::ResponseSink, StepLimiter::Waiter {
  // Makes a call of `step` for `starter`, to which it holds a reference for its whole life, with
  // the tensors of `read`, to which it holds two: until its inputs are released, and until its last
  // response.
  static StepCall& Take(EnsembleRun& starter, EnsembleFrame& read, uint32_t step);

  // core::ResponseSink, on any thread
  bool WouldWait() override;
  void AwaitRoom(const core::Request& request) override;
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestReleased(core::Request& request) override;
  void OnRequestGone() override;
  void OnExecuted(const core::ComputeTimes& times) override;
  // StepLimiter::Waiter, on any thread
  void OnPlace() override;

  // Drops one of two: the run has handled its end, or its request is gone. May destroy the run.
  void Drop();

  // For ObjectPool.
  void Recycle();

  EnsembleRun* run = nullptr;      // constant
  EnsembleFrame* frame = nullptr;  // constant
  uint32_t step = 0;               // constant
  bool has_responded = false;
  // Its last response was sent, or its request never was; confined to the sink's calls from then
  // on.
  bool has_ended = false;
  bool has_place = false;           // in the step's limiter
  EnsembleSequence sequence;        // of its request, once that has been made
  core::RequestPtr held;            // while it waits for a place
  core::CancelHandle cancellation;  // until the last response was handled
  EnsembleRoom::Producer producer;  // guarded by the room
  // For the place, and then for the last response, which therefore need no pooled event.
  EnsembleEvent own_event;
  base::ListLinks<StepCall> links;  // in the run's list of calls in flight

 private:
  // Records that its execution times are known, or that there will be none.
  void Settle();

  std::atomic<uint32_t> owners_{0};
  bool is_settled_ = false;  // confined to the sink's calls, which come one after another
};

}  // namespace nereid::schedule
