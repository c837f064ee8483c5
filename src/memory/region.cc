// SPDX-License-Identifier: Apache-2.0
#include "memory/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/arithmetic.h"
#include "base/log.h"
#include "base/unique_fd.h"

namespace nereid::memory {
namespace {

using base::InternalError;
using base::InvalidArgumentError;

// Objects with this prefix are the server's own, shared with the processes of the Python backend.
constexpr std::string_view kReservedPrefix = "triton_python_backend_shm_region_";

// Names only the region: details of a GPU are for the log.
base::Status InvalidArgs(std::string_view name) {
  return InvalidArgumentError("failed to register shared memory region " + Quoted(name) +
                              ": invalid args");
}

}  // namespace

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// The check skips leading slashes because shm_open ignores them.
base::Status Region::CheckKey(const SystemRegionSpec& spec) {
  const size_t start = spec.key.find_first_not_of('/');
  if (start == std::string::npos) {
    return InvalidArgumentError("cannot register shared memory region " + Quoted(spec.name) +
                                " - invalid shm key " + Quoted(spec.key));
  }
  if (std::string_view(spec.key).substr(start).starts_with(kReservedPrefix)) {
    return InvalidArgumentError(
        "cannot register shared memory region " + Quoted(spec.name) + " with key " +
        Quoted(spec.key) + " as the key contains the reserved prefix " + Quoted(kReservedPrefix));
  }
  return base::OkStatus();
}

base::Result<std::shared_ptr<Region>> Region::MapSystem(const SystemRegionSpec& spec) {
  NEREID_RETURN_IF_ERROR(CheckKey(spec));
  const base::UniqueFd object(::shm_open(spec.key.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!object.valid()) {
    NEREID_VLOG(1, "shm_open failed, errno: {}", errno);
    return InternalError("Unable to open shared memory region: " + Quoted(spec.key));
  }
  struct stat facts;
  if (::fstat(object.get(), &facts) != 0 || facts.st_size < 0) {
    return InternalError("Invalid shared memory region: " + Quoted(spec.key));
  }
  const auto end = base::CheckedAdd(spec.offset, spec.byte_size);
  if (!end || *end > static_cast<uint64_t>(facts.st_size)) return InvalidArgs(spec.name);
  // mmap fails for a size of zero and for an offset that is not a multiple of the page size.
  void* const data = ::mmap(nullptr, spec.byte_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                            object.get(), static_cast<off_t>(spec.offset));
  if (data == MAP_FAILED) {
    // Triton prints this text without a separator before the reason.
    return InvalidArgumentError("failed to register shared memory region " + Quoted(spec.name) +
                                ": unable to process address space" + std::strerror(errno));
  }
  std::shared_ptr<Region> region(new Region({.name = spec.name,
                                             .kind = RegionKind::kSystem,
                                             .key = spec.key,
                                             .offset = spec.offset,
                                             .byte_size = spec.byte_size}));
  region->data_ = static_cast<std::byte*>(data);
  region->guard_.emplace(data, spec.byte_size);
  return region;
}

base::Result<std::shared_ptr<Region>> Region::OpenCuda(const CudaRegionSpec& spec,
                                                       const CudaDriver& driver) {
  const base::Result<CudaAddress> address = driver.OpenHandle(spec.handle, spec.device);
  if (!address.ok()) {
    NEREID_LOG(kError, "failed to open CUDA IPC handle: {}", address.status().message());
    return InvalidArgumentError("failed to register shared memory region: invalid args");
  }
  std::shared_ptr<Region> region(new Region({.name = spec.name,
                                             .kind = RegionKind::kCuda,
                                             .byte_size = spec.byte_size,
                                             .device = spec.device}));
  region->driver_ = &driver;
  region->handle_ = spec.handle;
  region->data_ = FromCudaAddress(*address);
  const base::Result<size_t> size = driver.AllocationSize(*address, spec.device);
  if (!size.ok()) NEREID_LOG(kError, "{}", size.status().message());
  if (!size.ok() || spec.byte_size > *size) return InvalidArgs(spec.name);
  return region;
}

Region::~Region() {
  if (driver_ != nullptr) {
    const base::Status status = driver_->CloseHandle(ToCudaAddress(data_), status_.device);
    if (!status.ok()) NEREID_LOG(kError, "failed to close CUDA IPC handle: {}", status.message());
    return;
  }
  guard_.reset();
  ::munmap(data_, status_.byte_size);
}

base::Status Region::Read(std::byte* to, size_t offset, size_t size) const {
  if (size == 0) return base::OkStatus();
  if (driver_ != nullptr) {
    return driver_->Copy(to, data_ + offset, size, status_.device);
  }
  std::memcpy(to, data_ + offset, size);
  return base::OkStatus();
}

base::Status Region::Write(size_t offset, const std::byte* from, size_t size) const {
  if (size == 0) return base::OkStatus();
  if (driver_ != nullptr) {
    return driver_->Copy(data_ + offset, from, size, status_.device);
  }
  std::memcpy(data_ + offset, from, size);
  return base::OkStatus();
}

}  // namespace nereid::memory
