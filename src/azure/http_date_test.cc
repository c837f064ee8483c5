// SPDX-License-Identifier: Apache-2.0
#include "azure/http_date.h"

#include <gtest/gtest.h>

namespace nereid::azure {
namespace {

TEST(ADate, IsWrittenAndReadAsInHttp) {
  EXPECT_EQ(HttpDate(1435361952), "Fri, 26 Jun 2015 23:39:12 GMT");
  EXPECT_EQ(ParseHttpDate("Fri, 26 Jun 2015 23:39:12 GMT"), 1435361952'000'000'000);
  EXPECT_EQ(ParseHttpDate(HttpDate(1769862896)), 1769862896'000'000'000);
}

TEST(ADate, IsRefusedInAnyOtherForm) {
  for (const char* text : {"", "yesterday", "Fri, 26 Jun 2015 23:39:12 UTC",
                           "Fri, 26 Foo 2015 23:39:12 GMT", "Fri, xx Jun 2015 23:39:12 GMT",
                           "Fri, 26 Jun 9999 23:39:12 GMT", "Fri, 26 Jun -015 23:39:12 GMT"}) {
    EXPECT_EQ(ParseHttpDate(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace nereid::azure
