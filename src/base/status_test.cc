// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

namespace nereid::base {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return InvalidArgumentError("odd");
  return n / 2;
}

Result<int> Quarter(int n) {
  NEREID_ASSIGN_OR_RETURN(const int half, Half(n));
  return Half(half);
}

TEST(Status, CarriesCodeAndMessageThroughPrefixes) {
  const Status status = NotFoundError("no file").WithPrefix("model 'm': ");
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "model 'm': no file");
  EXPECT_EQ(status.ToString(), "Not found: model 'm': no file");
  EXPECT_TRUE(OkStatus().WithPrefix("x").ok());
}

TEST(Status, KeepsTheTimeToTryAgainThroughPrefixes) {
  EXPECT_EQ(UnavailableError("full").retry_after().count(), 0);
  const Status status = UnavailableError("full").WithRetryAfter(std::chrono::seconds(2));
  EXPECT_EQ(status.WithPrefix("m: ").retry_after(), std::chrono::seconds(2));
  EXPECT_EQ(status.WithPrefix("m: ").message(), "m: full");
}

TEST(Result, PropagatesTheFirstFailure) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "odd");
}

}  // namespace
}  // namespace nereid::base
