// SPDX-License-Identifier: Apache-2.0
// The GPUs of a server: which there are, pools of their memory and of pinned host memory, and
// copies. Nothing of CUDA is touched before something asks, and no pool is made before an instance
// runs on a GPU or memory is wanted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "memory/cuda_driver.h"
#include "memory/memory_pool.h"
#include "memory/memory_type.h"

namespace nereid::memory {

// The defaults are Triton's.
struct GpuOptions {
  std::string driver = kCudaLibrary;
  double min_compute_capability = 0;  // GPUs with less are not used
  uint64_t pinned_pool_bytes = uint64_t{256} << 20;
  uint64_t gpu_pool_bytes = uint64_t{64} << 20;          // of each GPU that is not below
  std::map<int32_t, uint64_t> gpu_pool_bytes_by_device;  // 0: none
  bool enables_peer_access = true;
};

class Gpus;

// A piece of a GPU's pool, given back by its destructor. Movable; thread-compatible.
class GpuBlock {
 public:
  GpuBlock() = default;
  GpuBlock(GpuBlock&& other) noexcept
      : gpus_(std::exchange(other.gpus_, nullptr)), data_(other.data_), where_(other.where_) {}
  GpuBlock& operator=(GpuBlock&& other) noexcept {
    std::swap(gpus_, other.gpus_);
    std::swap(data_, other.data_);
    std::swap(where_, other.where_);
    return *this;
  }
  ~GpuBlock();

  explicit operator bool() const { return gpus_ != nullptr; }
  std::byte* data() const { return data_; }
  const Placement& where() const { return where_; }

 private:
  friend class Gpus;

  Gpus* gpus_ = nullptr;
  std::byte* data_ = nullptr;
  Placement where_;
};

// The GPUs. Thread-safe. Outlives everything that was allocated here.
class Gpus {
 public:
  explicit Gpus(GpuOptions options);
  ~Gpus();
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

  // Null on a machine without a driver or a GPU.
  const CudaDriver* driver() const { return Find().driver.get(); }
  // The GPUs with the required compute capability.
  const std::set<int32_t>& devices() const { return Find().devices; }

  // Makes what instances on `device` use: the pools, and its access to other GPUs' memory. Logs
  // what fails; the server works without.
  void Prepare(int32_t device);

  // Looks whether a prepared GPU has failed for good, and remembers and logs it. Called when
  // something has failed that may have used a GPU; looks a few times a second at most.
  void LookForFailures() const;
  bool has_failed() const { return has_failed_.load(); }
  // The errors of the GPUs that have failed for good.
  std::map<int32_t, std::string> Failures() const;

  // Takes memory of a pool. Fails with the reason if there is no room or no pool; a caller then
  // uses other memory. REQUIRES: `where` is no plain CPU memory.
  base::Result<std::byte*> Allocate(size_t size, const Placement& where);
  base::Status Free(const void* memory, const Placement& where);
  // Returns a piece of a GPU's pool; empty if there is no room.
  GpuBlock TakeBlock(size_t size, int64_t device);

  // Copies between any two kinds of memory; complete on return.
  base::Status Copy(void* to, const Placement& to_where, const void* from,
                    const Placement& from_where, size_t size) const;

  // The size of the pool of pinned memory, whether or not it is made, and how much is in use.
  uint64_t pinned_pool_bytes() const { return options_.pinned_pool_bytes; }
  size_t UsedPinnedBytes() const;

 private:
  struct Found {
    std::unique_ptr<const CudaDriver> driver;
    std::set<int32_t> devices;
  };
  // A pool and its memory; without a pool, why there is none.
  struct Pool {
    std::unique_ptr<MemoryPool> pool;
    void* memory = nullptr;
    base::Status failure;
  };

  // A pool, which one thread makes while others wait.
  struct Entry {
    bool is_made = false;
    Pool pool;  // constant once made
  };

  const Found& Find() const;
  std::unique_ptr<const Found> Look() const;
  // Returns the pool for a kind of memory, which is made by the first call.
  const Pool& PoolFor(const Placement& where);
  Pool MakePool(const Placement& where) const;
  uint64_t PoolBytes(int64_t device) const;
  void EnablePeers(int32_t device) const;

  const GpuOptions options_;
  mutable base::Mutex mutex_;
  mutable std::unique_ptr<const Found> found_ NEREID_GUARDED_BY(mutex_);  // constant once set
  mutable base::Mutex pool_mutex_;
  base::CondVar pool_made_;
  std::map<int64_t, Entry> pools_ NEREID_GUARDED_BY(pool_mutex_);  // by device; -1: pinned memory
  std::set<int32_t> prepared_ NEREID_GUARDED_BY(pool_mutex_);
  mutable std::map<int32_t, std::string> failures_ NEREID_GUARDED_BY(pool_mutex_);
  std::atomic<bool> is_prepared_{false};  // a GPU is
  mutable std::atomic<bool> has_failed_{false};
  mutable std::atomic<uint64_t> looked_at_ns_{0};  // for failures, the last time
};

}  // namespace nereid::memory
