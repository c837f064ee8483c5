// SPDX-License-Identifier: Apache-2.0
// The eviction policy against fixed policies, under requests for 1,000 models with room for 20.
#include "engine/eviction_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace nereid::engine {
namespace {

using std::chrono::milliseconds;
using Outcome = RoomPlan::Outcome;

base::TimePoint At(double time) {
  return base::TimePoint() + std::chrono::hours(1) +
         std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(time));
}

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
