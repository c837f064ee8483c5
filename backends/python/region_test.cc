// SPDX-License-Identifier: Apache-2.0
#include "python_backend/region.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "backend_kit/testing/fake_host.h"

namespace nereid::python {
namespace {

std::unique_ptr<Region> NewRegion() { return std::move(Region::Create()).value(); }

TEST(Region, IsAsLargeAsItSaysAndCannotBeCutOff) {
  const auto region = NewRegion();
  EXPECT_EQ(region->control().version, kProtocolVersion);
  EXPECT_EQ(region->control().region_size, region->size());
  struct stat info{};
  ASSERT_EQ(fstat(region->fd(), &info), 0);
  EXPECT_EQ(static_cast<uint64_t>(info.st_size), region->size());
  // The worker has this descriptor too.
  EXPECT_NE(ftruncate(region->fd(), 4096), 0);
  EXPECT_NE(ftruncate(region->fd(), info.st_size * 2), 0);
}

TEST(Region, HoldsWhatLiesAmongItsBlocksOnly) {
  const auto region = NewRegion();
  const uint64_t size = region->size();
  EXPECT_TRUE(region->Holds(kBlocksBegin, 1));
  EXPECT_TRUE(region->Holds(kBlocksBegin, size - kBlocksBegin));
  EXPECT_TRUE(region->Holds(size - 1, 1));
  EXPECT_TRUE(region->Holds(size, 0));
  EXPECT_FALSE(region->Holds(kBlocksBegin - 1, 1));
  EXPECT_FALSE(region->Holds(0, 1));
  EXPECT_FALSE(region->Holds(size, 1));
  EXPECT_FALSE(region->Holds(size + 1, 0));
  EXPECT_FALSE(region->Holds(kBlocksBegin, size - kBlocksBegin + 1));
  EXPECT_FALSE(region->Holds(kBlocksBegin, UINT64_MAX));
  EXPECT_FALSE(region->Holds(UINT64_MAX, UINT64_MAX));
  EXPECT_FALSE(region->Holds(UINT64_MAX - 8, 16));
}

TEST(Region, ReadsAsZerosWhereItWasForgotten) {
  const auto region = NewRegion();
  const uint64_t at = kBlocksBegin + 4096;
  std::memset(region->At(at), 'x', 12288);
  region->Forget(at + 4096, 4096);
  EXPECT_EQ(*region->At(at + 4095), 'x');
  EXPECT_EQ(std::string(region->At(at + 4096), 4096), std::string(4096, '\0'));
  EXPECT_EQ(*region->At(at + 8192), 'x');
}

class BlockPoolTest : public testing::Test {
 protected:
  static constexpr uint64_t kPage = 4096;

  // Makes a pool of so many bytes.
  BlockPool Pool(uint64_t bytes, BlockPoolOptions options = {}) {
    options.begin = kBlocksBegin;
    options.end = kBlocksBegin + bytes;
    return BlockPool(*region_, options);
  }
  static BlockPool::Block Allocate(BlockPool& pool, uint64_t size) {
    auto block = pool.Allocate(size);
    EXPECT_TRUE(block.ok());
    return std::move(block).value();
  }
  static std::string ErrorOf(BlockPool& pool, uint64_t size) {
    auto block = pool.Allocate(size);
    return block.ok() ? "" : block.TakeError().message();
  }

