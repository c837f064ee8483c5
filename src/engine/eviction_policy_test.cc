// SPDX-License-Identifier: Apache-2.0
#include "engine/eviction_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace nereid::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Outcome = RoomPlan::Outcome;

base::TimePoint At(double time) {
  return base::TimePoint() + std::chrono::hours(1) +
         std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(time));
}

// The options of a policy with, unless they say otherwise, one kind of memory and 100 bytes of it.
EvictionOptions With(EvictionOptions options = {}) {
  if (options.budgets.empty()) options.budgets = {100};
  return options;
}

void Load(EvictionPolicy& policy, const std::string& name, MemoryBytes bytes, double time,
          milliseconds took = milliseconds(100), uint64_t uses = 1) {
  policy.NoteLoaded(name, bytes, took, At(time));
  policy.NoteUses(name, uses, At(time));
}

TEST(EvictionPolicy, LeavesModelsAloneWhileThereIsRoom) {
  EvictionPolicy policy(With());
  Load(policy, "a", {60}, 0);
  const RoomPlan plan = policy.MakeRoom("b", {}, At(1));
  EXPECT_EQ(plan.outcome, Outcome::kFits);
  EXPECT_THAT(plan.victims, IsEmpty());
}

TEST(EvictionPolicy, RemembersWhatAModelTookAndMakesRoomForIt) {
  EvictionPolicy policy(With());
  Load(policy, "b", {50}, 0);
  policy.NoteUnloaded("b");
  Load(policy, "a", {60}, 1);
  EXPECT_EQ(policy.used(), MemoryBytes{60});
  EXPECT_EQ(policy.KnownBytes("b"), MemoryBytes{50});
  EXPECT_THAT(policy.MakeRoom("b", {}, At(2)).victims, ElementsAre("a"));
}

TEST(EvictionPolicy, TakesTheNextMeasurementOfFilesThatMayHaveChangedForTheTruth) {
  EvictionPolicy policy(With());
  Load(policy, "a", {50}, 0);
  policy.NoteUnloaded("a");
  policy.Distrust("a");
  EXPECT_EQ(policy.KnownBytes("a"), MemoryBytes{50}) << "an estimate until then";
  Load(policy, "a", {10}, 1);
  EXPECT_EQ(policy.KnownBytes("a"), MemoryBytes{10});
  policy.NoteUnloaded("a");
  Load(policy, "a", {30}, 2);
  EXPECT_EQ(policy.KnownBytes("a"), MemoryBytes{20});
}

TEST(EvictionPolicy, ComesBackBelowTheBudgetAfterTheFirstLoadOfAModel) {
  EvictionPolicy policy(With());
  Load(policy, "a", {60}, 0);
  Load(policy, "b", {70}, 1);
  const RoomPlan plan = policy.MakeRoom("b", {}, At(1));
  EXPECT_EQ(plan.outcome, Outcome::kFits);
  EXPECT_THAT(plan.victims, ElementsAre("a"));
}

TEST(EvictionPolicy, UnloadsTheLeastUsedFirst) {
  EvictionPolicy policy(With());
  Load(policy, "often", {40}, 0, milliseconds(100), 9);
  Load(policy, "seldom", {40}, 0, milliseconds(100), 2);
  Load(policy, "new", {40}, 1);
  EXPECT_THAT(policy.MakeRoom("new", {}, At(2)).victims, ElementsAre("seldom"));
}

TEST(EvictionPolicy, PrefersModelsThatAreQuicklyLoadedAgain) {
  EvictionPolicy policy(With());
  Load(policy, "slow", {40}, 0, seconds(30));
  Load(policy, "quick", {40}, 1, milliseconds(50));
  Load(policy, "new", {40}, 2);
  EXPECT_THAT(policy.MakeRoom("new", {}, At(3)).victims, ElementsAre("quick"));
}

TEST(EvictionPolicy, PrefersLargeModels) {
  EvictionPolicy policy(With());
  Load(policy, "large", {60}, 1);
  Load(policy, "small", {10}, 0);
  Load(policy, "new", {40}, 2);
  EXPECT_THAT(policy.MakeRoom("new", {}, At(3)).victims, ElementsAre("large"));
}

TEST(EvictionPolicy, ForgetsOldUses) {
  EvictionPolicy policy(With({.half_life = seconds(10)}));
  Load(policy, "past", {50}, 0, milliseconds(100), 1000);
  Load(policy, "now", {50}, 200, milliseconds(100), 2);
  EXPECT_THAT(policy.MakeRoom("past", {}, At(200)).victims, IsEmpty());
  Load(policy, "new", {50}, 200);
  EXPECT_THAT(policy.MakeRoom("new", {}, At(200)).victims, ElementsAre("past"));
}

