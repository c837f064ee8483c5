// SPDX-License-Identifier: Apache-2.0
// The memory regions that clients registered by name. A region that is unregistered while requests
// use it stays, can be used by others, and goes with the last of them: that is what Triton's
// clients see.
//
//   NEREID_ASSIGN_OR_RETURN(memory::RegionUse use, table.Use("input0", 0, 64));
//   ... use.data() ...                       // as long as `use` lives
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "memory/region.h"

namespace nereid::memory {

class RegionTable;

// A piece of a region, which stays at least as long. Movable; thread-compatible. The table outlives
// it.
class RegionUse {
 public:
  RegionUse(RegionUse&& other) noexcept = default;
  RegionUse& operator=(RegionUse&& other) noexcept;
  ~RegionUse() { Release(); }

  const Region& region() const { return *region_; }
  size_t size() const { return size_; }
  // Where it lies; not for a region on a device.
  std::byte* data() const { return region_->data() + offset_; }
  // Copies all of it to `to`.
  base::Status Read(std::byte* to) const { return region_->Read(to, offset_, size_); }
  // Copies `size` bytes, at most its own size, to its beginning.
  base::Status Write(const std::byte* from, size_t size) const {
    return region_->Write(offset_, from, size);
  }
  // The operator says that clients do not change a region while a model uses it.
  bool is_trusted() const;
  // An error that tells the client, when the region was found to have lost its memory.
  base::Status CheckWhole() const;

 private:
  friend class RegionTable;
  RegionUse(RegionTable& table, std::shared_ptr<Region> region, size_t offset, size_t size)
      : table_(&table), region_(std::move(region)), offset_(offset), size_(size) {}
  void Release();

  RegionTable* table_;
  std::shared_ptr<Region> region_;  // null: moved away
  size_t offset_;
  size_t size_;
};

// Thread-safe. Texts of errors are Triton's.
class RegionTable {
 public:
  // With `allows_clients` false nothing can be registered or unregistered (--allow-client-shm);
  // with `trusts_clients` any model may use the regions in place (--trust-shared-memory).
  explicit RegionTable(bool allows_clients, bool trusts_clients = false)
      : allows_clients_(allows_clients), trusts_clients_(trusts_clients) {}
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // Unsupported when clients may not have regions: said before anything else is looked at.
  base::Status CheckAllowed() const;
  // Whether a CUDA region `name` can be had at all: not without a GPU.
  base::Status CheckCuda(std::string_view name) { return FindCuda(name).status(); }

  base::Status RegisterSystem(const SystemRegionSpec& spec);
  base::Status RegisterCuda(const CudaRegionSpec& spec);
  // Of one region, or of all of a kind (name ""), in the order of their names.
  base::Result<std::vector<RegionStatus>> ReadStatus(RegionKind kind, std::string_view name) const;
  // One region, or all of a kind (name ""). One that is not there is fine.
  base::Status Unregister(RegionKind kind, std::string_view name);

  // `size` bytes at `offset` of a region.
  base::Result<RegionUse> Use(std::string_view name, uint64_t offset, uint64_t size);

 private:
  friend class RegionUse;
  using Regions = std::map<std::string, std::shared_ptr<Region>, std::less<>>;

  // Regions are many pages each, and a process has only so many mappings.
  static constexpr size_t kMaxRegions = 16384;

  base::Result<const CudaDriver*> FindCuda(std::string_view name);
  base::Status CheckNew(std::string_view name) const;
  base::Status CheckNewLocked(std::string_view name) const NEREID_REQUIRES(mutex_);
  base::Status Add(std::shared_ptr<Region> region);
  // A region that is leaving lost its last use.
  void Sweep(const Region& region);

  const bool allows_clients_;
  const bool trusts_clients_;
  mutable base::Mutex mutex_;
  Regions regions_ NEREID_GUARDED_BY(mutex_);
  bool has_looked_for_cuda_ NEREID_GUARDED_BY(mutex_) = false;
  // Kept once found, as regions use it.
  std::unique_ptr<const CudaDriver> cuda_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::memory
