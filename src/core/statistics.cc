// SPDX-License-Identifier: Apache-2.0
#include "core/statistics.h"

#include <bit>
#include <chrono>
#include <type_traits>
#include <utility>

#include "base/clock.h"
#include "base/per_thread.h"

namespace nereid::core {
namespace {

// The shard that a thread writes. Each shard except the last belongs to one living thread, which
// therefore adds without locked instructions; the last is shared by all threads that found no free
// one.
class ShardSlot {
 public:
  static constexpr size_t kExclusive = 15;

  ShardSlot() {
    base::MutexLock lock(Slots().mutex);
    while (index_ < kExclusive && Slots().is_taken[index_]) ++index_;
    if (is_exclusive()) Slots().is_taken[index_] = true;
  }
  ~ShardSlot() {
    if (!is_exclusive()) return;
    base::MutexLock lock(Slots().mutex);
    Slots().is_taken[index_] = false;
  }
  size_t index() const { return index_; }
  bool is_exclusive() const { return index_ < kExclusive; }

  static const ShardSlot& Mine() { return base::PerThread<ShardSlot>::Get(); }

 private:
  // The exclusive shards that living threads have taken.
  struct Table {
    base::Mutex mutex;
    std::array<bool, kExclusive> is_taken NEREID_GUARDED_BY(mutex){};
  };
  // Leaked on purpose: threads may end after everything else.
  static Table& Slots() {
    static Table* const table = new Table;
    return *table;
  }

  size_t index_ = 0;
};

// Adds to counters of one shard. A thread that has its shard alone needs no locked instruction: its
// load is of what it wrote itself, and its store pairs with the loads of AddTo and of Read, so that
// a reader that sees a count sees the ones that were added before it.
class Adder {
 public:
  explicit Adder(bool is_exclusive) : is_exclusive_(is_exclusive) {}

  template <typename T>
  void operator()(std::atomic<T>& counter, std::type_identity_t<T> by) const {
    if (is_exclusive_) [[likely]] {
      counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_release);
    } else {
      counter.fetch_add(by);
    }
  }

 private:
  const bool is_exclusive_;
};

uint64_t Since(uint64_t start, uint64_t end) { return end > start ? end - start : 0; }

// Summaries observe durations in this unit.
double WholeMicroseconds(uint64_t ns) {
  const uint64_t us = ns / 1000;
  return static_cast<double>(us);
}

// A Duration that is added to while it is read.
struct AtomicDuration {
  std::atomic<uint64_t> count{0};
  std::atomic<uint64_t> ns{0};

  void Record(Adder add, uint64_t duration_ns) {
    add(count, 1);
    add(ns, duration_ns);
  }
  void AddTo(Duration& sum) const {
    sum.count += count.load();
    sum.ns += ns.load();
  }
};

// The durations of batches of one size. Added by an executing thread and never removed.
struct BatchCounters {
  explicit BatchCounters(uint64_t of_size) : size(of_size) {}

  const uint64_t size;
  std::atomic<uint64_t> input_ns{0}, infer_ns{0}, output_ns{0};
  std::atomic<uint64_t> count{0};  // of all three
  BatchCounters* next = nullptr;   // constant once it is in its list
};

// BatchCounters by size. Lookup and insertion take no lock.
class BatchTable {
 public:
  BatchTable() = default;
  BatchTable(const BatchTable&) = delete;
  BatchTable& operator=(const BatchTable&) = delete;
  ~BatchTable() {
    for (const auto& list : lists_) {
      for (BatchCounters* batch = list.load(); batch != nullptr;) {
        delete std::exchange(batch, batch->next);
      }
    }
  }

  BatchCounters& Of(uint64_t size) {
    std::atomic<BatchCounters*>& list = lists_[size % kLists];
    BatchCounters* first = list.load();
    if (BatchCounters* const found = Find(first, size)) [[likely]]
      return *found;
    auto made = std::make_unique<BatchCounters>(size);
    do {
      // Another thread that shares this shard may have inserted it in the meantime.
      if (BatchCounters* const found = Find(first, size)) return *found;
      made->next = first;
    } while (!list.compare_exchange_weak(first, made.get()));
    return *made.release();
  }
  void AddTo(std::map<uint64_t, BatchStatistics>& sums) const {
    for (const auto& list : lists_) {
      const BatchCounters* batch = list.load();
      for (; batch != nullptr; batch = batch->next) {
        const uint64_t count = batch->count.load();
        if (count == 0) continue;
        BatchStatistics& sum = sums[batch->size];
        sum.compute_input += {count, batch->input_ns.load()};
        sum.compute_infer += {count, batch->infer_ns.load()};
        sum.compute_output += {count, batch->output_ns.load()};
      }
    }
  }

