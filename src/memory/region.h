// SPDX-License-Identifier: Apache-2.0
// One memory region that a client registered by name: a mapped piece of a POSIX shared memory
// object, or another process's allocation on a GPU. Made and found by RegionTable.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "memory/cuda_driver.h"
#include "memory/fault_guard.h"
#include "memory/memory_type.h"

namespace nereid::memory {

enum class RegionKind : uint8_t { kSystem, kCuda };

// What a client says when it registers system memory.
struct SystemRegionSpec {
  std::string name;
  std::string key;  // of shm_open
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};

// The same for memory of a GPU.
struct CudaRegionSpec {
  std::string name;
  CudaIpcHandle handle;
  int64_t device = 0;
  uint64_t byte_size = 0;
};

// What a status request tells of a region.
struct RegionStatus {
  std::string name;
  RegionKind kind = RegionKind::kSystem;
  std::string key;      // kSystem
  uint64_t offset = 0;  // kSystem
  uint64_t byte_size = 0;
  int64_t device = 0;  // kCuda
};

// Thread-safe; what lies in it is as safe as the client makes it, who may write at any time.
class Region {
 public:
  // Whether a client may name the object: not those of the Python backend.
  static base::Status CheckKey(const SystemRegionSpec& spec);
  // Errors are those that Triton gives for a key, a size or an offset that does not fit.
  static base::Result<std::shared_ptr<Region>> MapSystem(const SystemRegionSpec& spec);
  // `driver` outlives the region.
  static base::Result<std::shared_ptr<Region>> OpenCuda(const CudaRegionSpec& spec,
                                                        const CudaDriver& driver);
  // Ends the mapping.
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  const RegionStatus& status() const { return status_; }
  bool is_on_device() const { return status_.kind == RegionKind::kCuda; }
  // Of kSystem; 64-byte aligned, as it is page-aligned.
  std::byte* data() const { return data_; }
  // Its memory was found to be gone; whatever was read from it or written to it means nothing.
  bool is_broken() const { return guard_ && guard_->is_broken(); }

  // Copies out of and into the region, wherever it is. The bounds are the caller's.
  base::Status Read(std::byte* to, size_t offset, size_t size) const;
  base::Status Write(size_t offset, const std::byte* from, size_t size) const;

 private:
  friend class RegionTable;
  friend class RegionUse;

  explicit Region(RegionStatus status) : status_(std::move(status)) {}

  const RegionStatus status_;
  std::byte* data_ = nullptr;           // kSystem
  std::optional<FaultGuard> guard_;     // kSystem
  const CudaDriver* driver_ = nullptr;  // kCuda
  CudaAddress address_ = 0;             // kCuda

  // -- Of the table. --
  std::atomic<uint32_t> uses_{0};
  std::atomic<bool> is_leaving_{false};  // to be unregistered with its last use
};

}  // namespace nereid::memory
