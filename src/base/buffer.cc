// SPDX-License-Identifier: Apache-2.0
// There are four size classes per power of two from 4 KiB to 64 MiB, so a buffer wastes at most a
// fifth. A small class, with its overhead, matches a size class of the allocator.
//
// Small classes have a cache per thread, which is refilled from a depot and spilled to it in
// batches. Large classes go straight to the depot: one uncontended lock costs nothing beside
// writing that many bytes.
//
// Large classes have room for a head beside their round number of bytes. A message with a tensor of
// 16 MiB is thus in the class of a tensor of 16 MiB, and the memory of completed requests serves
// the outputs of later ones. The largest buffers are mappings of their own, which go back to the
// system as soon as they are freed. They use huge pages up to the size requested at their
// allocation. In an arrival buffer the range of the first huge page begins as small pages, so that
// a client that announces much and sends little holds little memory; it becomes a huge page when
// AcquireBuffer reuses the buffer.
#include "base/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/buffer_budget.h"
#include "base/mutex.h"
#include "base/per_thread.h"
#include "base/platform.h"

namespace nereid::base {
namespace {

using buffer_internal::Header;

constexpr uint32_t kUnpooled = UINT32_MAX >> 1;
constexpr size_t kMinSize = 4096;
constexpr size_t kMaxSize = size_t{64} << 20;
constexpr size_t kMinSizeLog2 = 12;
constexpr uint32_t kClasses = 4 * 14 + 1;       // 4 KiB * 2^14 = 64 MiB
constexpr uint32_t kCachedClasses = 4 * 4 + 2;  // up to 64 KiB and a little more
constexpr size_t kCachePerClass = 32;
constexpr size_t kBatch = 16;
// Classes above this many bytes have kHeadRoom more.
constexpr size_t kRoomAbove = size_t{256} << 10;
constexpr size_t kHeadRoom = size_t{16} << 10;
// Buffers of at least this size are mappings. Sanitizers see into the allocator's memory only.
constexpr size_t kMappedFrom = kHasAddressSanitizer ? SIZE_MAX : size_t{1} << 20;
constexpr size_t kHugePage = size_t{2} << 20;
// Each takes up to three of the mappings of which Linux allows a process 65,530. The allocator
// needs some as well, and cannot do without.
constexpr size_t kMaxMapped = 16'384;
// When the depot holds more bytes than its limit, buffers are freed at once.
constexpr size_t kDepotLimit = size_t{512} << 20;
constexpr size_t kPage = 4096;
// A charge grows to twice its size, but by no more than this ahead of the bytes.
constexpr size_t kMaxChargeStep = size_t{1} << 20;

// The header of a buffer whose memory is allocated here.
struct OwnHeader final : Header {
  Budget* budget = nullptr;
  uint64_t charged : 63 = 0;      // bytes of the budget that are held until the buffer is recycled
  uint64_t was_used : 1 = false;  // earlier contents may still take memory
};
static_assert(sizeof(OwnHeader) == sizeof(Header));

size_t ClassBytes(uint32_t size_class) {
  const size_t base = kMinSize << (size_class / 4);
  const size_t bytes = base + base / 4 * (size_class % 4);
  return bytes > kRoomAbove ? bytes + kHeadRoom : bytes - kBufferOverhead;
}

uint32_t ClassFor(size_t size) {
  if (size <= kMinSize - kBufferOverhead) return 0;
  size = size <= kRoomAbove - kBufferOverhead
             ? size + kBufferOverhead
             : std::max(size, kRoomAbove + kHeadRoom + 1) - kHeadRoom;
  if (size > kMaxSize) return kUnpooled;
  const size_t log2 = std::bit_width(size - 1) - 1;  // largest power of two below `size`
  const size_t base = size_t{1} << log2;
  const size_t quarter = (size - base + base / 4 - 1) / (base / 4);
  return static_cast<uint32_t>((log2 - kMinSizeLog2) * 4 + quarter);
}

constexpr size_t RoundUp(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

size_t MappedBytes(size_t capacity) {
  return RoundUp(sizeof(Header) + capacity + kBufferPadding, size_t{4096});
}

// The pages of a new mapping before anything is written to it.
enum class Pages : bool { kHugeFromStart, kSmallStart };

// Maps `bytes` that begin at a huge page boundary. The first `used` bytes are in huge pages where
// the system has them, which makes copies through large buffers a quarter to a third faster.
void* Map(size_t bytes, size_t used, Pages pages) {
  size_t reserved;
  if (__builtin_add_overflow(bytes, kHugePage, &reserved)) return nullptr;
  void* const place =
      ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(place);
  auto* const begin =
      reinterpret_cast<std::byte*>(RoundUp(reinterpret_cast<uintptr_t>(start), kHugePage));
  if (begin != start) ::munmap(start, static_cast<size_t>(begin - start));
  const size_t behind = reserved - static_cast<size_t>(begin - start) - bytes;
  if (behind > 0) ::munmap(begin + bytes, behind);
  const size_t huge = used / kHugePage * kHugePage;
  const size_t small = pages == Pages::kSmallStart ? kHugePage : 0;
  // If madvise fails, the system's default page size applies.
  if (huge > small) ::madvise(begin + small, huge - small, MADV_HUGEPAGE);
  // Some systems use huge pages by default.
  if (small > 0 && bytes >= small) ::madvise(begin, small, MADV_NOHUGEPAGE);
  return begin;
}

// Called when the whole buffer is about to be written: turns the small pages into a huge one.
void EndSmallStart(Header& header) {
  header.has_small_start = false;
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack
  if (MappedBytes(header.capacity) < kHugePage) return;
  // If madvise fails, the pages stay small.
  ::madvise(&header, kHugePage, MADV_HUGEPAGE);
  ::madvise(&header, kHugePage, kCollapse);
}

// The buffers that are mappings of their own.
std::atomic<size_t> mapped_buffers{0};

Header* Allocate(size_t capacity, uint32_t size_class, size_t used, Pages pages) {
  if (capacity > SIZE_MAX / 2) return nullptr;  // no sum below overflows
  const bool is_mapped = capacity >= kMappedFrom;
  if (is_mapped && mapped_buffers.fetch_add(1) >= kMaxMapped) {
    mapped_buffers.fetch_sub(1);
    return nullptr;
  }
  const size_t bytes = RoundUp(sizeof(Header) + capacity + kBufferPadding, kBufferAlignment);
  void* const memory = is_mapped ? Map(MappedBytes(capacity), sizeof(Header) + used, pages)
                                 : std::aligned_alloc(kBufferAlignment, bytes);
  if (memory == nullptr) {
    if (is_mapped) mapped_buffers.fetch_sub(1);
    return nullptr;
  }
  auto* header = new (memory) OwnHeader{};
  header->size_class = size_class & kUnpooled;
  header->has_small_start = is_mapped && pages == Pages::kSmallStart;
  header->capacity = capacity;
  header->bytes = reinterpret_cast<std::byte*>(header + 1);
  // Vector loads read the padding: keep it defined, as it is in mappings.
  if (!is_mapped) std::memset(header->bytes + capacity, 0, kBufferPadding);
  return header;
}

void Free(Header* header) {
  const size_t capacity = header->capacity;
  static_cast<OwnHeader*>(header)->~OwnHeader();
  if (capacity >= kMappedFrom) {
    ::munmap(header, MappedBytes(capacity));
    mapped_buffers.fetch_sub(1);
  } else {
    std::free(header);
  }
}

// The free buffers of one size class.
struct FreeList {
  Header* head = nullptr;
  size_t count = 0;
  size_t least = 0;  // fewest since the last trim: these were not needed

  void Push(Header* header) {
    header->next = head;
    head = header;
    ++count;
  }
  Header* Pop() {
    Header* header = head;
    if (header == nullptr) return nullptr;
    head = header->next;
    --count;
    if (count < least) least = count;
    return header;
  }
};

// The free buffers that all threads share.
struct Depot {
  Mutex mutex;
  std::array<FreeList, kClasses> lists NEREID_GUARDED_BY(mutex);
  size_t bytes NEREID_GUARDED_BY(mutex) = 0;
  size_t limit NEREID_GUARDED_BY(mutex) = kDepotLimit;
};

// Leaked on purpose: buffers may be released while the process exits.
Depot& TheDepot() {
  static Depot* const depot = new Depot;
  return *depot;
}

void SpillLocked(Depot& depot, Header* header) NEREID_REQUIRES(depot.mutex) {
  if (depot.bytes + header->capacity > depot.limit) {
    Free(header);
    return;
  }
  depot.bytes += header->capacity;
  depot.lists[header->size_class].Push(header);
}

// The free buffers of one thread. They go to the depot when the thread ends.
struct ThreadCache {
  std::array<FreeList, kCachedClasses> lists;

  ~ThreadCache() {
    Depot& depot = TheDepot();
    MutexLock lock(depot.mutex);
    for (FreeList& list : lists) {
      while (Header* header = list.Pop()) SpillLocked(depot, header);
    }
  }
};

ThreadCache& Cache() { return PerThread<ThreadCache>::Get(); }

Header* TakeFromDepot(uint32_t size_class) {
  Depot& depot = TheDepot();
  MutexLock lock(depot.mutex);
  Header* header = depot.lists[size_class].Pop();
  if (header == nullptr) return nullptr;
  depot.bytes -= header->capacity;
  if (size_class < kCachedClasses) {
    FreeList& cached = Cache().lists[size_class];
    for (size_t i = 1; i < kBatch; ++i) {
      Header* extra = depot.lists[size_class].Pop();
      if (extra == nullptr) break;
      depot.bytes -= extra->capacity;
      cached.Push(extra);
    }
  }
  return header;
}

}  // namespace

void buffer_internal::Recycle(Header* header) {
  if (header->release != nullptr) [[unlikely]] {
    const LentBytesReleaser release = header->release;
    void* const user = header->user;
    delete header;
    return release(user);
  }
  auto* const own = static_cast<OwnHeader*>(header);
  if (own->charged != 0) {
    own->budget->Give(own->charged);
    own->charged = 0;
  }
  if (header->size_class == kUnpooled) return Free(header);
  own->was_used = true;
  Depot& depot = TheDepot();
  if (header->size_class < kCachedClasses) {
    FreeList& list = Cache().lists[header->size_class];
    list.Push(header);
    if (list.count <= kCachePerClass) return;
    MutexLock lock(depot.mutex);
    for (size_t i = 0; i < kBatch; ++i) SpillLocked(depot, list.Pop());
    return;
  }
  MutexLock lock(depot.mutex);
  SpillLocked(depot, header);
}

namespace {

Header* Take(size_t size, Pages pages) {
  const uint32_t size_class = ClassFor(size);
  Header* header = nullptr;
  if (size_class != kUnpooled) {
    if (size_class < kCachedClasses) header = Cache().lists[size_class].Pop();
    if (header == nullptr) header = TakeFromDepot(size_class);
    if (header == nullptr) header = Allocate(ClassBytes(size_class), size_class, size, pages);
  } else {
    header = Allocate(size, kUnpooled, size, pages);
  }
  if (header == nullptr) return nullptr;
  header->references.store(1, std::memory_order_relaxed);  // nobody else has it yet
  return header;
}

}  // namespace

BufferRef AcquireBuffer(size_t size) {
  Header* const header = Take(size, Pages::kHugeFromStart);
  if (header != nullptr && header->has_small_start) [[unlikely]]
    EndSmallStart(*header);
  return BufferRef(header);
}

BufferRef AcquireArrivalBuffer(size_t size) { return BufferRef(Take(size, Pages::kSmallStart)); }

BufferRef WrapLentBytes(std::byte* bytes, size_t capacity, LentBytesReleaser release, void* user) {
  auto* const header = new (std::nothrow) Header{};
  if (header == nullptr) {
    release(user);
    return {};
  }
  header->references.store(1, std::memory_order_relaxed);  // nobody else has it yet
  header->size_class = kUnpooled;
  header->capacity = capacity;
  header->bytes = bytes;
  header->release = release;
  header->user = user;
  return BufferRef(header);
}

BufferRef AcquireZeroedBuffer(size_t size) {
  BufferRef buffer = AcquireBuffer(size);
  if (buffer) std::memset(buffer.data(), 0, size);
  return buffer;
}

// A charge doubles, so that it is rarely changed and never much more than what has arrived.
bool ChargeBuffer(const BufferRef& buffer, Budget& budget, size_t bytes) {
  if (buffer.is_lent()) return true;
  OwnHeader& header = *(reinterpret_cast<OwnHeader*>(buffer.data()) - 1);
  if (bytes <= header.charged) return true;
  const size_t whole = RoundUp(header.capacity, kPage);
  const size_t ahead = header.charged + std::min<size_t>(header.charged, kMaxChargeStep);
  const size_t wanted =
      header.was_used ? whole : std::min(RoundUp(std::max(bytes, ahead), kPage), whole);
  if (wanted <= header.charged) return true;
  if (!budget.TryTake(wanted - header.charged)) return false;
  header.budget = &budget;
  header.charged = wanted;
  return true;
}

void LimitBufferPool(size_t bytes) {
  Depot& depot = TheDepot();
  MutexLock lock(depot.mutex);
  depot.limit = bytes;
}

size_t PooledBufferBytes() {
  Depot& depot = TheDepot();
  MutexLock lock(depot.mutex);
  return depot.bytes;
}

void TrimBuffers() {
  Depot& depot = TheDepot();
  Header* unused = nullptr;
  {
    MutexLock lock(depot.mutex);
    for (FreeList& list : depot.lists) {
      for (size_t spare = list.least; spare > 0; --spare) {
        Header* header = list.Pop();
        if (header == nullptr) break;
        depot.bytes -= header->capacity;
        header->next = unused;
        unused = header;
      }
      list.least = list.count;
    }
  }
  while (unused != nullptr) Free(std::exchange(unused, unused->next));
}

}  // namespace nereid::base
