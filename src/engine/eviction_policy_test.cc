// SPDX-License-Identifier: Apache-2.0
#include "engine/eviction_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <list>
#include <random>
#include <unordered_map>

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
  policy.ForgetBytes("b");
  EXPECT_THAT(policy.MakeRoom("b", {}, At(2)).victims, IsEmpty());
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
  policy.PinWhileLoaded("a");
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

// --- Against fixed policies, under requests for 1,000 models with room for 20 ---

constexpr size_t kModels = 1000;
constexpr size_t kPlaces = 20;
constexpr size_t kLearning = 20'000;
constexpr size_t kRequests = 40'000;

// Requests whose models follow Zipf's law, the first model being the most wanted.
std::vector<size_t> ZipfRequests(double exponent, size_t count, unsigned seed) {
  std::vector<double> weights;
  for (size_t i = 1; i <= kModels; ++i) {
    weights.push_back(1 / std::pow(static_cast<double>(i), exponent));
  }
  std::mt19937 random(seed);
  std::discrete_distribution<size_t> choose(weights.begin(), weights.end());
  std::vector<size_t> requests(count);
  for (size_t& request : requests) request = choose(random);
  return requests;
}

// Serves the requests with a cache that evicts the model of the lowest rank; returns the share of
// hits after learning.
double HitRate(
    const std::vector<size_t>& requests,
    const std::function<double(size_t model, bool was_hit, size_t now)>& rank,
    const std::function<void(double rank)>& on_eviction = [](double) {}) {
  std::unordered_map<size_t, double> cached;
  size_t hits = 0;
  for (size_t now = 0; now < requests.size(); ++now) {
    const size_t model = requests[now];
    const bool is_hit = cached.contains(model);
    if (is_hit && now >= kLearning) ++hits;
    if (!is_hit && cached.size() == kPlaces) {
      const auto victim = std::ranges::min_element(
          cached, [](const auto& a, const auto& b) { return a.second < b.second; });
      on_eviction(victim->second);
      cached.erase(victim);
    }
    cached[model] = rank(model, is_hit, now);
  }
  return static_cast<double>(hits) / static_cast<double>(requests.size() - kLearning);
}

double LruHitRate(const std::vector<size_t>& requests) {
  return HitRate(requests, [](size_t, bool, size_t now) { return static_cast<double>(now); });
}

double LfuHitRate(const std::vector<size_t>& requests) {
  std::vector<double> counts(kModels);
  return HitRate(requests, [&](size_t model, bool, size_t) { return ++counts[model]; });
}

double GdsfHitRate(const std::vector<size_t>& requests) {
  double clock = 0;
  std::unordered_map<size_t, double> counts;
  return HitRate(
      requests,
      [&](size_t model, bool was_hit, size_t) {
        counts[model] = was_hit ? counts[model] + 1 : 1;
        return clock + counts[model];
      },
      [&clock](double rank) { clock = rank; });
}

// The best choice of models that never changes, made with the knowledge of all requests.
double StaticHitRate(const std::vector<size_t>& requests) {
  std::vector<size_t> counts(kModels);
  for (size_t i = kLearning; i < requests.size(); ++i) ++counts[requests[i]];
  std::ranges::sort(counts, std::greater<>());
  size_t hits = 0;
  for (size_t i = 0; i < kPlaces; ++i) hits += counts[i];
  return static_cast<double>(hits) / static_cast<double>(requests.size() - kLearning);
}

struct Outcomes {
  double hit_rate = 0;
  std::vector<size_t> loads;  // of each model, after learning
};

// Serves the requests, ten a second, as the server does: a model is loaded for each miss.
Outcomes RunPolicy(const std::vector<size_t>& requests) {
  EvictionPolicy policy({.budgets = {kPlaces * 1000}});
  Outcomes outcomes{.loads = std::vector<size_t>(kModels)};
  size_t hits = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const base::TimePoint now = At(static_cast<double>(i) / 10);
    const std::string name = "m" + std::to_string(requests[i]);
    if (policy.IsLoaded(name)) {
      if (i >= kLearning) ++hits;
      policy.NoteUses(name, 1, now);
      continue;
    }
    if (i >= kLearning) ++outcomes.loads[requests[i]];
    policy.NoteUses(name, 1, now);
    const auto unload = [&policy](const RoomPlan& plan) {
      EXPECT_EQ(plan.outcome, Outcome::kFits);
      for (const std::string& victim : plan.victims) policy.NoteUnloaded(victim);
    };
    unload(policy.MakeRoom(name, {}, now));
    policy.NoteLoaded(name, {1000}, milliseconds(100), now);
    unload(policy.MakeRoom(name, {}, now));
  }
  outcomes.hit_rate = static_cast<double>(hits) / static_cast<double>(requests.size() - kLearning);
  return outcomes;
}

TEST(EvictionPolicySimulation, ComesCloseToTheBestFixedPolicy) {
  for (const double exponent : {0.8, 1.0, 1.3}) {
    const std::vector<size_t> requests = ZipfRequests(exponent, kLearning + kRequests, 5);
    const double lru = LruHitRate(requests);
    const double lfu = LfuHitRate(requests);
    const double gdsf = GdsfHitRate(requests);
    const double fixed = StaticHitRate(requests);
    const Outcomes outcomes = RunPolicy(requests);
    RecordProperty("zipf_" + std::to_string(exponent),
                   "ours " + std::to_string(outcomes.hit_rate) + ", LRU " + std::to_string(lru) +
                       ", LFU " + std::to_string(lfu) + ", GDSF " + std::to_string(gdsf) +
                       ", static " + std::to_string(fixed));
    EXPECT_GE(outcomes.hit_rate, 0.95 * std::max({lru, lfu, gdsf, fixed}))
        << "Zipf " << exponent << ": LRU " << lru << ", LFU " << lfu << ", GDSF " << gdsf
        << ", static " << fixed;
    // No thrashing: the models that everybody wants stay, and each miss costs one load.
    size_t loads = 0;
    for (const size_t count : outcomes.loads) loads += count;
    EXPECT_EQ(loads, static_cast<size_t>(std::lround((1 - outcomes.hit_rate) * kRequests)));
    for (size_t i = 0; i < kPlaces / 2; ++i) EXPECT_LE(outcomes.loads[i], 1u) << "model " << i;
  }
}

TEST(EvictionPolicySimulation, FollowsALoadThatChanges) {
  std::vector<size_t> requests = ZipfRequests(1.0, kLearning, 5);
  for (const size_t model : ZipfRequests(1.0, kRequests + kLearning, 6)) {
    requests.push_back((model + kModels / 2) % kModels);
  }
  // Hits count from the moment of the change on.
  EXPECT_GE(RunPolicy(requests).hit_rate, 0.85 * StaticHitRate(requests));
  EXPECT_GE(RunPolicy(requests).hit_rate, LfuHitRate(requests));
}

}  // namespace
}  // namespace nereid::engine
