// SPDX-License-Identifier: Apache-2.0
// Texts of the log and of errors follow Triton's pinned_memory_manager.cc and
// cuda_memory_manager.cc.
#include "memory/gpus.h"

#include <cstring>

#include "base/log.h"

namespace nereid::memory {
namespace {

constexpr int64_t kPinnedPool = -1;

}  // namespace

GpuBlock::~GpuBlock() {
  if (gpus_ == nullptr) return;
  const base::Status status = gpus_->Free(data_, where_);
  if (!status.ok()) NEREID_LOG(kError, "{}", status.message());
}

Gpus::Gpus(GpuOptions options) : options_(std::move(options)) {}

Gpus::~Gpus() {
  base::MutexLock lock(pool_mutex_);
  for (const auto& [id, entry] : pools_) {
    const Pool& pool = entry.pool;
    if (pool.memory == nullptr) continue;
    const CudaDriver& cuda = *driver();
    const base::Status status = id == kPinnedPool ? cuda.FreePinned(pool.memory)
                                                  : cuda.Free(ToCudaAddress(pool.memory), id);
    if (!status.ok()) NEREID_LOG(kError, "failed to free a memory pool: {}", status.message());
  }
}

const Gpus::Found& Gpus::Find() const {
  {
    base::MutexLock lock(mutex_);
    if (found_ != nullptr) return *found_;
  }
  // Opening the driver is slow, so it happens outside the lock. Opening it twice does no harm.
  std::unique_ptr<const Found> found = Look();
  base::MutexLock lock(mutex_);
  if (found_ == nullptr) found_ = std::move(found);
  return *found_;
}

std::unique_ptr<const Gpus::Found> Gpus::Look() const {
  auto found = std::make_unique<Found>();
  found->driver = CudaDriver::Open(options_.driver);
  const int count = found->driver == nullptr ? 0 : found->driver->device_count();
  for (int32_t device = 0; device < count; ++device) {
    const auto capability = found->driver->ComputeCapability(device);
    if (!capability.ok()) {
      NEREID_LOG(kError, "GPU {} is not used: {}", device, capability.status().message());
    } else if (*capability < options_.min_compute_capability - 0.01) {
      NEREID_LOG(kWarning,
                 "GPU {} is not used: it has compute capability {:.1f}, which is less than the "
                 "minimum of {:.1f}",
                 device, *capability, options_.min_compute_capability);
    } else {
      found->devices.insert(device);
    }
  }
  return found;
}

uint64_t Gpus::PoolBytes(int64_t device) const {
  if (device == kPinnedPool) return options_.pinned_pool_bytes;
  const auto set = options_.gpu_pool_bytes_by_device.find(static_cast<int32_t>(device));
  return set == options_.gpu_pool_bytes_by_device.end() ? options_.gpu_pool_bytes : set->second;
}

Gpus::Pool Gpus::MakePool(const Placement& where) const {
  Pool made;
  const bool is_pinned = where.type == MemoryType::kCpuPinned;
  const size_t size = PoolBytes(is_pinned ? kPinnedPool : where.id);
  const CudaDriver& cuda = *driver();
  if (size == 0) {
    NEREID_LOG(kInfo, "{} memory pool disabled", is_pinned ? "Pinned" : "CUDA");
    made.failure = base::UnavailableError(
        is_pinned ? "failed to allocate pinned system memory: no pinned memory pool"
                  : "GPU " + std::to_string(where.id) + " has no preallocated CUDA memory");
    return made;
  }
  base::Status status;
  if (is_pinned) {
    auto memory = cuda.AllocatePinned(size);
    if (memory.ok()) made.memory = *memory;
    status = memory.status();
  } else {
    auto address = cuda.Allocate(size, where.id);
    if (address.ok()) made.memory = FromCudaAddress(*address);
    status = address.status();
  }
  if (!status.ok()) {
    const std::string kind =
        is_pinned ? "pinned system memory" : "CUDA memory of GPU " + std::to_string(where.id);
    NEREID_LOG(kWarning, "Unable to allocate {}, its pool will not be available: {}", kind,
               status.message());
    made.failure =
        base::UnavailableError("failed to allocate " + kind + ": " + std::string(status.message()));
    return made;
  }
  if (is_pinned) {
    NEREID_LOG(kInfo, "Pinned memory pool is created at '{}' with size {}", made.memory, size);
  } else {
    NEREID_LOG(kInfo, "CUDA memory pool is created on device {} with size {}", where.id, size);
  }
  made.pool = std::make_unique<MemoryPool>(reinterpret_cast<uintptr_t>(made.memory), size);
  return made;
}

const Gpus::Pool& Gpus::PoolFor(const Placement& where) {
  const int64_t id = where.type == MemoryType::kCpuPinned ? kPinnedPool : where.id;
  Entry* entry = nullptr;
  {
    base::MutexLock lock(pool_mutex_);
    const auto [found, is_new] = pools_.try_emplace(id);
    entry = &found->second;
    if (!is_new) {
      while (!entry->is_made) pool_made_.Wait(pool_mutex_);
      return entry->pool;
    }
  }
  Pool made = MakePool(where);
  base::MutexLock lock(pool_mutex_);
  entry->pool = std::move(made);
  entry->is_made = true;
  pool_made_.NotifyAll();
  return entry->pool;
}

void Gpus::EnablePeers(int32_t device) const {
  for (const int32_t peer : devices()) {
    if (peer == device) continue;
    const base::Status status = driver()->EnablePeerAccess(device, peer);
    if (status.ok()) continue;
    NEREID_LOG(kWarning, "failed to enable peer access of GPU {} to GPU {}: {}", device, peer,
               status.message());
  }
}

void Gpus::Prepare(int32_t device) {
  if (!devices().contains(device)) return;
  {
    base::MutexLock lock(pool_mutex_);
    if (!prepared_.insert(device).second) return;
  }
  is_prepared_.store(true);
  if (options_.enables_peer_access) EnablePeers(device);
  PoolFor({.type = MemoryType::kCpuPinned});
  PoolFor({.type = MemoryType::kGpu, .id = device});
}

void Gpus::LookForFailures() const {
  constexpr uint64_t kPauseNs = 200'000'000;
  if (!is_prepared_.load()) return;
  const uint64_t now_ns = base::NowNs();
  uint64_t last_ns = looked_at_ns_.load();
  if (now_ns - last_ns < kPauseNs || !looked_at_ns_.compare_exchange_strong(last_ns, now_ns))
    return;
  std::set<int32_t> asked;
  {
    base::MutexLock lock(pool_mutex_);
    asked = prepared_;
    for (const auto& [device, error] : failures_) asked.erase(device);
  }
  for (const int32_t device : asked) {
    const base::Status status = driver()->StickyError(device);
    if (status.ok()) continue;
    {
      base::MutexLock lock(pool_mutex_);
      if (!failures_.try_emplace(device, status.message()).second) continue;
    }
    has_failed_.store(true);
    NEREID_LOG(kError, "GPU {} has failed for good ({}): only a restart of the server cures this",
               device, status.message());
  }
}

std::map<int32_t, std::string> Gpus::Failures() const {
  if (!has_failed()) return {};
  base::MutexLock lock(pool_mutex_);
  return failures_;
}

base::Result<std::byte*> Gpus::Allocate(size_t size, const Placement& where) {
  const bool is_pinned = where.type == MemoryType::kCpuPinned;
  if (driver() == nullptr) {
    return base::UnsupportedError(is_pinned ? "Pinned memory allocation not supported"
                                            : "GPU memory allocation not supported");
  }
  if (!is_pinned && !devices().contains(static_cast<int32_t>(where.id))) {
    return base::InvalidArgumentError("there is no GPU " + std::to_string(where.id));
  }
  const Pool& pool = PoolFor(where);
  NEREID_RETURN_IF_ERROR(pool.failure);
  const uintptr_t address = pool.pool->Take(size);
  if (address != 0) return reinterpret_cast<std::byte*>(address);
  return base::UnavailableError(
      is_pinned
          ? "failed to allocate pinned system memory: the pool has no " + std::to_string(size) +
                " bytes left in one piece (--pinned-memory-pool-byte-size)"
          : "Failed to allocate CUDA memory with byte size " + std::to_string(size) + " on GPU " +
                std::to_string(where.id) +
                ": the pool has not that much left in one piece "
                "(--cuda-memory-pool-byte-size)");
}

base::Status Gpus::Free(const void* memory, const Placement& where) {
  if (driver() != nullptr) {
    const Pool& pool = PoolFor(where);
    if (pool.pool != nullptr && pool.pool->Give(reinterpret_cast<uintptr_t>(memory))) {
      return base::OkStatus();
    }
  }
  return base::InvalidArgumentError("memory that is given back was not allocated here");
}

GpuBlock Gpus::TakeBlock(size_t size, int64_t device) {
  GpuBlock block;
  block.where_ = {.type = MemoryType::kGpu, .id = device};
  auto memory = Allocate(size, block.where_);
  if (!memory.ok()) {
    NEREID_VLOG(1, "{}", memory.status().message());
    return {};
  }
  block.data_ = *memory;
  block.gpus_ = this;
  return block;
}

base::Status Gpus::Copy(void* to, const Placement& to_where, const void* from,
                        const Placement& from_where, size_t size) const {
  if (size == 0) return base::OkStatus();
  const bool to_gpu = to_where.type == MemoryType::kGpu;
  if (!to_gpu && from_where.type != MemoryType::kGpu) {
    std::memcpy(to, from, size);
    return base::OkStatus();
  }
  const CudaDriver* const cuda = driver();
  if (cuda == nullptr) return base::UnsupportedError("there is no GPU");
  base::Status status = cuda->Copy(to, from, size, to_gpu ? to_where.id : from_where.id);
  if (!status.ok()) LookForFailures();
  return status;
}

size_t Gpus::UsedPinnedBytes() const {
  base::MutexLock lock(pool_mutex_);
  const auto found = pools_.find(kPinnedPool);
  const bool is_there = found != pools_.end() && found->second.pool.pool != nullptr;
  return is_there ? found->second.pool.pool->used() : 0;
}

}  // namespace nereid::memory
