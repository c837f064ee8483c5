// SPDX-License-Identifier: Apache-2.0
#include "local_cache/store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace nereid::local_cache {
namespace {

using enum Store::InsertResult;

constexpr size_t kCost = 100 + 4 + Store::kEntryOverhead;  // of MakeBlob under a key of 4 bytes

std::shared_ptr<Blob> MakeBlob(char fill, size_t size = 100) {
  auto blob = Blob::Create({size});
  std::memset(blob->data(), fill, size);
  return blob;
}

std::string Key(int i) { return std::to_string(1000 + i); }

TEST(Store, GivesBackWhatItWasGiven) {
  Store store(10'000);
  EXPECT_EQ(store.Find("k"), nullptr);
  EXPECT_EQ(store.Insert("k", MakeBlob('a')), kInserted);
  const auto blob = store.Find("k");
  ASSERT_NE(blob, nullptr);
  EXPECT_EQ(blob->sizes(), std::vector<size_t>{100});
  EXPECT_EQ(static_cast<char>(blob->data()[99]), 'a');
}

TEST(Store, KeepsAnExistingEntry) {
  Store store(10'000);
  EXPECT_EQ(store.Insert("k", MakeBlob('a')), kInserted);
  const size_t used = store.used_bytes();
  EXPECT_EQ(store.Insert("k", MakeBlob('b')), kExists);
  EXPECT_EQ(static_cast<char>(store.Find("k")->data()[0]), 'a');
  EXPECT_EQ(store.used_bytes(), used);
}

TEST(Store, RefusesWhatCanNeverFit) {
  Store store(kCost);
  EXPECT_EQ(store.Insert(Key(0), MakeBlob('a')), kInserted);
  EXPECT_EQ(store.Insert(Key(1), MakeBlob('a', 101)), kTooLarge);
  EXPECT_TRUE(store.Has(Key(0)));
}

TEST(Store, EvictsTheLeastRecentlyUsedEntryFirst) {
  Store store(4 * kCost);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(store.Insert(Key(i), MakeBlob('a')), kInserted);
  EXPECT_NE(store.Find(Key(0)), nullptr);
  EXPECT_EQ(store.Insert(Key(4), MakeBlob('a')), kInserted);
  EXPECT_FALSE(store.Has(Key(1)));
  EXPECT_EQ(store.Insert(Key(5), MakeBlob('a')), kInserted);
  EXPECT_FALSE(store.Has(Key(2)));
  for (const int kept : {0, 3, 4, 5}) EXPECT_TRUE(store.Has(Key(kept))) << kept;
  EXPECT_EQ(store.used_bytes(), 4 * kCost);
}

TEST(Store, EvictsManySmallEntriesForALargeOne) {
  Store store(10 * kCost);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(store.Insert(Key(i), MakeBlob('a')), kInserted);
  EXPECT_EQ(store.Insert("larg", MakeBlob('b', 100 + 9 * kCost)), kInserted);
  EXPECT_EQ(store.entry_count(), 1u);
  EXPECT_EQ(store.used_bytes(), 10 * kCost);
}

TEST(Store, AnEntryThatIsReadSurvivesItsEviction) {
  Store store(kCost);
  EXPECT_EQ(store.Insert(Key(0), MakeBlob('a')), kInserted);
  const auto read = store.Find(Key(0));
  EXPECT_EQ(store.Insert(Key(1), MakeBlob('b')), kInserted);
  EXPECT_FALSE(store.Has(Key(0)));
  EXPECT_EQ(static_cast<char>(read->data()[0]), 'a');
}

TEST(Store, ManyThreadsStayWithinTheBoundAndNeverMixEntries) {
  Store store(50 * kCost);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&store, t] {
      for (int i = 0; i < 5000; ++i) {
        const int k = (i * (t + 1)) % 200;
        const char fill = static_cast<char>('a' + k % 26);
        if (const auto blob = store.Find(Key(k)); blob != nullptr) {
          ASSERT_EQ(static_cast<char>(blob->data()[50]), fill);
        } else {
          store.Insert(Key(k), MakeBlob(fill));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(store.used_bytes(), store.capacity());
  EXPECT_EQ(store.used_bytes(), store.entry_count() * kCost);
  EXPECT_GT(store.entry_count(), 0u);
}

}  // namespace
}  // namespace nereid::local_cache