  const std::unique_ptr<Region> region_ = NewRegion();
};

// Compares the pool with a plain map of the owners of all bytes: blocks of both sides never
// overlap, keep their contents, and are free again when both sides have released them.
TEST_F(BlockPoolTest, GivesNoByteToTwoBlocksWhateverTheOrderOfEvents) {
  struct Held {
    BlockPool::Block block;  // the server's hold; may be empty
    bool is_shared = false;
    uint64_t end = 0;
    char mark = 0;
  };
  std::mt19937 random(5);
  BlockPool pool(*region_, {.begin = kBlocksBegin, .end = kBlocksBegin + (uint64_t{64} << 20)});
  std::map<uint64_t, Held> held;  // by offset
  for (int round = 0; round < 20000; ++round) {
    const auto pick = [&] {
      return std::next(held.begin(), static_cast<ptrdiff_t>(random() % held.size()));
    };
    switch (random() % 4) {
      case 0: {
        const uint64_t size = random() % 2 == 0 ? random() % 200 : random() % (kPage * 40);
        auto made = pool.Allocate(size);
        if (!made.ok()) {
          made.TakeError().Ignore();
          break;
        }
        BlockPool::Block block = std::move(made).value();
        ASSERT_GE(block.capacity(), size);
        ASSERT_EQ(block.payload_offset() % kAlignment, 0u);
        const uint64_t offset = block.offset();
        const uint64_t end = offset + sizeof(BlockHeader) + block.capacity();
        const auto after = held.lower_bound(offset);
        ASSERT_TRUE(after == held.end() || end <= after->first);
        ASSERT_TRUE(after == held.begin() || std::prev(after)->second.end <= offset);
        ASSERT_LE(end, kBlocksBegin + (uint64_t{64} << 20));
        const char mark = static_cast<char>(random());
        block.payload()[0] = block.payload()[block.capacity() - 1] = mark;
        held[offset] = {std::move(block), false, end, mark};
        break;
      }
      case 1:  // the server shares a block with the worker
        if (held.empty()) break;
        if (Held& one = pick()->second; one.block.exists()) {
          one.block.Share();
          one.is_shared = true;
        }
        break;
      default: {  // one of them releases it
        if (held.empty()) break;
        const auto one = pick();
        ASSERT_EQ(*region_->At(one->first + sizeof(BlockHeader)), one->second.mark);
        ASSERT_EQ(*region_->At(one->second.end - 1), one->second.mark);
        if (random() % 2 == 0 || !one->second.is_shared) {
          one->second.block = BlockPool::Block();
        } else {
          reinterpret_cast<BlockHeader*>(region_->At(one->first))->state.store(kBlockFree);
          one->second.is_shared = false;
        }
        if (!one->second.block.exists() && !one->second.is_shared) held.erase(one);
      }
    }
  }
}

TEST_F(BlockPoolTest, GivesTheSameBlockAgainWhenBothHaveLetItGo) {
  BlockPool pool = Pool(16 * kPage);
  BlockPool::Block block = Allocate(pool, 100);
  const uint64_t offset = block.offset();
  block.Share();
  BlockHeader& header = block.header();
  block = BlockPool::Block();
  EXPECT_NE(Allocate(pool, 100).offset(), offset) << "the worker uses it";
  header.state.store(kBlockFree);
  // Another block may be free, too; within two attempts it must appear.
  const BlockPool::Block first = Allocate(pool, 100);
  const BlockPool::Block second = Allocate(pool, 100);
  EXPECT_TRUE(first.offset() == offset || second.offset() == offset);
}

TEST_F(BlockPoolTest, ANewBlockHasACleanHeader) {
  BlockPool pool = Pool(16 * kPage);
  BlockPool::Block block = Allocate(pool, 100);
  block.header().kind = 7;
  block.header().size = 9;
  block = BlockPool::Block();
  const BlockPool::Block again = Allocate(pool, 100);
  EXPECT_EQ(again.header().kind, 0u);
  EXPECT_EQ(again.header().size, 0u);
  EXPECT_EQ(again.header().state.load(), kBlockFree);
}

TEST_F(BlockPoolTest, RefusesWhatDoesNotFit) {
  BlockPool pool = Pool(4 * kPage);
  EXPECT_EQ(ErrorOf(pool, 5 * kPage), "the memory shared with a Python model is exhausted");
  EXPECT_NE(ErrorOf(pool, UINT64_MAX), "");
  EXPECT_NE(ErrorOf(pool, UINT64_MAX - 64), "");
  EXPECT_NE(ErrorOf(pool, UINT64_MAX / 2), "");
  const BlockPool::Block all = Allocate(pool, 4 * kPage - sizeof(BlockHeader));
  EXPECT_EQ(ErrorOf(pool, 1), "the memory shared with a Python model is exhausted");
}

TEST_F(BlockPoolTest, HasNoMoreInUseThanItMay) {
  BlockPool pool = Pool(64 * kPage, {.most_bytes = 2 * kPage});
  BlockPool::Block first = Allocate(pool, 100);
  const BlockPool::Block second = Allocate(pool, 100);
  EXPECT_EQ(pool.busy_bytes(), 2 * kPage);
  EXPECT_EQ(ErrorOf(pool, 100), "too much is in use");
  EXPECT_EQ(ErrorOf(pool, 3 * kPage), "too large");
  first = BlockPool::Block();
  EXPECT_EQ(ErrorOf(pool, 100), "");
}

TEST_F(BlockPoolTest, GivesMemoryBackThatIsMoreThanItMayKeep) {
  constexpr uint64_t kLarge = uint64_t{2} << 20;
  BlockPool pool = Pool(uint64_t{64} << 20, {.kept_bytes = kLarge});
  BlockPool::Block first = Allocate(pool, kLarge - sizeof(BlockHeader));
  BlockPool::Block second = Allocate(pool, kLarge - sizeof(BlockHeader));
  std::memset(first.payload(), 'x', first.capacity());
  std::memset(second.payload(), 'x', second.capacity());
  const char* const last = second.payload() + second.capacity() - 1;
  const char* const before = first.payload() + first.capacity() - 1;
  second = BlockPool::Block();
  EXPECT_EQ(*last, 'x');
  first = BlockPool::Block();
  EXPECT_EQ(*last, 'x');
  EXPECT_EQ(*before, '\0');
}

TEST_F(BlockPoolTest, TakesABlockByTheBytesInItOnce) {
  BlockPool pool = Pool(64 * kPage);
  BlockPool::Block block = Allocate(pool, 1000);
  const char* const payload = block.payload();
  BlockPool::Block taken = pool.Take({payload + 10, 20});
  ASSERT_TRUE(taken.exists());
  EXPECT_EQ(taken.offset(), block.offset());
  EXPECT_FALSE(pool.Take({payload + 10, 20}).exists());
  // The bytes stay until both holds are released.
  const uint64_t offset = block.offset();
  block = BlockPool::Block();
  EXPECT_NE(Allocate(pool, 1000).offset(), offset);
  taken = BlockPool::Block();
}

TEST_F(BlockPoolTest, TakesNothingForBytesThatAreInNoBlock) {
  BlockPool pool = Pool(64 * kPage);
  BlockPool::Block block = Allocate(pool, 1000);
  const char* const payload = block.payload();
  const uint64_t capacity = block.capacity();
  EXPECT_FALSE(pool.Take({payload - 1, 2}).exists());
  EXPECT_FALSE(pool.Take({payload, capacity + 1}).exists());
  EXPECT_FALSE(pool.Take({payload + capacity + 100, 1}).exists());
  EXPECT_FALSE(pool.Take({region_->base(), 1}).exists());
  const std::string elsewhere = "elsewhere";
  EXPECT_FALSE(pool.Take({elsewhere.data(), elsewhere.size()}).exists());
  block = BlockPool::Block();
  EXPECT_FALSE(pool.Take({payload, 1}).exists());
}

}  // namespace
}  // namespace nereid::python
