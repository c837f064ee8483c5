// SPDX-License-Identifier: Apache-2.0
// One request on its way through an ensemble. Whatever happens to it (answers of steps,
// cancellation, a place that became free) is an event; the thread that brings an event handles it,
// and while one thread is at it, the others leave theirs in a queue and go. So the state needs no
// lock while it is worked on, answers leave in order, and a step that answers before Submit returns
// does not recurse.
//
//   EnsembleRun  the request: what is in flight, the error if there is one. Pooled.
//   Frame        the tensors of one group for one answer of the decoupled step that opened
//                the group (see EnsemblePlan), or for the request itself. Pooled.
//   StepCall     one request to a step's model, and the sink of its answers. Pooled.
//
// Tensors are never copied between steps: an answer stays where it is until the last step that
// reads it has released its request.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "core/model.h"
#include "core/request.h"
#include "core/response.h"
#include "core/submitter.h"
#include "schedule/ensemble_plan.h"

namespace nereid::schedule {

class EnsembleRun;
class EnsembleRuns;
class StepCall;

// Something that happened to a run while another thread, or the same one further up, was at it.
struct EnsembleEvent {
  enum class Kind : uint8_t { kAnswer, kPlace, kCancel };

  Kind kind = Kind::kAnswer;
  bool is_final = false;
  StepCall* call = nullptr;
  core::ResponsePtr response;
  EnsembleEvent* next = nullptr;

  // For ObjectPool.
  void Recycle() { response.reset(); }
};

// At most so many requests of one step are in flight, counted over all requests of the ensemble;
// the others wait in order. Thread-safe.
class StepLimiter {
 public:
  explicit StepLimiter(uint32_t limit) : limit_(limit) {}

  // False: `call` waits, and whoever releases a place starts it.
  bool Acquire(StepCall& call);
  // The call that gets the place instead, if one waits.
  StepCall* Release();
  // Takes `call` out of the queue; false when it is not there any more.
  bool Remove(StepCall& call);

 private:
  const uint32_t limit_;
  base::Mutex mutex_;
  uint32_t in_flight_ NEREID_GUARDED_BY(mutex_) = 0;
  StepCall* head_ NEREID_GUARDED_BY(mutex_) = nullptr;
  StepCall* tail_ NEREID_GUARDED_BY(mutex_) = nullptr;
};

// What all runs of one ensemble share. Constant.
struct EnsembleShared {
  core::Model& model;  // the ensemble
  core::Submitter& submitter;
  const EnsemblePlan plan;
  std::vector<std::unique_ptr<StepLimiter>> limiters;  // by step; empty: no limit
  EnsembleRuns* runs = nullptr;
};

// The answer of one step and who still reads it.
struct EnsembleSource {
  core::ResponsePtr response;
  std::atomic<uint32_t> readers{0};
  // Of the sequence that the steps behind this one continue.
  core::CorrelationId correlation_id;
  uint32_t flags = 0;

  void DropReader() {
    if (readers.fetch_sub(1, std::memory_order_acq_rel) == 1) response.reset();
  }
};

// A tensor's data during one run.
struct EnsembleValue {
  bool is_set = false;
  // Both null: an optional input that was left out, or an output that the model did not give.
  const core::RequestInput* input = nullptr;
  const core::ResponseOutput* output = nullptr;
  uint32_t batch_size = 0;  // of the request it was made in

  bool has_data() const { return input != nullptr || output != nullptr; }
  const tensor::Shape& shape() const { return input != nullptr ? input->shape : output->shape; }
  tensor::DataType type() const { return input != nullptr ? input->type : output->type; }
};

// Worked on by the run; references and readers of its sources count on any thread.
class EnsembleFrame {
 public:
  static EnsembleFrame& Take(const EnsemblePlan& plan, const EnsembleNeeds& needs, uint32_t group);
  void Reference(uint32_t count = 1) { references_.fetch_add(count, std::memory_order_relaxed); }
  // Nobody reads or writes its tensors after the last one.
  void Unreference();

  std::vector<EnsembleValue> values;  // by tensor
  std::vector<uint32_t> missing;      // by step: input tensors that are not set
  uint32_t missing_outputs = 0;       // that the request asks for; UINT32_MAX: none comes from here
  EnsembleSource& source(uint32_t step) { return sources_[step]; }

  // For ObjectPool.
  void Recycle();

 private:
  std::atomic<uint32_t> references_{0};
  std::unique_ptr<EnsembleSource[]> sources_;  // by step
  size_t source_count_ = 0;                    // in use
  size_t source_capacity_ = 0;
};

// The sink of the request that is sent to one step.
class StepCall final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr response, bool is_final) override;
  void OnRequestReleased(core::Request& request) override;
  void OnRequestGone() override;
  void OnExecuted(const core::ComputeTimes& times) override;

  // For ObjectPool.
  void Recycle();

 private:
  friend class EnsembleRun;
  friend class StepLimiter;
  friend class PlacesGiven;

  // Its execution times are known, or there will be none.
  void Settle();

  EnsembleRun* run_ = nullptr;  // referenced until the request is gone
  EnsembleFrame* frame_ =
      nullptr;  // referenced twice: until the inputs are released, and the last answer
  uint32_t step_ = 0;
  bool has_answered_ = false;
  bool has_place_ = false;              // of the step's limiter
  core::CorrelationId correlation_id_;  // of its request
  uint32_t flags_ = 0;
  std::atomic<bool> is_settled_{false};
  uint32_t queued_count_ =
      0;  // its answers in the run's queue, the final one apart; guarded by the run
  core::RequestPtr held_;         // while it waits for a place
  core::RequestRef in_flight_;    // until the final answer was handled
  EnsembleEvent final_answer_;    // while it waits to be handled
  StepCall* previous_ = nullptr;  // of the run's calls in flight
  StepCall* next_ = nullptr;
  bool is_waiting_ = false;  // guarded by the limiter, like the two below
  StepCall* waits_before_ = nullptr;
  StepCall* waits_behind_ = nullptr;
};

