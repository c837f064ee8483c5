// SPDX-License-Identifier: Apache-2.0
// Tests many random operations on many models, with fixed seeds: sequentially against a model of
// the specification, and from several threads at once against invariants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "engine/testing/model_control_fixture.h"

namespace nereid::engine {
namespace {

FakeModel Plain(const std::string& name) { return {PlainConfig(name)}; }
FakeModel Ensemble(const std::string& name, const std::vector<std::string>& steps) {
  return {EnsembleConfig(name, steps)};
}

using Random = std::mt19937;

size_t Draw(Random& random, size_t below) { return random() % below; }
const std::string& DrawOne(Random& random, const std::vector<std::string>& names) {
  return names[Draw(random, names.size())];
}

// --- Sequential operations ---

// The documented behaviour of loading and unloading. Loading a model by name also loads the
// ensembles that contain it. Loading an ensemble loads its parts. An ensemble is unloaded with any
// of its parts and loaded again with the last of them. Unloading it with its parts also unloads
// those that no other model uses and that were not loaded by name.
class Specification {
 public:
  Specification(std::map<std::string, std::set<std::string>> parts) : parts_(std::move(parts)) {}

  void Load(const std::string& name) {
    Know(name);
    asked_for_.insert(name);
  }
  void Unload(const std::string& name, bool with_parts) {
    if (!known_.contains(name)) return;
    Forget(name);
    if (!with_parts) return;
    // A part is removed when no remaining model contains it.
    std::vector<std::string> gone = {name};
    while (!gone.empty()) {
      const std::set<std::string> parts = parts_.at(gone.back());
      gone.pop_back();
      for (const std::string& part : parts) {
        if (!known_.contains(part) || asked_for_.contains(part) || IsUsed(part)) continue;
        Forget(part);
        gone.push_back(part);
      }
    }
  }
  // Whether a model is served: it and all models below it are known.
  bool IsReady(const std::string& name) const {
    return known_.contains(name) &&
           std::ranges::all_of(parts_.at(name), [&](const auto& part) { return IsReady(part); });
  }

 private:
  void Know(const std::string& name) {
    known_.insert(name);
    for (const std::string& part : parts_.at(name)) Know(part);
  }
  void Forget(const std::string& name) {
    known_.erase(name);
    asked_for_.erase(name);
  }
  bool IsUsed(const std::string& part) const {
    return std::ranges::any_of(
        known_, [&](const std::string& name) { return parts_.at(name).contains(part); });
  }

  const std::map<std::string, std::set<std::string>> parts_;
  std::set<std::string> known_;
  std::set<std::string> asked_for_;
};

class ManyOperations : public ModelControlFixture, public testing::WithParamInterface<unsigned> {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "c", "d"}) repositories_.Put(Plain(name));
    repositories_.Put(Ensemble("ab", {"a", "b"}));
    repositories_.Put(Ensemble("bc", {"b", "c"}));
    repositories_.Put(Ensemble("abc", {"ab", "c"}));
    repositories_.Put(Ensemble("all", {"abc", "bc", "d"}));
  }

  const std::vector<std::string> names_ = {"a", "b", "c", "d", "ab", "bc", "abc", "all"};
};

TEST_P(ManyOperations, OneAfterTheOtherLeadToWhatTheSpecificationSays) {
  Specification specification({{"a", {}},
                               {"b", {}},
                               {"c", {}},
                               {"d", {}},
                               {"ab", {"a", "b"}},
                               {"bc", {"b", "c"}},
                               {"abc", {"ab", "c"}},
                               {"all", {"abc", "bc", "d"}}});
  Random random(GetParam());
  std::string history;
  for (int i = 0; i < 150; ++i) {
    const std::string& name = DrawOne(random, names_);
    switch (Draw(random, 5)) {
      case 0:
      case 1:
        history += " load " + name;
        ASSERT_EQ(Load(name), "OK") << history;
        specification.Load(name);
        break;
      case 2:
        // Changed files do not change what is served.
        history += " touch " + name;
        repositories_.Touch(name);
        break;
      default:
        const bool with_parts = Draw(random, 2) == 0;
        history += (with_parts ? " unload with parts " : " unload ") + name;
        ASSERT_EQ(Unload(name, with_parts), "OK") << history;
        specification.Unload(name, with_parts);
    }
    for (const std::string& some : names_) {
      ASSERT_EQ(IsReady(some), specification.IsReady(some)) << some << " after" << history;
    }
  }
}