 private:
  static constexpr size_t kLists = 4;  // no larger than a std::map

  static BatchCounters* Find(BatchCounters* batch, uint64_t size) {
    while (batch != nullptr && batch->size != size) batch = batch->next;
    return batch;
  }

  std::array<std::atomic<BatchCounters*>, kLists> lists_{};
};

// The first bucket that a duration with this many bits may fall into.
constexpr std::array<uint8_t, 65> kFirstBucket = [] {
  std::array<uint8_t, 65> table{};
  for (size_t bits = 1; bits < table.size(); ++bits) {
    const uint64_t least = uint64_t{1} << (bits - 1);
    while (table[bits] < kDurationBoundsNs.size() && kDurationBoundsNs[table[bits]] < least) {
      ++table[bits];
    }
  }
  return table;
}();

// DurationBuckets that are added to while they are read.
struct AtomicBuckets {
  std::array<std::atomic<uint64_t>, kDurationBoundsNs.size() + 1> counts{};

  void Record(Adder add, uint64_t duration_ns) {
    size_t bucket = kFirstBucket[static_cast<size_t>(std::bit_width(duration_ns))];
    while (bucket < kDurationBoundsNs.size() && duration_ns > kDurationBoundsNs[bucket]) ++bucket;
    add(counts[bucket], 1);
  }
  void AddTo(DurationBuckets& sum) const {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += counts[i].load();
  }
};

// How often something happened, by why it did.
struct ReasonCounters {
  std::array<std::atomic<uint64_t>, kFailureReasons> failures{};
  std::array<std::atomic<uint64_t>, kBatchClosedReasons> batches_closed{};
  std::array<std::atomic<uint64_t>, kRefusals> refusals{};
};

template <size_t count>
void AddAll(const std::array<std::atomic<uint64_t>, count>& counters,
            std::array<uint64_t, count>& sums) {
  for (size_t i = 0; i < count; ++i) sums[i] += counters[i].load();
}

}  // namespace

struct alignas(128) ModelStatistics::Shard {
  AtomicDuration success, fail, queue, compute_input, compute_infer, compute_output;
  AtomicDuration cache_hit, cache_miss;
  AtomicBuckets request_buckets, queue_buckets, compute_buckets;
  std::atomic<uint64_t> inference_count{0};
  std::atomic<uint64_t> execution_count{0};
  std::atomic<uint64_t> last_executed_ns{0};
  std::atomic<int64_t> pending{0};
  ReasonCounters reasons;
  BatchTable batches;
  mutable base::Mutex mutex;
  std::map<uint64_t, ResponseStatistics> responses NEREID_GUARDED_BY(mutex);
};

ModelStatistics::ModelStatistics() { static_assert(ShardSlot::kExclusive + 1 == kShards); }

ModelStatistics::~ModelStatistics() {
  for (const std::atomic<Shard*>& shard : shards_) delete shard.load();
}

// The shard that the calling thread writes, and how.
struct ModelStatistics::Writer {
  Shard& shard;
  Adder add;
};

ModelStatistics::Writer ModelStatistics::Mine() {
  const ShardSlot& slot = ShardSlot::Mine();
  Shard* const shard = shards_[slot.index()].load();
  return {shard != nullptr ? *shard : Make(slot.index()), Adder(slot.is_exclusive())};
}

ModelStatistics::Shard& ModelStatistics::Make(size_t index) {
  auto made = std::make_unique<Shard>();
  Shard* shard = nullptr;
  // Threads that share a shard may make it at the same time.
  if (shards_[index].compare_exchange_strong(shard, made.get())) {
    return *made.release();
  }
  return *shard;
}

