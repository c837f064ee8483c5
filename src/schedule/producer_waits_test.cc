// SPDX-License-Identifier: Apache-2.0
#include "schedule/producer_waits.h"

#include <array>

#include <gtest/gtest.h>

namespace nereid::schedule {
namespace {

using Models = ProducerWaits::Models;

const Models kAForB{.waiting = {"a"}, .behind = {"b"}};
const Models kBForA{.waiting = {"b"}, .behind = {"a"}};
const Models kBForC{.waiting = {"b"}, .behind = {"d", "c"}};
const Models kCForA{.waiting = {"c"}, .behind = {"a"}};

TEST(ProducerWaits, TwoModelsDoNotWaitForEachOther) {
  ProducerWaits waits;
  EXPECT_TRUE(waits.Begin(kAForB));
  EXPECT_FALSE(waits.Begin(kBForA));
  waits.End(kAForB);
  EXPECT_TRUE(waits.Begin(kBForA));
  EXPECT_FALSE(waits.Begin(kAForB));
}

TEST(ProducerWaits, ACircleOfThreeIsNotClosedWhicheverComesLast) {
  const std::array<const Models*, 3> circle{&kAForB, &kBForC, &kCForA};
  for (size_t last = 0; last < 3; ++last) {
    ProducerWaits waits;
    EXPECT_TRUE(waits.Begin(*circle[(last + 1) % 3]));
    EXPECT_TRUE(waits.Begin(*circle[(last + 2) % 3]));
    EXPECT_FALSE(waits.Begin(*circle[last])) << last;
  }
}

TEST(ProducerWaits, SeveralInstancesWaitForTheSame) {
  ProducerWaits waits;
  EXPECT_TRUE(waits.Begin(kAForB));
  EXPECT_TRUE(waits.Begin(kAForB));
  waits.End(kAForB);
  EXPECT_FALSE(waits.Begin(kBForA));
  waits.End(kAForB);
  EXPECT_TRUE(waits.Begin(kBForA));
}

// A wait within an ensemble that is a step counts for all models that the step has.
TEST(ProducerWaits, ModelsWithinAStepCount) {
  ProducerWaits waits;
  const Models nested{.waiting = {"e", "a", "x"}, .behind = {"f", "b"}};
  EXPECT_TRUE(waits.Begin(nested));
  EXPECT_FALSE(waits.Begin(kBForA));
  EXPECT_TRUE(waits.Begin(kBForC));
  EXPECT_FALSE(waits.Begin(kCForA));
}

}  // namespace
}  // namespace nereid::schedule
