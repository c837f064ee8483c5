// SPDX-License-Identifier: Apache-2.0
#include "base/object_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace nereid::base {
namespace {

std::atomic<int> objects{0};

struct Counted {
  Counted() { ++objects; }
  ~Counted() { --objects; }
  void Recycle() {}
};
using Pool = ObjectPool<Counted>;

TEST(ObjectPool, TrimsObjectsUnusedSinceTheLastTrim) {
  std::vector<Counted*> taken;
  for (int i = 0; i < 100; ++i) taken.push_back(Pool::Take());
  // A thread that ends leaves its objects to other threads.
  std::thread([&] {
    for (Counted* const object : taken) Pool::Give(object);
  }).join();
  if (kHasAddressSanitizer) GTEST_SKIP() << "keeps nothing";
  EXPECT_EQ(objects, 100);
  TrimObjectPools();
  EXPECT_EQ(objects, 100) << "they were used since the last time";
  TrimObjectPools();
  EXPECT_EQ(objects, 0);
}

TEST(ObjectPool, ThreadsThatOnlyGiveKeepFew) {
  constexpr int kThreads = 10;
  // In each round a thread gives back an object that another thread took. Each thread keeps up to
  // 8; the rest returns to the depot.
  std::vector<std::thread> givers;
  std::vector<Counted*> taken;
  for (int i = 0; i < kThreads * 40; ++i) taken.push_back(Pool::Take());
  std::atomic<int> done{0};
  std::atomic<bool> is_over{false};
  for (int t = 0; t < kThreads; ++t) {
    givers.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i)
        Pool::Give(taken[static_cast<size_t>(t) * 40 + static_cast<size_t>(i)]);
      ++done;
      while (!is_over) std::this_thread::yield();
    });
  }
  while (done < kThreads) std::this_thread::yield();
  if (!kHasAddressSanitizer) {
    TrimObjectPools();
    TrimObjectPools();
    EXPECT_LE(objects, kThreads * 8) << "what the givers keep";
  }
  is_over = true;
  for (std::thread& giver : givers) giver.join();
}

}  // namespace
}  // namespace nereid::base
