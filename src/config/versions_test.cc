// SPDX-License-Identifier: Apache-2.0
#include "config/versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::config {
namespace {

using testing::ElementsAre;

TEST(VersionName, TakesPlainNumbersOnly) {
  EXPECT_EQ(ParseVersionName("1").version, 1);
  EXPECT_EQ(ParseVersionName("0").version, 0);
  EXPECT_EQ(ParseVersionName("9223372036854775807").version, 9223372036854775807);
  for (const char* name :
       {"abc", "1a", "-1", "+1", " 1", "1 ", "9223372036854775808", ".", "1.0"}) {
    const VersionName parsed = ParseVersionName(name);
    EXPECT_FALSE(parsed.version) << name;
    EXPECT_EQ(parsed.warning, std::string("ignore version directory '") + name +
                                  "' which fails to convert to integral number");
  }
  EXPECT_EQ(ParseVersionName("003").warning,
            "ignore version directory '003' which contains leading zeros in its directory name");
}

TEST(VersionName, PassesOverFoldersWithAnotherPurposeSilently) {
  for (const char* name : {"warmup", "initial_state", "configs"}) {
    EXPECT_FALSE(ParseVersionName(name).version);
    EXPECT_EQ(ParseVersionName(name).warning, "");
  }
}

TEST(VersionsToLoad, TakesTheLatestOneByDefault) {
  EXPECT_THAT(VersionsToLoad({}, {1, 2, 10}).versions, ElementsAre(10));
  EXPECT_THAT(VersionsToLoad({}, {}).versions, ElementsAre());
}

TEST(VersionsToLoad, TakesTheLatestN) {
  const VersionPolicy two{VersionPolicy::Latest{2}};
  EXPECT_THAT(VersionsToLoad(two, {1, 2, 10}).versions, ElementsAre(2, 10));
  EXPECT_THAT(VersionsToLoad(two, {7}).versions, ElementsAre(7));
  EXPECT_THAT(VersionsToLoad(VersionPolicy{VersionPolicy::Latest{0}}, {7}).versions, ElementsAre());
}

TEST(VersionsToLoad, TakesAll) {
  EXPECT_THAT(VersionsToLoad(VersionPolicy{VersionPolicy::All{}}, {1, 2, 10}).versions,
              ElementsAre(1, 2, 10));
  EXPECT_THAT(VersionsToLoad(VersionPolicy{}, {1, 2}).versions, ElementsAre(1, 2));
}

TEST(VersionsToLoad, TakesSpecificOnesAndReportsMissingOnes) {
  const VersionPolicy specific{VersionPolicy::Specific{{2, 5, 2, 9}}};
  const VersionSelection selection = VersionsToLoad(specific, {1, 2, 10});
  EXPECT_THAT(selection.versions, ElementsAre(2));
  EXPECT_THAT(selection.missing, ElementsAre(5, 9));
}

}  // namespace
}  // namespace nereid::config