TEST(EvictionPolicy, UnloadsNoMoreThanNeeded) {
  EvictionPolicy policy(With());
  Load(policy, "small", {10}, 0, milliseconds(1), 1);
  Load(policy, "large", {80}, 0, seconds(1), 100);
  Load(policy, "new", {40}, 1);
  // Without the large one there is no room, and with it gone the small one can stay.
  EXPECT_THAT(policy.MakeRoom("new", {}, At(1)).victims, ElementsAre("large"));
}

TEST(EvictionPolicy, NeverUnloadsWhatIsPinnedOrBusy) {
  EvictionPolicy policy(With());
  Load(policy, "pinned", {50}, 0);
  policy.Pin("pinned");
  Load(policy, "busy", {50}, 0);
  Load(policy, "new", {30}, 1);
  RoomPlan plan = policy.MakeRoom("new", {"busy"}, At(2));
  EXPECT_EQ(plan.outcome, Outcome::kNotNow);
  EXPECT_EQ(plan.next_chance, base::TimePoint());
  plan = policy.MakeRoom("new", {}, At(2));
  EXPECT_EQ(plan.outcome, Outcome::kFits);
  EXPECT_THAT(plan.victims, ElementsAre("busy"));
}

TEST(EvictionPolicy, KeepsAPinWhateverBecomesOfTheModel) {
  EvictionPolicy policy(With());
  policy.Pin("pinned");
  // It is not in the repositories now.
  policy.RetainOnly({});
  Load(policy, "pinned", {50}, 0);
  policy.NoteUnloaded("pinned");
  EXPECT_TRUE(policy.IsPinned("pinned"));
}

TEST(EvictionPolicy, PinsAModelThatIsToStayUntilItIsUnloaded) {
  EvictionPolicy policy(With());
  Load(policy, "a", {50}, 0);
  policy.PinWhileLoaded("a", true);
  Load(policy, "b", {60}, 1);
  EXPECT_EQ(policy.MakeRoom("b", {}, At(2)).outcome, Outcome::kNever);
  // Another load does not change that, an unload for whatever reason does.
  Load(policy, "a", {50}, 2);
  EXPECT_TRUE(policy.IsPinned("a"));
  policy.NoteUnloaded("a");
  EXPECT_FALSE(policy.IsPinned("a"));
  Load(policy, "a", {50}, 3);
  EXPECT_THAT(policy.MakeRoom("b", {}, At(4)).victims, ElementsAre("a"));
}

TEST(EvictionPolicy, ForgetsModelsThatAreNoLongerInTheRepositories) {
  EvictionPolicy policy(With());
  for (const char* name : {"loaded", "kept", "gone"}) Load(policy, name, {10}, 0);
  policy.NoteUnloaded("kept");
  policy.NoteUnloaded("gone");
  policy.RetainOnly({"kept"});
  EXPECT_EQ(policy.KnownBytes("gone"), std::nullopt);
  EXPECT_EQ(policy.KnownBytes("kept"), MemoryBytes{10});
  EXPECT_TRUE(policy.IsLoaded("loaded"));
  // It is forgotten once it is not loaded any more.
  policy.NoteUnloaded("loaded");
  policy.RetainOnly({"kept"});
  EXPECT_EQ(policy.KnownBytes("loaded"), std::nullopt);
}

TEST(EvictionPolicy, SaysWhenAModelCanNeverFit) {
  EvictionPolicy policy(With({.budgets = {100, 10}}));
  Load(policy, "pinned", {50, 0}, 0);
  policy.Pin("pinned");
  Load(policy, "large", {51, 0}, 0);
  EXPECT_EQ(policy.MakeRoom("large", {}, At(1)).outcome, Outcome::kNever);
  EXPECT_EQ(policy.MakeRoom("large", {}, At(1)).lacking, 0u);
  Load(policy, "gpu", {0, 11}, 0);
  EXPECT_EQ(policy.MakeRoom("gpu", {}, At(1)).outcome, Outcome::kNever);
  EXPECT_EQ(policy.MakeRoom("gpu", {}, At(1)).lacking, 1u);
}

TEST(EvictionPolicy, UnloadsOnlyWhereMemoryIsMissing) {
  EvictionPolicy policy(With({.budgets = {100, 100}}));
  Load(policy, "cpu", {90, 0}, 0, milliseconds(1));
  Load(policy, "gpu", {0, 90}, 0, seconds(9), 50);
  Load(policy, "new", {0, 20}, 1);
  EXPECT_THAT(policy.MakeRoom("new", {}, At(1)).victims, ElementsAre("gpu"));
  // Whoever waits although this would fit is told so, too.
  EXPECT_EQ(policy.MakeRoom("new", {}, At(1)).lacking, 1u);
}