void ModelStatistics::RecordSuccess(uint64_t batch_size, uint64_t request_start_ns,
                                    uint64_t queue_start_ns, const ComputeTimes& compute,
                                    uint64_t request_end_ns) {
  const auto [shard, add] = Mine();
  const uint64_t request_ns = Since(request_start_ns, request_end_ns);
  const uint64_t queue_ns = Since(queue_start_ns, compute.compute_start_ns);
  const uint64_t input_ns = Since(compute.compute_start_ns, compute.compute_input_end_ns);
  const uint64_t infer_ns = Since(compute.compute_input_end_ns, compute.compute_output_start_ns);
  const uint64_t output_ns = Since(compute.compute_output_start_ns, compute.compute_end_ns);
  shard.success.Record(add, request_ns);
  shard.queue.Record(add, queue_ns);
  shard.compute_input.Record(add, input_ns);
  shard.compute_infer.Record(add, infer_ns);
  shard.compute_output.Record(add, output_ns);
  add(shard.inference_count, batch_size);
  shard.request_buckets.Record(add, request_ns);
  shard.queue_buckets.Record(add, queue_ns);
  shard.compute_buckets.Record(add, input_ns + infer_ns + output_ns);
  if (observers_ == nullptr || observers_->queue == nullptr) [[likely]]
    return;
  const auto observe = [](observe::Summary& summary, uint64_t ns) {
    summary.Observe(WholeMicroseconds(ns));
  };
  if (observers_->request != nullptr) observe(*observers_->request, request_ns);
  observe(*observers_->queue, queue_ns);
  observe(*observers_->compute_input, input_ns);
  observe(*observers_->compute_infer, infer_ns);
  observe(*observers_->compute_output, output_ns);
}

void ModelStatistics::Observe(const ObserveOptions& options) {
  observers_ = std::make_unique<Observers>(options);
  times_first_responses_ = observers_->first_response != nullptr;
}

void ModelStatistics::RecordFirstResponse(uint64_t request_start_ns) {
  observers_->first_response->Record(Since(request_start_ns, base::NowNs()) / 1'000'000);
}

void ModelStatistics::RecordFailure(FailureReason reason, uint64_t request_start_ns,
                                    uint64_t request_end_ns) {
  const auto [shard, add] = Mine();
  shard.fail.Record(add, Since(request_start_ns, request_end_ns));
  add(shard.reasons.failures[static_cast<size_t>(reason)], 1);
}

void ModelStatistics::RecordRefusal(Refusal reason) {
  const auto [shard, add] = Mine();
  add(shard.reasons.refusals[static_cast<size_t>(reason)], 1);
}

void ModelStatistics::RecordExecution(uint64_t batch_size, const ComputeTimes& compute,
                                      uint64_t executed_ns) {
  const auto [shard, add] = Mine();
  add(shard.execution_count, 1);
  // Relaxed: a time that stands for itself.
  shard.last_executed_ns.store(executed_ns, std::memory_order_relaxed);
  BatchCounters& batch = shard.batches.Of(batch_size);
  add(batch.input_ns, Since(compute.compute_start_ns, compute.compute_input_end_ns));
  add(batch.infer_ns, Since(compute.compute_input_end_ns, compute.compute_output_start_ns));
  add(batch.output_ns, Since(compute.compute_output_start_ns, compute.compute_end_ns));
  add(batch.count, 1);
}

void ModelStatistics::RecordCacheHit(uint64_t request_start_ns, uint64_t request_end_ns,
                                     uint64_t lookup_ns) {
  const auto [shard, add] = Mine();
  shard.success.Record(add, Since(request_start_ns, request_end_ns));
  shard.queue.Record(add, 0);
  shard.cache_hit.Record(add, lookup_ns);
  shard.request_buckets.Record(add, Since(request_start_ns, request_end_ns));
  shard.queue_buckets.Record(add, 0);
  if (observers_ == nullptr || observers_->cache_hit == nullptr) return;
  observers_->queue->Observe(0);
  observers_->cache_hit->Observe(WholeMicroseconds(lookup_ns));
}

void ModelStatistics::RecordCacheMiss(uint64_t cache_ns) {
  const auto [shard, add] = Mine();
  shard.cache_miss.Record(add, cache_ns);
  if (observers_ == nullptr || observers_->cache_miss == nullptr) return;
  observers_->cache_miss->Observe(WholeMicroseconds(cache_ns));
}

void ModelStatistics::RecordBatchClosed(BatchClosed reason, uint64_t taken) {
  const auto [shard, add] = Mine();
  add(shard.pending, -static_cast<int64_t>(taken));
  add(shard.reasons.batches_closed[static_cast<size_t>(reason)], 1);
}

