// SPDX-License-Identifier: Apache-2.0
#include "base/object_pool.h"
#include "schedule/ensemble_run.h"

namespace nereid::schedule {

bool StepLimiter::Acquire(StepCall& call) {
  base::MutexLock lock(mutex_);
  if (in_flight_ < limit_) {
    ++in_flight_;
    return true;
  }
  call.is_waiting_ = true;
  call.waits_before_ = tail_;
  call.waits_behind_ = nullptr;
  (tail_ != nullptr ? tail_->waits_behind_ : head_) = &call;
  tail_ = &call;
  return false;
}

StepCall* StepLimiter::Release() {
  base::MutexLock lock(mutex_);
  StepCall* const next = head_;
  if (next == nullptr) {
    --in_flight_;
    return nullptr;
  }
  head_ = next->waits_behind_;
  (head_ != nullptr ? head_->waits_before_ : tail_) = nullptr;
  next->is_waiting_ = false;
  next->waits_behind_ = nullptr;
  return next;
}

bool StepLimiter::Remove(StepCall& call) {
  base::MutexLock lock(mutex_);
  if (!call.is_waiting_) return false;
  (call.waits_before_ != nullptr ? call.waits_before_->waits_behind_ : head_) = call.waits_behind_;
  (call.waits_behind_ != nullptr ? call.waits_behind_->waits_before_ : tail_) = call.waits_before_;
  call.is_waiting_ = false;
  call.waits_before_ = call.waits_behind_ = nullptr;
  return true;
}

EnsembleFrame& EnsembleFrame::Take(const EnsemblePlan& plan, const EnsembleNeeds& needs,
                                   uint32_t group) {
  EnsembleFrame& frame = *base::ObjectPool<EnsembleFrame>::Take();
  const size_t steps = plan.steps().size();
  if (frame.source_capacity_ < steps) {
    frame.sources_ = std::make_unique<EnsembleSource[]>(steps);
    frame.source_capacity_ = steps;
  }
  frame.source_count_ = steps;
  frame.values.assign(plan.tensors().size(), {});
  frame.missing.resize(steps);
  for (size_t i = 0; i < steps; ++i) {
    frame.missing[i] = static_cast<uint32_t>(plan.steps()[i].input_tensors.size());
  }
  frame.missing_outputs = group == plan.output_group() ? needs.output_count : UINT32_MAX;
  frame.references_.store(1, std::memory_order_relaxed);
  return frame;
}

void EnsembleFrame::Unreference() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // Not within the pool: with a response may go its request, its model and the run.
  for (size_t i = 0; i < source_count_; ++i) sources_[i].response.reset();
  base::ObjectPool<EnsembleFrame>::Give(this);
}

void EnsembleFrame::Recycle() {
  for (size_t i = 0; i < source_count_; ++i) {
    sources_[i].readers.store(0, std::memory_order_relaxed);
    sources_[i].correlation_id = uint64_t{0};
    sources_[i].flags = 0;
  }
  source_count_ = 0;
}

EnsembleRuns::Bucket& EnsembleRuns::BucketOf(const core::Request& request) {
  const auto address = reinterpret_cast<uintptr_t>(&request);
  // The low bits are the same for all requests; multiplication spreads the rest.
  return buckets_[(address * UINT64_C(0x9E3779B97F4A7C15)) >> 58];
}

void EnsembleRuns::Add(EnsembleRun& run, const core::Request& request) {
  static_assert(kBuckets == 64, "six bits of the hash");
  Bucket& bucket = BucketOf(request);
  base::MutexLock lock(bucket.mutex);
  run.bucket_previous_ = nullptr;
  run.bucket_next_ = bucket.head;
  if (bucket.head != nullptr) bucket.head->bucket_previous_ = &run;
  bucket.head = &run;
}

void EnsembleRuns::Remove(EnsembleRun& run, const core::Request& request) {
  Bucket& bucket = BucketOf(request);
  {
    base::MutexLock lock(bucket.mutex);
    (run.bucket_previous_ != nullptr ? run.bucket_previous_->bucket_next_ : bucket.head) =
        run.bucket_next_;
    if (run.bucket_next_ != nullptr) run.bucket_next_->bucket_previous_ = run.bucket_previous_;
  }
  if (!is_awaited_.load(std::memory_order_seq_cst)) return;
  base::MutexLock lock(mutex_);
  changed_.NotifyAll();
}

EnsembleRun* EnsembleRuns::Find(const core::Request& request) {
  Bucket& bucket = BucketOf(request);
  base::MutexLock lock(bucket.mutex);
  for (EnsembleRun* run = bucket.head; run != nullptr; run = run->bucket_next_) {
    if (run->request_.get() != &request) continue;
    run->Reference();
    return run;
  }
  return nullptr;
}

bool EnsembleRuns::WaitUntilEmpty(base::TimePoint deadline) {
  const auto is_empty = [this] {
    for (size_t i = 0; i < kBuckets; ++i) {
      base::MutexLock lock(buckets_[i].mutex);
      if (buckets_[i].head != nullptr) return false;
    }
    return true;
  };
  is_awaited_.store(true, std::memory_order_seq_cst);
  base::MutexLock lock(mutex_);
  while (!is_empty()) {
    if (!changed_.WaitUntil(mutex_, deadline)) return is_empty();
  }
  return true;
}

}  // namespace nereid::schedule
