// SPDX-License-Identifier: Apache-2.0
#include "http2/deadlines.h"

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

TEST(Deadlines, ComeInTheOrderOfTheirTimes) {
  Deadlines deadlines;
  EXPECT_EQ(deadlines.next_ns(), kNever);
  deadlines.Add(300, 1);
  deadlines.Add(100, 3);
  deadlines.Add(200, 5);
  EXPECT_EQ(deadlines.next_ns(), 100u);
  EXPECT_EQ(deadlines.TakeDue(99), std::nullopt);
  EXPECT_EQ(deadlines.TakeDue(200), 3);
  EXPECT_EQ(deadlines.TakeDue(200), 5);
  EXPECT_EQ(deadlines.TakeDue(200), std::nullopt);
  EXPECT_EQ(deadlines.next_ns(), 300u);
}

TEST(Deadlines, OfStreamsThatAreOverAreForgottenOnceTheyAreMany) {
  Deadlines deadlines;
  for (int32_t id = 1; id <= 127; id += 2) deadlines.Add(static_cast<uint64_t>(1000 - id), id);
  const auto is_open = [](int32_t id) { return id == 5; };
  deadlines.Prune(1, is_open);  // 64 entries for one open stream are not many
  EXPECT_EQ(deadlines.next_ns(), 873u);
  for (int32_t id = 129; id <= 133; id += 2) deadlines.Add(1, id);
  deadlines.Prune(1, is_open);
  EXPECT_EQ(deadlines.next_ns(), 995u);
  EXPECT_EQ(deadlines.TakeDue(kNever), 5);
  EXPECT_EQ(deadlines.TakeDue(kNever), std::nullopt);
}

}  // namespace
}  // namespace nereid::http2
