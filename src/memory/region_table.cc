// SPDX-License-Identifier: Apache-2.0
#include "memory/region_table.h"

#include <cstdint>
#include <utility>

#include "base/log.h"

namespace nereid::memory {
namespace {

using base::InvalidArgumentError;
using base::NotFoundError;

// Checks that [offset, offset + size) lies within the region.
base::Status CheckBounds(const Region& region, uint64_t offset, uint64_t size) {
  const RegionStatus& status = region.status();
  if (offset >= status.byte_size) {
    return InvalidArgumentError("Invalid offset for shared memory region: " + Quoted(status.name));
  }
  if (size > UINT64_MAX - offset) {
    return InvalidArgumentError("Integer overflow detected: byte_size (" + std::to_string(size) +
                                ") + offset (" + std::to_string(offset) +
                                ") exceeds maximum value (" + std::to_string(UINT64_MAX) +
                                ") for region " + Quoted(status.name));
  }
  if (offset + size > status.byte_size) {
    return InvalidArgumentError("Invalid offset + byte size for shared memory region: " +
                                Quoted(status.name));
  }
  return base::OkStatus();
}

base::Status BrokenError(std::string_view name) {
  return InvalidArgumentError("shared memory region " + Quoted(name) +
                              " has lost its memory since it was registered: it was made smaller, "
                              "or there is no room for its pages. Unregister it and register it "
                              "again.");
}

}  // namespace

RegionUse& RegionUse::operator=(RegionUse&& other) noexcept {
  if (this != &other) {
    Release();
    table_ = other.table_;
    region_ = std::move(other.region_);
    offset_ = other.offset_;
    size_ = other.size_;
  }
  return *this;
}

bool RegionUse::is_trusted() const { return table_->trusts_clients_; }

Gpus* RegionUse::gpus() const { return table_->gpus_; }

base::Status RegionUse::CheckWhole() const {
  return region_->is_broken() ? BrokenError(region_->status().name) : base::OkStatus();
}

// Either this call sees that the region is leaving, or Unregister sees that it has no uses left.
void RegionUse::Release() {
  if (region_ == nullptr) return;
  const std::shared_ptr<Region> region = std::move(region_);
  if (region->uses_.fetch_sub(1) == 1 && region->is_leaving_.load()) table_->Sweep(*region);
}

base::Status RegionTable::CheckAllowed() const {
  if (allows_clients_) return base::OkStatus();
  return base::UnsupportedError(
      "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to "
      "enable.");
}

base::Result<const CudaDriver*> RegionTable::FindCuda(std::string_view name) const {
  NEREID_RETURN_IF_ERROR(CheckAllowed());
  const CudaDriver* const driver = gpus_ == nullptr ? nullptr : gpus_->driver();
  if (driver != nullptr) return driver;
  return InvalidArgumentError("failed to register CUDA shared memory region: " + Quoted(name) +
                              ", GPUs not supported");
}

base::Status RegionTable::CheckNew(std::string_view name) const {
  base::MutexLock lock(mutex_);
  return CheckNewLocked(name);
}

base::Status RegionTable::CheckNewLocked(std::string_view name) const {
  if (regions_.contains(name)) {
    return base::AlreadyExistsError("shared memory region " + Quoted(name) + " already in manager");
  }
  if (regions_.size() >= kMaxRegions) {
    return base::UnavailableError("failed to register shared memory region " + Quoted(name) +
                                  ": there are " + std::to_string(kMaxRegions) +
                                  " already, which is the limit");
  }
  return base::OkStatus();
}

// Regions are made outside the lock, so the name is checked twice: by the caller, for the error
// that the client gets, and here, when it is added.
base::Status RegionTable::Add(std::shared_ptr<Region> region) {
  base::MutexLock lock(mutex_);
  const std::string& name = region->status().name;
  NEREID_RETURN_IF_ERROR(CheckNewLocked(name));
  regions_.emplace(name, std::move(region));
  return base::OkStatus();
}

base::Status RegionTable::RegisterSystem(const SystemRegionSpec& spec) {
  NEREID_RETURN_IF_ERROR(CheckAllowed());
  NEREID_RETURN_IF_ERROR(Region::CheckKey(spec));
  NEREID_RETURN_IF_ERROR(CheckNew(spec.name));
  NEREID_ASSIGN_OR_RETURN(std::shared_ptr<Region> region, Region::MapSystem(spec));
  return Add(std::move(region));
}

base::Status RegionTable::RegisterCuda(const CudaRegionSpec& spec) {
  NEREID_ASSIGN_OR_RETURN(const CudaDriver* const driver, FindCuda(spec.name));
  NEREID_RETURN_IF_ERROR(CheckNew(spec.name));
  NEREID_ASSIGN_OR_RETURN(std::shared_ptr<Region> region, Region::OpenCuda(spec, *driver));
  return Add(std::move(region));
}

base::Result<std::vector<RegionStatus>> RegionTable::ReadStatus(RegionKind kind,
                                                                std::string_view name) const {
  std::vector<RegionStatus> list;
  base::MutexLock lock(mutex_);
  if (name.empty()) {
    for (const auto& [key, region] : regions_) {
      if (region->status().kind == kind) list.push_back(region->status());
    }
    return list;
  }
  const bool is_cuda = kind == RegionKind::kCuda;
  const auto found = regions_.find(name);
  if (found == regions_.end()) {
    return NotFoundError(std::string("Unable to find ") + (is_cuda ? "cuda" : "system") +
                         " shared memory region: " + Quoted(name));
  }
  if (found->second->status().kind != kind) {
    return NotFoundError("The region named " + Quoted(name) + " is registered as " +
                         (is_cuda ? "system" : "CUDA") + " shared memory, not " +
                         (is_cuda ? "CUDA" : "system") + " shared memory");
  }
  list.push_back(found->second->status());
  return list;
}

base::Status RegionTable::Unregister(RegionKind kind, std::string_view name) {
  NEREID_RETURN_IF_ERROR(CheckAllowed());
  // Mappings are ended after the lock is released, because that is slow.
  std::vector<std::shared_ptr<Region>> gone;
  std::vector<std::shared_ptr<Region>> busy;
  {
    base::MutexLock lock(mutex_);
    auto next = name.empty() ? regions_.begin() : regions_.find(name);
    const auto end = name.empty() || next == regions_.end() ? regions_.end() : std::next(next);
    while (next != end) {
      const auto entry = next++;
      Region& region = *entry->second;
      if (region.status().kind != kind) continue;
      region.is_leaving_.store(true);
      if (region.uses_.load() != 0) {
        busy.push_back(entry->second);
      } else {
        gone.push_back(std::move(entry->second));
        regions_.erase(entry);
      }
    }
  }
  for (const std::shared_ptr<Region>& region : busy) {
    NEREID_VLOG(1,
                "Shared memory region '{}' will be unregistered after in-flight requests complete.",
                region->status().name);
  }
  return base::OkStatus();
}

base::Result<RegionUse> RegionTable::Use(std::string_view name, uint64_t offset, uint64_t size) {
  const auto unknown = [name] {
    return NotFoundError("Unable to find shared memory region: " + Quoted(name));
  };
  if (!allows_clients_) return unknown();
  base::MutexLock lock(mutex_);
  const auto found = regions_.find(name);
  if (found == regions_.end()) return unknown();
  NEREID_RETURN_IF_ERROR(CheckBounds(*found->second, offset, size));
  if (found->second->is_broken()) return BrokenError(name);
  found->second->uses_.fetch_add(1);
  return RegionUse(*this, found->second, static_cast<size_t>(offset), static_cast<size_t>(size));
}

void RegionTable::Sweep(const Region& region) {
  // The mapping is ended after the lock is released.
  std::shared_ptr<Region> gone;
  base::MutexLock lock(mutex_);
  const auto found = regions_.find(region.status().name);
  // In the meantime another request may have begun to use the region, or a client may have
  // registered another one by this name.
  if (found == regions_.end() || found->second.get() != &region || region.uses_.load() != 0) return;
  gone = std::move(found->second);
  regions_.erase(found);
}

}  // namespace nereid::memory
