// SPDX-License-Identifier: Apache-2.0
#include "python_backend/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;
using backend::StrCat;

constexpr uint64_t kMaxBytes = uint64_t{1} << 36;
constexpr uint64_t kMinBytes = uint64_t{1} << 28;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kLargeBlock = uint64_t{1} << 20;

// Block sizes are four for each power of two, so that freed blocks fit again.
uint64_t RoundUp(uint64_t size) {
  if (size <= kPage) return kPage;
  const uint64_t step = std::bit_floor(size - 1) / 4;
  const uint64_t unit = step < kPage ? kPage : step;
  return (size + unit - 1) / unit * unit;
}

}  // namespace

Result<std::unique_ptr<Region>> Region::Create() {
  const int fd = memfd_create("nereid-python", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    return Error::Internal(StrCat("failed to create shared memory: ", std::strerror(errno)));
  }
  // A limit on address space may not leave room for the largest size; much less is enough.
  for (uint64_t size = kMaxBytes; size >= kMinBytes; size /= 2) {
    if (ftruncate(fd, static_cast<off_t>(size)) != 0) continue;
    void* const base =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) continue;
    madvise(base, size, MADV_DONTDUMP);
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      const int error = errno;
      munmap(base, size);
      close(fd);
      return Error::Internal(StrCat("failed to seal shared memory: ", std::strerror(error)));
    }
    std::unique_ptr<Region> region(new Region(fd, static_cast<char*>(base), size));
    new (base) Control{};
    region->control().version = kProtocolVersion;
    region->control().region_size = size;
    return region;
  }
  const int error = errno;
  close(fd);
  return Error::Internal(StrCat("failed to map shared memory: ", std::strerror(error),
                                error == EFBIG ? " (the limit on the size of files, ulimit -f, is "
                                                 "too low for a Python model's memory)"
                                               : ""));
}

Result<std::unique_ptr<Region>> Region::Open(int fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0 || static_cast<uint64_t>(status.st_size) < kMinBytes) {
    return Error::Internal("the shared memory has no usable size");
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  void* const base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (base == MAP_FAILED) {
    return Error::Internal(StrCat("failed to map shared memory: ", std::strerror(errno)));
  }
  madvise(base, size, MADV_DONTDUMP);
  std::unique_ptr<Region> region(new Region(fd, static_cast<char*>(base), size));
  if (region->control().version != kProtocolVersion) {
    return Error::Internal("the worker is not of the server's version");
  }
  return region;
}

Region::~Region() {
  munmap(base_, size_);
  close(fd_);
}

void Region::Forget(uint64_t offset, uint64_t size) const {
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(size));
}

Result<BlockPool::Block> BlockPool::Allocate(uint64_t size) {
  if (size > options_.end) {
    return Error::Unavailable(
        StrCat("a tensor of ", size, " bytes is too large for a Python model"));
  }
  const uint64_t wanted = RoundUp(size + sizeof(BlockHeader));
  const backend::MutexLock lock(mutex_);
  if (wanted > options_.most_bytes) return Error::Unavailable("too large");
  if (busy_bytes() > options_.most_bytes - wanted) {
    Sweep();
    if (busy_bytes() > options_.most_bytes - wanted)
      return Error::Unavailable("too much is in use");
  }
  auto found = free_.find(wanted);
  if (found == free_.end() || found->second.empty()) {
    Sweep();
    found = free_.find(wanted);
  }
  Place* place = nullptr;
  if (found != free_.end() && !found->second.empty()) {
    place = found->second.back();
    found->second.pop_back();
    if (place->is_resident) free_bytes_ -= place->size;
  } else {
    if (wanted > options_.end - next_) {
      return Error::Unavailable("the memory shared with a Python model is exhausted");
    }
    place = &places_.emplace_back(Place{.offset = next_, .size = wanted});
    next_ += wanted;
  }
  place->is_resident = true;
  place->is_taken = false;
  place->holds = 1;
  busy_.push_back(place);
  busy_bytes_.fetch_add(place->size, std::memory_order_relaxed);
  Block block(this, place);
  new (&block.header()) BlockHeader{};
  return block;
}

BlockPool::Block BlockPool::Take(std::span<const char> bytes) {
  const auto offset = static_cast<uint64_t>(bytes.data() - region_.base());
  const backend::MutexLock lock(mutex_);
  auto after = std::upper_bound(places_.begin(), places_.end(), offset,
                                [](uint64_t at, const Place& place) { return at < place.offset; });
  if (after == places_.begin()) return {};
  Place& place = *--after;
  const uint64_t inside = offset - place.offset;
  if (place.holds == 0 || place.is_taken || inside < sizeof(BlockHeader) || inside > place.size ||
      bytes.size() > place.size - inside) {
    return {};
  }
  place.is_taken = true;
  ++place.holds;
  return Block(this, &place);
}

void BlockPool::Drop(Place* place) {
  const backend::MutexLock lock(mutex_);
  if (--place->holds != 0) return;
  // In the usual case the worker is done with the last batch, whose block serves the next one.
  if (!busy_.empty() && busy_.back() == place) {
    const auto* header = reinterpret_cast<const BlockHeader*>(region_.At(place->offset));
    if (header->state.load(std::memory_order_acquire) == kBlockFree) {
      busy_.pop_back();
      Free(place);
    }
  }
}

void BlockPool::Sweep() {
  size_t kept = 0;
  for (Place* place : busy_) {
    const auto* header = reinterpret_cast<const BlockHeader*>(region_.At(place->offset));
    if (place->holds != 0 || header->state.load(std::memory_order_acquire) != kBlockFree) {
      busy_[kept++] = place;
    } else {
      Free(place);
    }
  }
  busy_.resize(kept);
}

void BlockPool::Free(Place* place) {
  busy_bytes_.fetch_sub(place->size, std::memory_order_relaxed);
  if (place->size >= kLargeBlock && free_bytes_ + place->size > options_.kept_bytes) {
    region_.Forget(place->offset, place->size);
    place->is_resident = false;
  } else {
    free_bytes_ += place->size;
  }
  free_[place->size].push_back(place);
}

}  // namespace nereid::python