// --- Concurrent operations ---

// Whether an operation may return this result while other threads operate on the same models.
bool IsLegal(const std::string& answer) {
  if (answer == "OK") return true;
  for (const char* part : {"the load was given up", "broken", "not available or ambiguous",
                           "has no loaded version", "is not valid", "no version is available"}) {
    if (answer.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST_P(ManyOperations, SideBySideKeepTheirPromises) {
  repositories_.Put(Plain("a").Watched());
  std::atomic<bool> is_over = false;
  std::atomic<size_t> wrong = 0;
  const auto operate = [&](unsigned seed, const std::string& own) {
    Random random(seed);
    for (int i = 0; i < 60; ++i) {
      const std::string& name = DrawOne(random, names_);
      std::string answer = "OK";
      switch (Draw(random, 6)) {
        case 0:
        case 1:
          answer = Load(name);
          break;
        case 2:
          answer = Unload(name, Draw(random, 2) == 0);
          break;
        case 3:
          repositories_.Touch(name);
          break;
        case 4:
          factory_.Fail(name + ":1", "broken", 1);
          break;
        default:
          // Only this thread operates on this model, so its operations succeed.
          wrong += Load(own) != "OK" || !IsReady(own);
          wrong += Unload(own) != "OK" || IsReady(own);
      }
      EXPECT_TRUE(IsLegal(answer)) << answer;
    }
  };
  const auto request = [&](unsigned seed) {
    Random random(seed);
    while (!is_over.load()) {
      const core::ModelHandle model = Pin(DrawOne(random, names_));
      if (!model) continue;
      const config::Ensembling* const ensemble = model->config().ensemble_scheduling();
      if (ensemble == nullptr) continue;
      // A request that has begun finds the models of all its steps.
      for (const auto& step : ensemble->step) {
        if (!life_cycle_->FindForStep(step.model_name, step.model_version).ok()) ++wrong;
      }
      static_cast<void>(Index());
    }
  };
  for (const char* own : {"own0", "own1", "own2", "own3"}) repositories_.Put(Plain(own));
  {
    std::vector<std::future<void>> operators;
    std::vector<std::future<void>> clients;
    for (unsigned i = 0; i < 2; ++i) {
      clients.push_back(std::async(std::launch::async, request, 100 * GetParam() + 50 + i));
    }
    for (unsigned i = 0; i < 4; ++i) {
      operators.push_back(
          std::async(std::launch::async, operate, 100 * GetParam() + i, "own" + std::to_string(i)));
    }
    for (auto& one : operators) one.get();
    is_over.store(true);
  }
  EXPECT_EQ(wrong, 0u);

  // Afterwards the models can be brought to any state.
  for (const std::string& name : names_) factory_.Mend(name + ":1");
  EXPECT_EQ(Load("all"), "OK");
  for (const std::string& name : names_) EXPECT_TRUE(IsReady(name)) << name;
  for (const std::string& name : names_) EXPECT_EQ(Unload(name), "OK");
  End();
  // The files were told of each load's result, and of the unload of each served model.
  const size_t loaded = events_.Count("loaded a");
  EXPECT_EQ(events_.Count("unloading a"), loaded);
  EXPECT_EQ(events_.Count("gone a"), loaded + events_.Count("failed a"));
}

INSTANTIATE_TEST_SUITE_P(WithSeeds, ManyOperations, testing::Range(1u, 9u));

}  // namespace
}  // namespace nereid::engine