void ModelStatistics::RecordResponse(uint64_t position, const ResponseStatistics& response) {
  const auto [shard, add] = Mine();
  base::MutexLock lock(shard.mutex);
  shard.responses[position] += response;
}

void ModelStatistics::AddPending(int64_t change) {
  const auto [shard, add] = Mine();
  add(shard.pending, change);
}

void ModelStatistics::SetMemoryUse(const void* owner, std::vector<MemoryUse> use) {
  base::MutexLock lock(mutex_);
  if (use.empty()) {
    memory_.erase(owner);
  } else {
    memory_[owner] = std::move(use);
  }
}

// Converts the end of an execution, which is recorded by the monotonic clock. The same execution
// always gets the same result, even if the wall clock was set in between.
uint64_t ModelStatistics::ToWallClockMs(uint64_t last_executed_ns) const {
  if (last_executed_ns == 0) return 0;
  base::MutexLock lock(mutex_);
  if (told_executed_ns_ == last_executed_ns) return told_ms_;
  told_executed_ns_ = last_executed_ns;
  const std::chrono::nanoseconds ago(Since(last_executed_ns, base::NowNs()));
  const auto executed = std::chrono::system_clock::now().time_since_epoch() - ago;
  told_ms_ = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(executed).count());
  return told_ms_;
}

std::optional<LoadCounts> ModelStatistics::ReadLoad() const {
  std::optional<LoadCounts> sum;
  int64_t pending = 0;
  for (const std::atomic<Shard*>& place : shards_) {
    const Shard* const shard = place.load();
    if (shard == nullptr) continue;
    if (!sum) sum.emplace();
    sum->successes += shard->success.count.load();
    sum->failures += shard->fail.count.load();
    shard->request_buckets.AddTo(sum->request_buckets);
    pending += shard->pending.load();
  }
  if (sum && pending > 0) sum->pending = static_cast<uint64_t>(pending);
  return sum;
}

StatisticsSnapshot ModelStatistics::Read() const {
  StatisticsSnapshot sum;
  uint64_t last_executed_ns = 0;
  int64_t pending = 0;
  for (const std::atomic<Shard*>& place : shards_) {
    const Shard* const made = place.load();
    if (made == nullptr) continue;
    const Shard& shard = *made;
    // The parts are read before the whole, because they are written in the opposite order.
    shard.compute_output.AddTo(sum.compute_output);
    shard.compute_infer.AddTo(sum.compute_infer);
    shard.compute_input.AddTo(sum.compute_input);
    shard.cache_hit.AddTo(sum.cache_hit);
    shard.cache_miss.AddTo(sum.cache_miss);
    shard.queue.AddTo(sum.queue);
    shard.success.AddTo(sum.success);
    shard.fail.AddTo(sum.fail);
    shard.request_buckets.AddTo(sum.request_buckets);
    shard.queue_buckets.AddTo(sum.queue_buckets);
    shard.compute_buckets.AddTo(sum.compute_buckets);
    sum.inference_count += shard.inference_count.load();
    sum.execution_count += shard.execution_count.load();
    last_executed_ns = std::max(last_executed_ns, shard.last_executed_ns.load());
    pending += shard.pending.load();
    AddAll(shard.reasons.failures, sum.failures);
    AddAll(shard.reasons.batches_closed, sum.batches_closed);
    AddAll(shard.reasons.refusals, sum.refusals);
    shard.batches.AddTo(sum.batches);
    base::MutexLock lock(shard.mutex);
    for (const auto& [position, response] : shard.responses) sum.responses[position] += response;
  }
  sum.last_inference_ms = ToWallClockMs(last_executed_ns);
  sum.pending_count = pending > 0 ? static_cast<uint64_t>(pending) : 0;
  std::map<std::pair<memory::MemoryType, int64_t>, uint64_t> bytes;
  base::MutexLock lock(mutex_);
  for (const auto& [owner, list] : memory_) {
    for (const MemoryUse& use : list) bytes[{use.where.type, use.where.id}] += use.bytes;
  }
  for (const auto& [where, size] : bytes) sum.memory.push_back({{where.first, where.second}, size});
  return sum;
}

}  // namespace nereid::core
