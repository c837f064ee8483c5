// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/first_use.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace nereid::onnxruntime {
namespace {

using backend::Error;

// Two calls of make() that wait for each other.
class Meeting {
 public:
  Error Make() {
    both_.arrive_and_wait();
    return {};
  }

 private:
  std::latch both_{2};
};

TEST(FirstUse, MakesSessionsOneAtATimeUntilOneKnowsTheOperators) {
  FirstUse first;
  std::atomic<int> running = 0;
  std::atomic<int> failing = 8;
  std::atomic<bool> overlapped = false;
  const auto make = [&]() -> Error {
    overlapped = overlapped || ++running > 1;
    std::this_thread::yield();
    --running;
    return failing-- > 0 ? Error::Internal("not this time") : Error();
  };
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_FALSE(first.Call("a", make).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(overlapped);
  EXPECT_TRUE(first.Call("a", make).ok());
}

TEST(FirstUse, MakesSessionsWithKnownOperatorsAsTheyCome) {
  FirstUse first;
  EXPECT_TRUE(first.Call("a", [] { return Error(); }).ok());
  Meeting meeting;  // hangs if the second call waits for the first
  std::thread other([&] { EXPECT_TRUE(first.Call("a", [&] { return meeting.Make(); }).ok()); });
  EXPECT_TRUE(first.Call("a", [&] { return meeting.Make(); }).ok());
  other.join();
}

}  // namespace
}  // namespace nereid::onnxruntime
