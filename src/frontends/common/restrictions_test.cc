// SPDX-License-Identifier: Apache-2.0
#include "common/restrictions.h"

#include <gtest/gtest.h>

namespace nereid::common {
namespace {

base::Status Add(Restrictions& restrictions, std::string_view rule) {
  return restrictions.Add(rule, "http-restricted-api", "api", "");
}

TEST(Restrictions, NothingIsRestrictedAtFirst) {
  const Restrictions restrictions;
  EXPECT_TRUE(restrictions.empty());
  EXPECT_FALSE(restrictions.IsRestricted(Category::kInference));
}

TEST(Restrictions, OneRuleHoldsForEveryCategoryItNames) {
  Restrictions restrictions;
  ASSERT_TRUE(Add(restrictions, "health,model-repository:Admin-Key=a=b:c").ok());
  EXPECT_FALSE(restrictions.empty());
  EXPECT_FALSE(restrictions.IsRestricted(Category::kInference));
  for (const Category category : {Category::kHealth, Category::kModelRepository}) {
    ASSERT_TRUE(restrictions.IsRestricted(category));
    EXPECT_EQ(restrictions.key(category), "Admin-Key");
    EXPECT_EQ(restrictions.lower_key(category), "admin-key");
    EXPECT_FALSE(restrictions.Refuses(category, "a=b:c"));
    for (const std::string_view wrong : {"", "a", "a=b:", "a=b:cc", "A=b:c", "a=b:ca=b:c"}) {
      EXPECT_TRUE(restrictions.Refuses(category, wrong)) << wrong;
    }
  }
}

TEST(Restrictions, EveryNameOfTritonIsKnown) {
  const std::pair<std::string, Category> names[] = {
      {"health", Category::kHealth},
      {"metadata", Category::kMetadata},
      {"inference", Category::kInference},
      {"shared-memory", Category::kSharedMemory},
      {"model-config", Category::kModelConfig},
      {"model-repository", Category::kModelRepository},
      {"statistics", Category::kStatistics},
      {"trace", Category::kTrace},
      {"logging", Category::kLogging},
  };
  ASSERT_EQ(std::size(names), kCategoryCount);
  for (const auto& [name, category] : names) {
    Restrictions restrictions;
    ASSERT_TRUE(Add(restrictions, name + ":k=v").ok());
    EXPECT_TRUE(restrictions.IsRestricted(category)) << name;
  }
}

TEST(Restrictions, RefusesARuleInTritonsWordsAndWithoutTheValue) {
  Restrictions restrictions;
  ASSERT_TRUE(Add(restrictions, "health:k=v").ok());
  EXPECT_EQ(Add(restrictions, "metadata,health:other=secret").message(),
            "restricted api 'health' can not be specified in multiple config groups");
  EXPECT_EQ(Add(restrictions, "helth:k=secret").message(),
            "unknown restricted api 'helth', expected 'health', 'metadata', 'inference', "
            "'shared-memory', "
            "'model-config', 'model-repository', 'statistics', 'trace' and 'logging'; did you mean "
            "'health'?");
  for (const std::string_view malformed :
       {"", "health", "health:k", "health:=secret", ":k=secret", "health:k=", "k=secret"}) {
    EXPECT_EQ(Add(restrictions, malformed).message(),
              "--http-restricted-api option format is '<config name>:<setting>=<value>'.")
        << malformed;
  }
}

TEST(SameSecret, ComparesWhole) {
  EXPECT_TRUE(SameSecret("", ""));
  EXPECT_TRUE(SameSecret("abc", "abc"));
  EXPECT_FALSE(SameSecret("abc", ""));
  EXPECT_FALSE(SameSecret("", "abc"));
  EXPECT_FALSE(SameSecret("abc", "abd"));
  EXPECT_FALSE(SameSecret("ab", "abab"));
  EXPECT_FALSE(SameSecret(std::string_view("\0", 1), ""));
}

}  // namespace
}  // namespace nereid::common
