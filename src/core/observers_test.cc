// SPDX-License-Identifier: Apache-2.0
#include "core/observers.h"

#include <gtest/gtest.h>

namespace nereid::core {
namespace {

TEST(FirstResponses, AreCountedInTheFirstBucketThatHoldsThem) {
  FirstResponses responses({10, 100});
  for (const uint64_t ms :
       {uint64_t{0}, uint64_t{10}, uint64_t{11}, uint64_t{100}, uint64_t{101}}) {
    responses.Record(ms);
  }
  // A bucket includes its upper bound; the last bucket has none.
  EXPECT_EQ(responses.Counts(), (std::vector<uint64_t>{2, 2, 1}));
  EXPECT_EQ(responses.sum_ms(), 222u);
}

TEST(FirstResponses, WithoutBoundsAreAllInOneBucket) {
  FirstResponses responses({});
  responses.Record(5);
  EXPECT_EQ(responses.Counts(), (std::vector<uint64_t>{1}));
}

TEST(Observers, CollectNothingUnlessTold) {
  const Observers none({});
  EXPECT_EQ(none.request, nullptr);
  EXPECT_EQ(none.queue, nullptr);
  EXPECT_EQ(none.cache_hit, nullptr);
  EXPECT_EQ(none.first_response, nullptr);
}

TEST(Observers, CollectDurationsOfRequestsWithoutACache) {
  const Observers observers({.quantiles = {{0.5, 0.05}}});
  EXPECT_NE(observers.request, nullptr);
  EXPECT_NE(observers.compute_infer, nullptr);
  EXPECT_EQ(observers.cache_hit, nullptr);
  EXPECT_EQ(observers.first_response, nullptr);
}

TEST(Observers, CollectHitsAndMissesWithACache) {
  const Observers observers(
      {.quantiles = {{0.5, 0.05}}, .first_response_bounds_ms = {{1.0}}, .is_cached = true});
  EXPECT_EQ(observers.request, nullptr);
  EXPECT_NE(observers.queue, nullptr);
  EXPECT_NE(observers.cache_hit, nullptr);
  EXPECT_NE(observers.cache_miss, nullptr);
  EXPECT_EQ(observers.first_response->bounds_ms(), (std::vector<double>{1.0}));
}

}  // namespace
}  // namespace nereid::core
