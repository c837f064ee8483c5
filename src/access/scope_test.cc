// SPDX-License-Identifier: Apache-2.0
#include "access/scope.h"

#include <gtest/gtest.h>

namespace nereid::access {
namespace {

TEST(Scopes, HaveNamesByWhichTheyAreFound) {
  for (const std::string_view name : GrantableScopes()) {
    const std::optional<Scope> scope = FindScope(name);
    ASSERT_TRUE(scope) << name;
    EXPECT_EQ(ScopeName(*scope), name);
  }
  EXPECT_EQ(GrantableScopes().size(), kScopeCount - 1);
  EXPECT_FALSE(FindScope("health"));
  EXPECT_FALSE(FindScope(""));
  EXPECT_FALSE(FindScope("Infer"));
}

TEST(Scopes, AllowOnlyThemselvesButAdminAllowsAll) {
  for (size_t i = 0; i < kScopeCount; ++i) {
    for (size_t j = 0; j < kScopeCount; ++j) {
      const auto granted = static_cast<Scope>(i);
      const bool allows = ScopeSet({granted}).Allows(static_cast<Scope>(j));
      EXPECT_EQ(allows, i == j || granted == Scope::kAdmin) << i << " " << j;
    }
  }
  EXPECT_FALSE(ScopeSet().Allows(Scope::kInfer));
}

TEST(Patterns, MatchWholeTexts) {
  EXPECT_TRUE(MatchesPattern("resnet", "resnet"));
  EXPECT_FALSE(MatchesPattern("resnet", "resnet2"));
  EXPECT_FALSE(MatchesPattern("resnet", "a-resnet"));
  EXPECT_TRUE(MatchesPattern("res*", "resnet"));
  EXPECT_TRUE(MatchesPattern("res*", "res"));
  EXPECT_TRUE(MatchesPattern("*net*50", "resnet-v2-50"));
  EXPECT_TRUE(MatchesPattern("*ab*abc", "xabyababc"));
  EXPECT_FALSE(MatchesPattern("*ab*abc", "xabyabab"));
  EXPECT_TRUE(MatchesPattern("m?", "m1"));
  EXPECT_FALSE(MatchesPattern("m?", "m"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_FALSE(MatchesPattern("", "x"));
  EXPECT_TRUE(MatchesPattern("a.c", "a.c"));
  EXPECT_FALSE(MatchesPattern("a.c", "abc"));
}

TEST(Patterns, EndSoonForTextsThatNearlyMatch) {
  std::string pattern;
  for (int i = 0; i < 40; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesPattern(pattern + "b", std::string(4000, 'a')));
}

TEST(ModelPatterns, WithoutAnyAllowEveryModel) {
  EXPECT_TRUE(ModelPatterns().Allows("m"));
  const ModelPatterns some({"a", "b*"});
  EXPECT_TRUE(some.Allows("a"));
  EXPECT_TRUE(some.Allows("bc"));
  EXPECT_FALSE(some.Allows("c"));
  EXPECT_FALSE(some.Allows(""));
}

TEST(ModelPatterns, LookAtTheNameThatTheServerWillUse) {
  const ModelPatterns two({"?b"});
  EXPECT_TRUE(two.Allows("ab"));
  EXPECT_FALSE(two.Allows(" b"));
  EXPECT_FALSE(two.Allows("b\t"));
}

}  // namespace
}  // namespace nereid::access
