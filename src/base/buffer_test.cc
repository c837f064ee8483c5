// SPDX-License-Identifier: Apache-2.0
#include "base/buffer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "base/platform.h"

namespace nereid::base {
namespace {

// Returns how much of the mapping that holds `buffer` is resident.
size_t ResidentBytes(const BufferRef& buffer) {
  constexpr size_t kPage = 4096;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(buffer.data()) / kPage * kPage;
  std::vector<unsigned char> pages(buffer.capacity() / kPage);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), pages.size() * kPage, pages.data()), 0);
  return kPage * static_cast<size_t>(
                     std::ranges::count_if(pages, [](unsigned char page) { return page & 1; }));
}

TEST(Buffer, IsAlignedAndAtLeastAsLargeAsAskedAtEveryClassEdge) {
  for (size_t power = 10; power <= 27; ++power) {
    for (const size_t delta : {size_t{0}, size_t{1}, (size_t{1} << power) / 4}) {
      const size_t size = (size_t{1} << power) + delta;
      BufferRef buffer = AcquireBuffer(size);
      ASSERT_TRUE(buffer);
      EXPECT_GE(buffer.capacity(), size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kBufferAlignment, 0u);
      EXPECT_LE(buffer.capacity(), std::max<size_t>(size + size / 4 + (16 << 10), 4096));
    }
  }
}

TEST(Buffer, IsReusedAfterItsLastReferenceEnds) {
  BufferRef first = AcquireBuffer(10000);
  std::byte* const place = first.data();
  BufferRef second = first;
  first.Reset();
  EXPECT_NE(AcquireBuffer(10000).data(), place);
  second.Reset();
  EXPECT_EQ(AcquireBuffer(10000).data(), place);
}

TEST(Buffer, ATensorAndTheMessageItCameInShareAClass) {
  for (const size_t tensor :
       {size_t{1} << 20, size_t{4} << 20, size_t{16} << 20, size_t{64} << 20}) {
    std::byte* place = nullptr;
    {
      const BufferRef message = AcquireBuffer(tensor + 4000);
      place = message.data();
      std::memset(place, 1, tensor + 4000);
    }
    const BufferRef output = AcquireBuffer(tensor);
    EXPECT_EQ(output.data(), place) << tensor;
  }
}

TEST(Buffer, OfAnySizeIsWritableToItsLastByte) {
  for (const size_t size :
       {size_t{1} << 20, size_t{3} << 20, size_t{65} << 20, size_t{70'000'001}}) {
    const BufferRef buffer = AcquireBuffer(size);
    ASSERT_TRUE(buffer);
    std::memset(buffer.data(), 0x5a, buffer.capacity());
    EXPECT_EQ(buffer.data()[buffer.capacity() + kBufferPadding - 1], std::byte{0});
  }
}

TEST(Buffer, TrimFreesUnusedBuffers) {
  TrimBuffers();
  TrimBuffers();
  const size_t before = PooledBufferBytes();
  {
    BufferRef large = AcquireBuffer(8 << 20);
  }
  EXPECT_GE(PooledBufferBytes(), before + (8 << 20));
  TrimBuffers();
  TrimBuffers();
  EXPECT_LE(PooledBufferBytes(), before);
}

TEST(Buffer, ForArrivalTakesMemoryAsBytesArrive) {
  if (kHasAddressSanitizer) GTEST_SKIP() << "buffers are not mapped";
  constexpr size_t kMega = size_t{1} << 20;
  const BufferRef buffer = AcquireArrivalBuffer(83 * kMega);
  ASSERT_TRUE(buffer);
  EXPECT_LE(ResidentBytes(buffer), size_t{8} << 10);
  std::memset(buffer.data(), 1, 100);
  EXPECT_LE(ResidentBytes(buffer), size_t{8} << 10);
  std::memset(buffer.data(), 1, kMega);
  EXPECT_LE(ResidentBytes(buffer), kMega + kMega / 8);
  std::memset(buffer.data(), 1, 3 * kMega);
  EXPECT_LE(ResidentBytes(buffer), 6 * kMega);
  std::memset(buffer.data(), 0x5a, buffer.capacity());
  EXPECT_EQ(buffer.data()[buffer.capacity() + kBufferPadding - 1], std::byte{0});
}

TEST(Buffer, ForArrivalServesAnyLaterUse) {
  std::byte* place = nullptr;
  {
    const BufferRef arrival = AcquireArrivalBuffer(size_t{5} << 20);
    place = arrival.data();
    std::memset(place, 1, size_t{5} << 20);
  }
  const BufferRef output = AcquireBuffer(size_t{5} << 20);
  EXPECT_EQ(output.data(), place);
  EXPECT_EQ(output.data()[(size_t{5} << 20) - 1], std::byte{1});
}

TEST(Buffer, OfLentBytesGivesThemBackOnceAfterItsLastReference) {
  alignas(kBufferAlignment) std::byte bytes[256];
  int released = 0;
  BufferRef first =
      WrapLentBytes(bytes, 192, [](void* user) { ++*static_cast<int*>(user); }, &released);
  EXPECT_TRUE(first.is_lent());
  EXPECT_EQ(first.data(), bytes);
  EXPECT_EQ(first.capacity(), 192u);
  BufferRef second = first;
  EXPECT_FALSE(second.unique());
  first.Reset();
  EXPECT_EQ(released, 0);
  second.Reset();
  EXPECT_EQ(released, 1);
  EXPECT_FALSE(AcquireBuffer(192).is_lent());
  EXPECT_FALSE(BufferRef().is_lent());
}

TEST(Buffer, MovesBetweenThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 2000; ++i) {
        BufferRef buffer = AcquireBuffer(5000);
        std::memset(buffer.data(), i, 5000);
        std::thread::id reader;
        if (i % 500 == 0) {
          std::thread([copy = std::move(buffer)]() mutable { copy.Reset(); }).join();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Buffer, RefusesAnImpossibleSize) { EXPECT_FALSE(AcquireBuffer(SIZE_MAX - 8)); }

}  // namespace
}  // namespace nereid::base