TEST(EvictionPolicy, ComesAsCloseToTheBudgetAsItCan) {
  EvictionPolicy policy(With());
  Load(policy, "busy", {90}, 0);
  Load(policy, "idle", {30}, 0);
  EXPECT_EQ(policy.MakeRoom("busy", {}, At(1)).victims, policy.FindExcess("busy", {}, At(1)));
  Load(policy, "new", {50}, 1);
  // Without `busy` it does not suffice, but it helps.
  EXPECT_EQ(policy.MakeRoom("new", {"busy"}, At(1)).outcome, Outcome::kNotNow);
  EXPECT_THAT(policy.FindExcess("new", {"busy"}, At(1)), ElementsAre("idle"));
  // Pinned models that take more than there is are no reason to keep others.
  policy.Pin("busy");
  policy.Pin("new");
  EXPECT_THAT(policy.FindExcess("", {}, At(1)), ElementsAre("idle"));
}

TEST(EvictionPolicy, UnloadsEnsemblesForWhatTheyNeed) {
  EvictionPolicy policy(With());
  Load(policy, "part", {50}, 0);
  Load(policy, "inner", {0}, 0);
  Load(policy, "outer", {0}, 0);
  policy.NoteParts("inner", {"part"});
  policy.NoteParts("outer", {"inner", "part"});
  Load(policy, "other", {40}, 0);
  Load(policy, "new", {20}, 1);
  // Other models go first.
  EXPECT_THAT(policy.MakeRoom("new", {}, At(1)).victims, ElementsAre("other"));
  EXPECT_THAT(policy.MakeRoom("new", {"other"}, At(1)).victims,
              ElementsAre("outer", "inner", "part"));
  EXPECT_EQ(policy.MakeRoom("new", {"other", "outer"}, At(1)).outcome, Outcome::kNotNow);
  policy.Pin("inner");
  EXPECT_EQ(policy.MakeRoom("new", {"other"}, At(1)).outcome, Outcome::kNotNow);
  // Nothing goes for an ensemble that it needs.
  EXPECT_EQ(policy.MakeRoom("outer", {"other", "new"}, At(1)).outcome, Outcome::kNotNow);
}

TEST(EvictionPolicy, KeepsAModelForItsMinimumStay) {
  EvictionPolicy policy(With({.min_stay = seconds(10)}));
  Load(policy, "a", {80}, 0);
  Load(policy, "b", {80}, 1);
  const RoomPlan plan = policy.MakeRoom("b", {}, At(2));
  EXPECT_EQ(plan.outcome, Outcome::kNotNow);
  EXPECT_EQ(plan.next_chance, At(10));
  EXPECT_THAT(policy.MakeRoom("b", {}, At(10)).victims, ElementsAre("a"));
}

TEST(EvictionPolicy, FindsModelsThatNobodyUses) {
  EvictionPolicy policy(With({.min_stay = seconds(1), .idle_limit = seconds(60)}));
  Load(policy, "a", {1}, 0);
  Load(policy, "b", {1}, 0);
  Load(policy, "pinned", {1}, 0);
  policy.Pin("pinned");
  policy.NoteUses("b", 1, At(30));
  EXPECT_THAT(policy.FindIdle({}, At(59)), IsEmpty());
  EXPECT_THAT(policy.FindIdle({}, At(60)), ElementsAre("a"));
  EXPECT_THAT(policy.FindIdle({"a"}, At(90)), ElementsAre("b"));
}

TEST(EvictionPolicy, NeverTakesAModelForSmallerThanAllItsMeasurements) {
  EvictionPolicy policy(With());
  for (int i = 0; i < 3; ++i) {
    policy.NoteUnloaded("a");
    Load(policy, "a", {39}, i);
  }
  EXPECT_EQ(policy.used(), MemoryBytes{39});
}

TEST(EvictionPolicy, TakesAModelThatWasReplacedForWhatItTakesNow) {
  EvictionPolicy policy(With());
  Load(policy, "a", {40}, 0);
  Load(policy, "a", {60}, 1);
  EXPECT_EQ(policy.used(), MemoryBytes{60});
  EXPECT_EQ(policy.KnownBytes("a"), MemoryBytes{60});
}

TEST(EvictionPolicy, AveragesMeasurements) {
  EvictionPolicy policy(With());
  Load(policy, "a", {40}, 0);
  policy.NoteUnloaded("a");
  Load(policy, "a", {60}, 1);
  EXPECT_EQ(policy.KnownBytes("a"), MemoryBytes{50});
  EXPECT_EQ(policy.used(), MemoryBytes{50});
  EXPECT_EQ(policy.loaded_count(), 1u);
}