// One request to an ensemble; see the top of this file.
class EnsembleRun {
 public:
  // Takes a normalised request; it is answered by this, now or later.
  static void Start(EnsembleShared& shared, core::RequestPtr request);
  // The client has gone: what is in flight is cancelled, nothing more is started.
  void Cancel();
  void Reference() { references_.fetch_add(1, std::memory_order_relaxed); }
  void Unreference();

  // For ObjectPool.
  void Recycle();

 private:
  friend class EnsembleRuns;
  friend class PlacesGiven;
  friend class StepCall;

  using Event = EnsembleEvent;
  using Kind = EnsembleEvent::Kind;

  // From here to Drive: the caller's own event is handled at once or queued.
  bool BecomeDriver(Kind kind, StepCall* call, core::ResponsePtr& response, bool is_final);
  void Drive();
  // For the driver: moves what other threads brought to the end of its own list.
  void TakeInbox();
  void Append(Event& event);
  void Deliver(StepCall& call, core::ResponsePtr response, bool is_final);
  void OnPlace(StepCall& call);

  // By the driver only.
  void Begin();
  void ChooseNeeds();
  void HandleAnswer(StepCall& call, core::ResponsePtr response, bool is_final);
  void HandlePlace(StepCall& call);
  void HandleCancel();
  base::Status TakeAnswer(StepCall& call, core::ResponsePtr response);
  void SetValue(EnsembleFrame& frame, uint32_t tensor, EnsembleValue value);
  void StartReady(EnsembleFrame& frame);
  void StartStep(EnsembleFrame& frame, uint32_t step);
  void FillInputs(core::Request& request, const EnsembleStep& step, EnsembleFrame& frame);
  void FillSequence(core::Request& request, const EnsembleStep& step, EnsembleFrame& frame);
  base::Status Answer(EnsembleFrame& frame);
  base::Status AddOutput(core::Response& response, EnsembleFrame& frame, uint32_t output);
  void Fail(base::Status error);
  void Abandon(StepCall& call);
  void EndCall(StepCall& call);
  void FinishIfIdle();
  void Finish();

  // On any thread.
  void OnInputsReleased();
  void Complete();
  void Count();
  bool IsHome() const;
  void WaitForRoom(const StepCall& call);
  void ChangeHeld(int by);

  EnsembleShared* shared_ = nullptr;
  core::RequestPtr request_;      // until everything that reads its inputs is released
  core::RequestRef request_ref_;  // until the last call is gone
  std::thread::id home_thread_;   // whose round executor the request carries
  const EnsembleNeeds* needs_ = nullptr;
  EnsembleNeeds own_needs_;
  uint64_t begins_ns_ = 0;  // when the first step starts; 0: it has

  std::vector<uint32_t> ready_;
  StepCall* calls_ = nullptr;  // in flight
  size_t in_flight_ = 0;
  core::ResponsePtr pending_;  // complete, and not known to be the last one
  bool has_sent_ = false;
  bool is_finished_ = false;
  bool is_counted_ = false;  // by the driver in Finish, else in Complete
  base::Status status_;

  std::atomic<uint32_t> references_{0};  // by the request until Complete, calls, and callers
  std::atomic<uint32_t> unreleased_{0};  // calls whose inputs are in use, and one until Finish
  std::atomic<uint32_t> unsettled_{0};   // calls whose execution times may still come
  std::atomic<uint64_t> compute_input_ns_{0};
  std::atomic<uint64_t> compute_infer_ns_{0};
  std::atomic<uint64_t> compute_output_ns_{0};

  // What the driver has to handle; and what other threads brought it, the latest first, ending in a
  // mark. Null: there is no driver.
  Event* first_event_ = nullptr;
  Event* last_event_ = nullptr;
  std::atomic<Event*> inbox_{nullptr};
  // The thread that handles events. Its own thread reads what it wrote, others see another one.
  std::atomic<std::thread::id> driver_{};

  // Where the ensemble has limiters.
  base::Mutex mutex_;
  uint32_t held_count_ NEREID_GUARDED_BY(mutex_) = 0;  // calls that wait for a place
  bool has_failed_ NEREID_GUARDED_BY(mutex_) = false;
  base::CondVar room_;

  // Guarded by EnsembleRuns.
  EnsembleRun* bucket_next_ = nullptr;
  EnsembleRun* bucket_previous_ = nullptr;
};

// The runs of one ensemble that are under way, by request. Thread-safe.
class EnsembleRuns {
 public:
  void Add(EnsembleRun& run, const core::Request& request);
  void Remove(EnsembleRun& run, const core::Request& request);
  // With a reference for the caller; null when the request is not here.
  EnsembleRun* Find(const core::Request& request);
  // Waits until there is none; false when `deadline` passes first.
  bool WaitUntilEmpty(base::TimePoint deadline);

 private:
  static constexpr size_t kBuckets = 64;
  // Runs that can be found by their request, under a lock of their own.
  struct alignas(64) Bucket {
    base::Mutex mutex;
    EnsembleRun* head NEREID_GUARDED_BY(mutex) = nullptr;
  };

  Bucket& BucketOf(const core::Request& request);

  std::unique_ptr<Bucket[]> buckets_{new Bucket[kBuckets]};
  std::atomic<bool> is_awaited_{false};
  base::Mutex mutex_;
  base::CondVar changed_;
};

}  // namespace nereid::schedule
