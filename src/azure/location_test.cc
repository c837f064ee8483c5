// SPDX-License-Identifier: Apache-2.0
#include "azure/location.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::azure {
namespace {

TEST(ALocation, IsReadInTheFormsOfTriton) {
  const auto short_form = ParseLocation("as://account/container/models//a/");
  ASSERT_TRUE(short_form.ok());
  EXPECT_EQ(short_form->host, "account");
  EXPECT_EQ(short_form->container, "container");
  EXPECT_EQ(short_form->key, "models/a");
  const auto long_form = ParseLocation("as://account.blob.core.windows.net/container");
  ASSERT_TRUE(long_form.ok());
  EXPECT_EQ(AccountOf(long_form->host), "account");
  EXPECT_EQ(long_form->key, "");
}

TEST(ALocation, MayBeSpelledWithTheWholeNameOfTheCloud) {
  const auto location = ParseLocation("azure://account/container/models");
  ASSERT_TRUE(location.ok());
  EXPECT_EQ(location->host, "account");
  EXPECT_EQ(location->container, "container");
  EXPECT_EQ(location->key, "models");
  EXPECT_EQ(SpelledAsInTriton("azure://account/container"), "as://account/container");
  EXPECT_EQ(SpelledAsInTriton("as://azure://x"), "as://azure://x");
  EXPECT_EQ(ParseLocation("azure://account").status().message(),
            "Invalid azure storage path: azure://account");
}

TEST(ALocation, NeedsAnAccountAndAContainer) {
  for (const char* path : {"as://", "as://account", "as://account/", "as:///container"}) {
    const auto location = ParseLocation(path);
    ASSERT_FALSE(location.ok() && !location->container.empty() && location->host != "container")
        << path;
  }
  EXPECT_EQ(ParseLocation("as://account").status().message(),
            "Invalid azure storage path: as://account");
  EXPECT_FALSE(ParseLocation("as://user@host/container").ok());
}

TEST(ALocation, HasNoSignatureInItAndNoneInTheError) {
  const auto location = ParseLocation("as://account/container/m?sv=1&sig=secret");
  EXPECT_THAT(location.status().message(), testing::HasSubstr("AZURE_STORAGE_SAS_TOKEN"));
  EXPECT_THAT(location.status().message(), testing::Not(testing::HasSubstr("secret")));
}

}  // namespace
}  // namespace nereid::azure
