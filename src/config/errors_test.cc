// SPDX-License-Identifier: Apache-2.0
#include "config/errors.h"

#include <gtest/gtest.h>

namespace nereid::config {
namespace {

TEST(ErrorList, OfNothingIsSuccess) {
  EXPECT_TRUE(ErrorList().ToStatus("config.pbtxt").ok());
  EXPECT_TRUE(ErrorList().empty());
}

TEST(ErrorList, TellsAllFaultsAtOnceWithTheirPlaces) {
  ErrorList errors;
  errors.Add({.code = base::StatusCode::kUnsupported,
              .text = "dims must be positive",
              .field = "input[0].dims",
              .found = "[ 0 ]",
              .expected = "dimensions >= 1"});
  errors.Add({.text = "no backend"});
  const base::Status status = errors.ToStatus("m/config.pbtxt");
  EXPECT_EQ(status.code(), base::StatusCode::kUnsupported);
  EXPECT_EQ(status.message(),
            "dims must be positive\n"
            "  m/config.pbtxt: input[0].dims: found [ 0 ], expected dimensions >= 1\n"
            "no backend");
  EXPECT_EQ(errors.ToStatus("").message(),
            "dims must be positive\n  input[0].dims: found [ 0 ], expected dimensions >= 1\n"
            "no backend");
}

TEST(ErrorList, TellsEachFaultOnce) {
  ErrorList errors;
  for (const char* field : {"a", "b", "a"}) errors.Add({.text = "wrong", .field = field});
  ErrorList more;
  more.Add({.text = "wrong", .field = "b"});
  more.Add({.text = "other", .field = "b"});
  errors.Append(more);
  ASSERT_EQ(errors.errors().size(), 3u);
  EXPECT_EQ(errors.errors()[2].text, "other");
}

}  // namespace
}  // namespace nereid::config
