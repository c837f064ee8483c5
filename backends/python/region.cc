// SPDX-License-Identifier: Apache-2.0
#include "python_backend/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;
using backend::StrCat;

constexpr uint64_t kMostBytes = uint64_t{1} << 36;
constexpr uint64_t kFewestBytes = uint64_t{1} << 28;
constexpr uint64_t kPage = 4096;
// Freed blocks keep their memory for the next ones, up to this.
constexpr uint64_t kKeptBytes = uint64_t{256} << 20;
constexpr uint64_t kLargeBlock = uint64_t{1} << 20;

// Sizes of blocks: four for each power of two, so that freed ones fit again.
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
  // A limit on address space may not leave room for the largest; far less will do.
  for (uint64_t size = kMostBytes; size >= kFewestBytes; size /= 2) {
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
  return Error::Internal(StrCat("failed to map shared memory: ", std::strerror(error)));
}

Region::~Region() {
  munmap(base_, size_);
  close(fd_);
}

void Region::Forget(uint64_t offset, uint64_t size) const {
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(size));
}

BlockPool::BlockPool(const Region& region) : region_(region), next_(kBlocksBegin) {}

Result<BlockPool::Block> BlockPool::Allocate(uint64_t size) {
  if (size > region_.worker_begin()) {
    return Error::Unavailable(
        StrCat("a tensor of ", size, " bytes is too large for a Python model"));
  }
  const uint64_t wanted = RoundUp(size + sizeof(BlockHeader));
  const std::lock_guard lock(mutex_);
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
    if (wanted > region_.worker_begin() - next_) {
      return Error::Unavailable("the memory shared with a Python model is exhausted");
    }
    place = &places_.emplace_back(Place{.offset = next_, .size = wanted});
    next_ += wanted;
  }
  place->is_resident = true;
  place->is_held = true;
  busy_.push_back(place);
  Block block(this, place);
  new (&block.header()) BlockHeader{};
  return block;
}

void BlockPool::Drop(Place* place) {
  const std::lock_guard lock(mutex_);
  place->is_held = false;
  // The usual case, a batch whose worker is done with it: it serves the next one.
  if (!busy_.empty() && busy_.back() == place) {
    const auto* header = reinterpret_cast<const BlockHeader*>(region_.At(place->offset));
    if (header->state.load(std::memory_order_acquire) == 0) {
      busy_.pop_back();
      Free(place);
    }
  }
}

void BlockPool::Sweep() {
  size_t kept = 0;
  for (Place* place : busy_) {
    const auto* header = reinterpret_cast<const BlockHeader*>(region_.At(place->offset));
    if (place->is_held || header->state.load(std::memory_order_acquire) != 0) {
      busy_[kept++] = place;
    } else {
      Free(place);
    }
  }
  busy_.resize(kept);
}

void BlockPool::Free(Place* place) {
  if (place->size >= kLargeBlock && free_bytes_ + place->size > kKeptBytes) {
    region_.Forget(place->offset, place->size);
    place->is_resident = false;
  } else {
    free_bytes_ += place->size;
  }
  free_[place->size].push_back(place);
}

}  // namespace nereid::python
