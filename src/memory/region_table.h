// SPDX-License-Identifier: Apache-2.0
// The memory regions that clients registered by name. A region that is unregistered while requests
// use it stays usable, also for other requests, until the last of them ends. Triton's clients see
// the same.
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
#include "memory/gpus.h"
#include "memory/region.h"

namespace nereid::memory {

class RegionTable;

// A use of a part of a region, which exists at least as long. Movable; thread-compatible. The table
// outlives it.
class RegionUse {
 public:
  RegionUse(RegionUse&& other) noexcept = default;
  RegionUse& operator=(RegionUse&& other) noexcept;
  ~RegionUse() { Release(); }

  const Region& region() const { return *region_; }
  size_t size() const { return size_; }
  // The memory of this part, which is where region().where() says.
  std::byte* data() const { return region_->data() + offset_; }
  // The GPUs of the server; null without any.
  Gpus* gpus() const;
  // Copies the whole part to `to`, which is anywhere that the region's driver can reach.
  base::Status Read(std::byte* to) const { return region_->Read(to, offset_, size_); }
  // Copies `size` bytes to the beginning of the part. REQUIRES: `size` is at most the part's own.
  base::Status Write(const std::byte* from, size_t size) const {
    return region_->Write(offset_, from, size);
  }
  // Whether the operator declared that clients do not change a region while a model uses it.
  bool is_trusted() const;
  // Returns an error for the client if the region was found to have lost its memory.
  base::Status CheckWhole() const;

 private:
  friend class RegionTable;
  RegionUse(RegionTable& table, std::shared_ptr<Region> region, size_t offset, size_t size)
      : table_(&table), region_(std::move(region)), offset_(offset), size_(size) {}
  void Release();

  RegionTable* table_;
  std::shared_ptr<Region> region_;  // null when moved from
  size_t offset_;
  size_t size_;
};

// All registered regions. Thread-safe. Error texts are Triton's.
class RegionTable {
 public:
  // With `allows_clients` false nothing can be registered or unregistered (--allow-client-shm);
  // with `trusts_clients` any model may use the regions in place (--trust-shared-memory).
  // `gpus` outlives the table; null: there are none.
  explicit RegionTable(bool allows_clients, bool trusts_clients = false, Gpus* gpus = nullptr)
      : allows_clients_(allows_clients), trusts_clients_(trusts_clients), gpus_(gpus) {}
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // Returns Unsupported if clients may not have regions. Callers check this before the arguments of
  // a request.
  base::Status CheckAllowed() const;
  // Fails if there cannot be a CUDA region `name`, as on a machine without a GPU.
  base::Status CheckCuda(std::string_view name) { return FindCuda(name).status(); }

  base::Status RegisterSystem(const SystemRegionSpec& spec);
  base::Status RegisterCuda(const CudaRegionSpec& spec);
  // Returns the status of one region, or of all of a kind (name ""), ordered by name.
  base::Result<std::vector<RegionStatus>> ReadStatus(RegionKind kind, std::string_view name) const;
  // Unregisters one region, or all of a kind (name ""). An unknown name is not an error.
  base::Status Unregister(RegionKind kind, std::string_view name);

  // Begins a use of `size` bytes at `offset` of a region.
  base::Result<RegionUse> Use(std::string_view name, uint64_t offset, uint64_t size);

 private:
  friend class RegionUse;
  using Regions = std::map<std::string, std::shared_ptr<Region>, std::less<>>;

  // A limit, because the number of mappings of a process is limited.
  static constexpr size_t kMaxRegions = 16384;

  base::Result<const CudaDriver*> FindCuda(std::string_view name) const;
  base::Status CheckNew(std::string_view name) const;
  base::Status CheckNewLocked(std::string_view name) const NEREID_REQUIRES(mutex_);
  base::Status Add(std::shared_ptr<Region> region);
  // Removes a region that is leaving after its last use.
  void Sweep(const Region& region);

  const bool allows_clients_;
  const bool trusts_clients_;
  Gpus* const gpus_;
  mutable base::Mutex mutex_;
  Regions regions_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::memory
