// SPDX-License-Identifier: Apache-2.0
#include "schedule/ensemble_times.h"

#include <gtest/gtest.h>

namespace nereid::schedule {
namespace {

core::ComputeTimes Times(uint64_t start, uint64_t input_end, uint64_t output_start, uint64_t end) {
  core::ComputeTimes times;
  times.compute_start_ns = start;
  times.compute_input_end_ns = input_end;
  times.compute_output_start_ns = output_start;
  times.compute_end_ns = end;
  return times;
}

TEST(EnsembleTimes, AddsUpTheStepsAndLaysThemEndToEnd) {
  EnsembleTimes times;
  times.Add(Times(100, 101, 111, 211));
  times.Add(Times(500, 502, 522, 722));
  const core::ComputeTimes sum = times.Sum(1000);
  EXPECT_EQ(1000u, sum.compute_start_ns);
  EXPECT_EQ(1003u, sum.compute_input_end_ns);
  EXPECT_EQ(1033u, sum.compute_output_start_ns);
  EXPECT_EQ(1333u, sum.compute_end_ns);
}

TEST(EnsembleTimes, IsCompleteWhenEachCallIsSettled) {
  EnsembleTimes times;
  EXPECT_TRUE(times.IsComplete());
  times.NoteStarted();
  times.NoteStarted();
  times.NoteSettled();
  EXPECT_FALSE(times.IsComplete());
  times.NoteSettled();
  EXPECT_TRUE(times.IsComplete());
}

TEST(EnsembleTimes, CountsTimesThatRunBackwardsAsNothing) {
  EnsembleTimes times;
  times.Add(Times(100, 90, 95, 97));
  const core::ComputeTimes sum = times.Sum(0);
  EXPECT_EQ(0u, sum.compute_input_end_ns);
  EXPECT_EQ(7u, sum.compute_end_ns);
}

TEST(EnsembleTimes, BeginsAnewAfterReset) {
  EnsembleTimes times;
  times.Add(Times(1, 2, 3, 4));
  times.NoteStarted();
  times.Reset();
  EXPECT_TRUE(times.IsComplete());
  EXPECT_EQ(50u, times.Sum(50).compute_end_ns);
}

}  // namespace
}  // namespace nereid::schedule