// Whatever happens, the plan fits, concerns only models that may go, and contains none in vain.
TEST(EvictionPolicy, PlansAreSoundForRandomModels) {
  std::mt19937 random(17);
  const auto below = [&random](uint64_t bound) { return random() % bound; };
  for (int round = 0; round < 3000; ++round) {
    const MemoryBytes budgets = {100, below(2) * 100};
    EvictionPolicy policy(With({.budgets = budgets, .min_stay = seconds(below(3))}));
    std::map<std::string, MemoryBytes> sizes;
    std::set<std::string> busy;
    std::set<std::string> fixed;
    for (uint64_t i = below(12); i-- > 0;) {
      const std::string name = "m" + std::to_string(i);
      sizes[name] = {below(40), below(40)};
      const auto time = static_cast<double>(below(4));
      Load(policy, name, sizes[name], time, milliseconds(below(100)), below(20));
      if (below(5) == 0) policy.Pin(name);
      if (below(5) == 0) busy.insert(name);
      if (policy.IsPinned(name) || busy.contains(name) ||
          At(4) - At(time) < policy.options().min_stay) {
        fixed.insert(name);
      }
    }
    // Some are ensembles of models before them.
    std::map<std::string, std::set<std::string>> parts;
    for (const auto& [name, bytes] : sizes) {
      if (below(4) > 0) continue;
      std::set<std::string> inner;
      for (const auto& [part, part_bytes] : sizes) {
        if (part == name) break;
        if (below(3) > 0) continue;
        inner.insert(part);
        if (parts.contains(part)) inner.insert(parts[part].begin(), parts[part].end());
      }
      policy.NoteParts(name, parts[name] = inner);
    }
    for (const auto& [name, inner] : parts) {
      if (fixed.contains(name)) fixed.insert(inner.begin(), inner.end());
    }
    Load(policy, "new", {below(140), below(140)}, 4);
    sizes["new"] = *policy.KnownBytes("new");
    const auto fits_without = [&](const std::set<std::string>& gone, bool only_fixed = false) {
      MemoryBytes sum(2);
      for (const auto& [name, bytes] : sizes) {
        if (gone.contains(name) || (only_fixed && name != "new" && !fixed.contains(name))) continue;
        for (size_t i = 0; i < 2; ++i) sum[i] += bytes[i];
      }
      return sum[0] <= budgets[0] && (budgets[1] == 0 || sum[1] <= budgets[1]);
    };
    // Whether none of the rest would free memory that is missing.
    const auto leaves_no_more_than_needed = [&](const std::vector<std::string>& gone) {
      MemoryBytes sum(2);
      for (const auto& [name, bytes] : sizes) {
        if (std::ranges::find(gone, name) != gone.end()) continue;
        for (size_t i = 0; i < 2; ++i) sum[i] += bytes[i];
      }
      return std::ranges::none_of(sizes, [&](const auto& model) {
        const auto& [name, bytes] = model;
        if (name == "new" || fixed.contains(name)) return false;
        if (std::ranges::find(gone, name) != gone.end()) return false;
        return (sum[0] > budgets[0] && bytes[0] > 0) ||
               (budgets[1] > 0 && sum[1] > budgets[1] && bytes[1] > 0);
      });
    };
    const RoomPlan plan = policy.MakeRoom("new", busy, At(4));
    std::set<std::string> victims(plan.victims.begin(), plan.victims.end());
    // What goes in any case is as much as can, if it does not suffice, and otherwise the same.
    const std::vector<std::string> excess = policy.FindExcess("new", busy, At(4));
    std::set<std::string> left;
    for (const auto& [name, bytes] : sizes) left.insert(name);
    for (const std::string& name : excess) {
      ASSERT_FALSE(fixed.contains(name)) << round;
      left.erase(name);
      for (const std::string& holder : left) ASSERT_FALSE(parts[holder].contains(name)) << round;
    }
    if (plan.outcome == Outcome::kFits) {
      ASSERT_EQ(excess, plan.victims) << round;
    } else {
      ASSERT_TRUE(leaves_no_more_than_needed(excess)) << round;
    }
    ASSERT_EQ(plan.outcome == Outcome::kFits, fits_without({}, /*only_fixed=*/true)) << round;
    if (plan.outcome != Outcome::kFits) continue;
    ASSERT_TRUE(fits_without(victims)) << round;
    for (const std::string& victim : plan.victims) {
      ASSERT_FALSE(fixed.contains(victim)) << round;
      std::set<std::string> fewer = victims;
      fewer.erase(victim);
      const std::set<std::string>& inner = parts[victim];
      if (std::ranges::any_of(fewer, [&](const auto& name) { return inner.contains(name); })) {
        continue;
      }
      ASSERT_FALSE(fits_without(fewer)) << round << " needs " << victim << " not";
    }
  }
}

}  // namespace
}  // namespace nereid::engine
