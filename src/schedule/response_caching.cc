// SPDX-License-Identifier: Apache-2.0
// The statistics follow core/src/dynamic_batch_scheduler.cc and infer_stats.cc of Triton: a hit is
// a success without inference; a miss lasts as long as its look-up and its insertion, and does not
// count if another request has inserted the same meanwhile.
#include "schedule/response_caching.h"

#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/no_wait.h"
#include "base/object_pool.h"
#include "core/forwarding_sink.h"
#include "core/response.h"
#include "schedule/cache_key.h"

namespace nereid::schedule {
namespace {

bool IsCode(const base::Status& status, base::StatusCode code) {
  return !status.ok() && status.code() == code;
}

// Inserts the response of a request that was not in the cache. Pooled.
class InsertingSink final : public core::ForwardingSink {
 public:
  using Pool = base::ObjectPool<InsertingSink>;

  // `epoch`: the one that `key` was made in; nothing if the key is good in every epoch.
  void Start(core::ResponseCache& cache, const core::CacheKey& key, std::optional<uint64_t> epoch,
             uint64_t lookup_ns) {
    cache_ = &cache;
    key_ = key;
    epoch_ = epoch;
    lookup_ns_ = lookup_ns;
  }

  // The cache must get what the model wrote: an output that its client could change meanwhile is
  // placed in the pool instead, and copied to the client's memory when it is sent.
  base::Result<std::optional<core::OutputPlacement>> PlaceOutput(
      const core::Request& request, const core::ResponseOutput& output, size_t byte_size,
      memory::Placement preferred) override {
    auto placed = next().PlaceOutput(request, output, byte_size, preferred);
    if (!placed.ok() || !*placed || !(*placed)->may_change) return placed;
    next().ReleasePlacement(**placed, byte_size);
    return std::optional<core::OutputPlacement>();
  }

  void Send(core::ResponsePtr response, bool is_final) override {
    // Only a complete response: one of several would be wrong for the next request.
    const bool is_only = !std::exchange(has_sent_, true) && is_final;
    const bool is_kept = is_only && response != nullptr && response->error().ok() && IsOfItsEpoch();
    if (!is_kept) return next().Send(std::move(response), is_final);
    base::TaskPool* const threads = cache_->threads();
    // In this order, so that a client that has its response gets the next one from the cache.
    if (threads == nullptr) {
      Insert(*response);
      return next().Send(std::move(response), true);
    }
    // The instance may go on with its next batch meanwhile.
    threads->Post([this, response = std::move(response)]() mutable {
      Insert(*response);
      // A client that reads slowly must not keep a thread that others need.
      const base::NoWaitScope no_wait;
      next().Send(std::move(response), true);
    });
  }

  // For ObjectPool.
  void Recycle() {
    cache_ = nullptr;
    has_sent_ = false;
  }

 private:
  void Retire() override { Pool::Give(this); }

  // What began in one epoch and ended in another may be made of both.
  bool IsOfItsEpoch() const { return !epoch_ || *epoch_ == cache_->epoch(); }

  void Insert(const core::Response& response) {
    const uint64_t start_ns = base::NowNs();
    const base::Status status = cache_->Insert(key_, response);
    if (IsCode(status, base::StatusCode::kAlreadyExists)) return;
    if (response.request().is_counted) {
      response.request().model->statistics().RecordCacheMiss(lookup_ns_ +
                                                             (base::NowNs() - start_ns));
    }
    if (status.ok()) return;
    // A cache that cannot be reached reports this itself, once.
    if (status.code() == base::StatusCode::kUnavailable) {
      NEREID_VLOG(1, "Failed to insert key [{}] into response cache: {}", key_.view(),
                  status.message());
    } else {
      NEREID_LOG(kError, "Failed to insert key [{}] into response cache: {}", key_.view(),
                 status.message());
    }
  }

  core::ResponseCache* cache_ = nullptr;
  core::CacheKey key_;
  std::optional<uint64_t> epoch_;
  uint64_t lookup_ns_ = 0;
  bool has_sent_ = false;
};

// Copies data that a client could change between the look-up and the execution, because the
// response would then be cached for a different request. Returns false if there is no memory for
// it.
bool CopyWhatMayChange(core::Request& request) {
  for (core::RequestInput& input : request.inputs) {
    for (size_t i = 0; i < input.chunk_count(); ++i) {
      core::DataChunk& chunk = i == 0 ? input.first : input.more[i - 1];
      if (!chunk.may_change || chunk.where.type == memory::MemoryType::kGpu) continue;
      base::BufferRef copy = base::AcquireBuffer(chunk.size);
      if (!copy) return false;
      if (chunk.size > 0) std::memcpy(copy.data(), chunk.data, chunk.size);
      chunk.data = copy.data();
      chunk.may_change = false;
      request.Hold(std::move(copy));
    }
  }
  return true;
}

}  // namespace

std::unique_ptr<ResponseCaching> ResponseCaching::ForModel(const core::Model& model,
                                                           core::ResponseCache* cache) {
  if (cache == nullptr || !model.config().caches_responses()) return nullptr;
  return std::unique_ptr<ResponseCaching>(
      new ResponseCaching(*cache, model.config().ensemble_scheduling() != nullptr));
}

core::ResponsePtr ResponseCaching::Find(core::Request& request) const {
  if (!CopyWhatMayChange(request)) return nullptr;
  const std::optional<uint64_t> epoch = has_epochs_ ? std::optional(cache_.epoch()) : std::nullopt;
  const std::optional<core::CacheKey> key =
      MakeCacheKey(request, cache_.secret(), epoch.value_or(0));
  if (!key) return nullptr;
  core::ResponsePtr response = core::Response::Create(request);
  const uint64_t start_ns = base::NowNs();
  const base::Status status = cache_.Lookup(*key, *response);
  const uint64_t end_ns = base::NowNs();
  if (status.ok()) {
    if (request.is_counted) {
      request.model->statistics().RecordCacheHit(request.times.request_start_ns, end_ns,
                                                 end_ns - start_ns);
    }
    return response;
  }
  if (status.code() != base::StatusCode::kNotFound) {
    NEREID_VLOG(1, "{}response cache failed to look up key [{}]: {}", request.LogPrefix(),
                key->view(), status.message());
  }
  InsertingSink* const sink = InsertingSink::Pool::Take();
  sink->Start(cache_, *key, epoch, end_ns - start_ns);
  sink->PutBefore(request);
  return nullptr;
}

}  // namespace nereid::schedule
