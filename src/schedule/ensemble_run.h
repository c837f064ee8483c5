// SPDX-License-Identifier: Apache-2.0
// One request in progress through an ensemble: decides which steps start, what the client receives
// and when it is over. Its parts:
//
//   EnsemblePlan       the configuration, compiled at load: steps, tensors, dependencies
//   EnsembleFrame      the tensors of one group, while steps fill and read them
//   StepCall           one request to a step's model, and the sink of its responses
//   StepLimiter        max_inflight_requests of a step, shared by all requests of the ensemble
//   EnsembleRoom       blocks a producer that is faster than the steps after it
//   ProducerWaits      the producers that are blocked, of all ensembles
//   EnsembleDeadlines  ends runs whose deadline passes while a step waits for its place
//   EnsembleTimes      the durations of the steps, for the ensemble's statistics
//   EnsembleRuns       all runs of an ensemble, found by their request
//
// Everything that happens (responses of steps, cancellation, a place that became free, a deadline)
// is an event of the run's strand. So the state needs no lock, responses are sent in order, and a
// step that responds before Submit returns does not recurse.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/linked_list.h"
#include "base/strand.h"
#include "core/model.h"
#include "core/request.h"
#include "core/response.h"
#include "core/submitter.h"
#include "schedule/ensemble_deadlines.h"
#include "schedule/ensemble_frame.h"
#include "schedule/ensemble_plan.h"
#include "schedule/ensemble_room.h"
#include "schedule/ensemble_runs.h"
#include "schedule/ensemble_times.h"
#include "schedule/producer_waits.h"
#include "schedule/step_call.h"
#include "schedule/step_limiter.h"

namespace nereid::schedule {

// Shared by all runs of one ensemble. Constant.
struct EnsembleShared {
  core::Model& model;  // the ensemble
  core::Submitter& submitter;
  ProducerWaits& producer_waits;
  const EnsemblePlan plan;
  std::vector<std::unique_ptr<StepLimiter>> limiters;  // by step; empty: no limit
  EnsembleDeadlines* deadlines = nullptr;              // null: no limit
  EnsembleRuns* runs = nullptr;
};

// Pooled; see the top of this file.
class EnsembleRun final : public EnsembleRuns::Entry, public EnsembleDeadlines::Entry {
 public:
  // Takes a normalised request and responds to it, now or later.
  static void Start(EnsembleShared& shared, core::RequestPtr request);

  // EnsembleRuns::Entry and EnsembleDeadlines::Entry. Cancel cancels all calls in flight and starts
  // nothing more.
  void Reference() override { ++references_; }
  void Unreference() override;
  void Cancel() override;
  // Fails the run, because its deadline has passed, if a step waits for its place.
  void Expire() override;

  // -- For its calls, on any thread. --

  // See ResponseSink::WouldWait and AwaitRoom. A response leaves the ensemble on whatever thread
  // has completed it, perhaps that of a model which many others wait for. So it is sent without
  // waiting, and what waits for the next steps and for the client is the decoupled model that the
  // response comes from.
  bool WouldWait(const StepCall& call);
  void AwaitRoom(const StepCall& call, const core::Request& request);
  // Passes a response (or null) of `call`, which is the last one if `is_final`. May wait if
  // responses come faster than the next steps or the client take them. The call may be gone when
  // this returns.
  void OnResponse(StepCall& call, core::ResponsePtr response, bool is_final);
  // The request of `call` is gone without a last response.
  void OnLost(StepCall& call);
  // `call` has the place of its step's limiter that it waited for.
  void OnPlace(StepCall& call);
  // A call's inputs are no longer read.
  void OnInputsReleased();
  EnsembleTimes& times() { return times_; }

  // For ObjectPool.
  void Recycle();

 private:
  using Event = EnsembleEvent;

  bool is_limited() const { return !shared_->limiters.empty(); }

  // Handles `event`, or leaves it to the thread that drives the strand.
  void Post(Event& event);

  // -- For events of the strand only. --
  void Handle(Event& event);
  void Begin();
  void ChooseNeeds();
  void HandleResponse(StepCall& call, core::ResponsePtr response, bool is_final);
  void HandlePlace(StepCall& call);
  void HandleCancel();
  void HandleExpiry();
  base::Status TakeResponse(StepCall& call, core::ResponsePtr response);
  void StartReady(EnsembleFrame& frame);
  void StartStep(EnsembleFrame& frame, uint32_t step);
  core::RequestPtr MakeRequest(StepCall& call, core::ModelHandle model);
  void AddCall(StepCall& call);
  // Sends a step's request, with the round of the calling thread.
  void Submit(core::RequestPtr request);
  // Makes the response from a frame that has all outputs, and keeps it until it is known whether
  // others follow.
  base::Status MakeResponse(EnsembleFrame& frame);
  void Fail(const base::Status& error);
  // Returns a call that waits for its place, if there is one.
  const StepCall* FindHeld() const;
  // Cancels the calls that do not wait for their place.
  void CancelInFlight();
  // Drops a call that waits for its place.
  void Abandon(StepCall& call);
  void EndCall(StepCall& call);
  void FinishIfIdle();
  void Finish();

  // -- On any thread. --
  void Complete();
  void Count();
  bool IsHome() const { return home_thread_ == std::this_thread::get_id(); }
  // Waits for the steps behind the call.
  void AwaitSteps(const StepCall& call, const core::Request& request);

  EnsembleShared* shared_ = nullptr;
  core::RequestPtr request_;      // until all readers of its inputs have released them
  core::RequestRef request_ref_;  // until the last call is gone
  std::thread::id home_thread_;   // the thread of the request's round executor
  const EnsembleNeeds* needs_ = nullptr;
  EnsembleNeeds own_needs_;
  uint64_t begins_ns_ = 0;  // when the first step starts; 0: it has started

  base::Strand<Event> strand_;
  Event begin_;                                         // of kind kBegin
  base::LinkedList<StepCall, &StepCall::links> calls_;  // in flight
  size_t in_flight_ = 0;
  core::ResponsePtr pending_;  // complete, but perhaps not the last one
  base::Status status_;
  bool is_finished_ = false;
  bool is_counted_ = false;  // by an event in Finish, else in Complete

  std::atomic<uint32_t> references_{0};  // held by the request until Complete, calls, and drivers
  std::atomic<uint32_t> unreleased_{0};  // calls whose inputs are in use, and one until Finish
  EnsembleTimes times_;
  EnsembleRoom room_;  // used if the ensemble has limiters
};

}  // namespace nereid::schedule
