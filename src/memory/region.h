// SPDX-License-Identifier: Apache-2.0
// One memory region that a client registered by name: a mapped part of a POSIX shared memory
// object, or another process's allocation on a GPU. RegionTable makes and finds regions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "memory/cuda_driver.h"
#include "memory/fault_guard.h"
#include "memory/memory_type.h"

namespace nereid::memory {

enum class RegionKind : uint8_t { kSystem, kCuda };

// A client's request to register system memory.
struct SystemRegionSpec {
  std::string name;
  std::string key;  // the name given to shm_open
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};

// A client's request to register memory of a GPU.
struct CudaRegionSpec {
  std::string name;
  CudaIpcHandle handle;
  int64_t device = 0;
  uint64_t byte_size = 0;
};

// The properties of a region that a status request returns.
struct RegionStatus {
  std::string name;
  RegionKind kind = RegionKind::kSystem;
  std::string key;      // kSystem only
  uint64_t offset = 0;  // kSystem only
  uint64_t byte_size = 0;
  int64_t device = 0;  // kCuda only
};

// A region. Thread-safe, except for its content, which the client may change at any time.
class Region {
 public:
  // Checks that the key is not reserved for the Python backend.
  static base::Status CheckKey(const SystemRegionSpec& spec);
  // Fails with Triton's error texts for a key, a size or an offset that does not fit.
  static base::Result<std::shared_ptr<Region>> MapSystem(const SystemRegionSpec& spec);
  // `driver` outlives the region.
  static base::Result<std::shared_ptr<Region>> OpenCuda(const CudaRegionSpec& spec,
                                                        const CudaDriver& driver);
  // Unmaps the memory.
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const RegionStatus& status() const { return status_; }
  bool is_on_device() const { return status_.kind == RegionKind::kCuda; }
  // The memory of the region. That of a kSystem region is 64-byte aligned, as it is page-aligned;
  // that of a kCuda region is memory of a GPU, which only a GPU's driver may follow.
  std::byte* data() const { return data_; }
  Placement where() const {
    return is_on_device() ? Placement{.type = MemoryType::kGpu, .id = status_.device} : Placement{};
  }
  // The handle that the client registered, a CudaIpcHandle; null for a kSystem region.
  void* cuda_ipc_handle() const {
    return is_on_device() ? const_cast<CudaIpcHandle*>(&handle_) : nullptr;
  }
  // Whether the region's memory was found to be missing. Data read from it or written to it is then
  // meaningless.
  bool is_broken() const { return guard_ && guard_->is_broken(); }

  // Read and Write copy out of and into the region, wherever it is. REQUIRES: the range lies within
  // the region.
  base::Status Read(std::byte* to, size_t offset, size_t size) const;
  base::Status Write(size_t offset, const std::byte* from, size_t size) const;

 private:
  friend class RegionTable;
  friend class RegionUse;

  explicit Region(RegionStatus status) : status_(std::move(status)) {}

  const RegionStatus status_;
  std::byte* data_ = nullptr;
  std::optional<FaultGuard> guard_;     // kSystem only
  const CudaDriver* driver_ = nullptr;  // kCuda only
  CudaIpcHandle handle_{};              // kCuda only

  // -- Managed by RegionTable. --
  std::atomic<uint32_t> uses_{0};
  std::atomic<bool> is_leaving_{false};  // to be unregistered with its last use
};

// Returns a name as error texts show it.
std::string Quoted(std::string_view text);

}  // namespace nereid::memory
