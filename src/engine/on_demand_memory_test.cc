// SPDX-License-Identifier: Apache-2.0
// Which models OnDemand unloads, and what it knows of their memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <random>
#include <string>
#include <vector>

#include "engine/testing/on_demand_fixture.h"

namespace nereid::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OnDemandMemoryTest : public OnDemandFixture {};

TEST_F(OnDemandMemoryTest, UnloadsAModelForAnother) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 40);
  Start();
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(Use("b"), "OK");
  EXPECT_EQ(Use("c"), "OK");
  host_.WaitUntilLoaded(2);
  EXPECT_THAT(host_.Loaded(), Contains("c"));
}

TEST_F(OnDemandMemoryTest, MakesRoomFirstForAModelThatItKnows) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 50);
  Start();
  for (const char* name : {"a", "b", "c", "a", "b", "c", "a"}) EXPECT_EQ(Use(name), "OK");
  // Only first loads, whose need nobody knew, exceed the budget.
  EXPECT_LE(host_.peak(), 150u);
  const OnDemandCounts counts = demand_->Counts();
  EXPECT_EQ(counts.loads, counts.memory_evictions + counts.loaded);
}

TEST_F(OnDemandMemoryTest, WaitsForModelsThatAreInUse) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 50);
  Start({.load_wait = seconds(60)});
  EXPECT_EQ(Use("c"), "OK");
  Found a = Ask("a").get();
  Found b = Ask("b").get();
  host_.WaitUntilUnloaded("c");
  ASSERT_TRUE(a.ok() && b.ok());
  std::future<Found> c = Ask("c");
  // A request for a model that is loaded does not wait behind it.
  EXPECT_EQ(Use("a"), "OK");
  b->Reset();
  EXPECT_TRUE(c.get().ok());
  EXPECT_THAT(host_.Loaded(), ElementsAre("a", "c"));
}

TEST_F(OnDemandMemoryTest, SaysWhichMemoryIsShortWhenModelsStayInUse) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 50);
  Start({.load_wait = milliseconds(50)});
  EXPECT_EQ(Use("c"), "OK");
  const Found a = Ask("a").get();
  const Found b = Ask("b").get();
  host_.WaitUntilUnloaded("c");
  const base::Status status = Ask("c").get().status();
  EXPECT_EQ(status.code(), base::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("take the CPU memory that it needs"));
  EXPECT_GT(status.retry_after().count(), 0);
}

TEST_F(OnDemandMemoryTest, NeverUnloadsPinnedModels) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 50);
  Start({.pinned = {"a"}});
  EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
  EXPECT_EQ(Use("b"), "OK");
  EXPECT_EQ(Use("c"), "OK");
  host_.WaitUntilUnloaded("b");
  EXPECT_THAT(host_.Loaded(), ElementsAre("a", "c"));
}

TEST_F(OnDemandMemoryTest, RefusesAModelThatCannotFit) {
  host_.Add("large", 101);
  host_.Add("small", 10);
  Start();
  EXPECT_EQ(Use("small"), "OK");
  const base::Status status = Ask("large").get().status();
  EXPECT_EQ(status.code(), base::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("model 'large' needs 101 bytes of CPU memory, more than"));
  host_.WaitUntilUnloaded("large");
  // Now that it is known, it is not tried again, and nothing else has to go for it.
  EXPECT_THAT(Use("large"), HasSubstr("needs 101 bytes"));
  EXPECT_EQ(host_.LoadCount("large"), 1u);
  EXPECT_THAT(host_.Loaded(), ElementsAre("small"));
  EXPECT_EQ(demand_->Counts().refusals, 2u);
}

TEST_F(OnDemandMemoryTest, UnloadsAModelThatCannotFitAlthoughARequestHasFoundIt) {
  host_.Add("large", 101);
  Start();
  Found early = base::NotFoundError("not yet");
  host_.SetMeasureHook([&] {
    if (Found found = host_.Find("large", ""); found.ok()) early = std::move(found);
  });
  EXPECT_THAT(Use("large"), HasSubstr("needs 101 bytes"));
  EXPECT_TRUE(early.ok());
  EXPECT_THAT(host_.Loaded(), IsEmpty());
  EXPECT_EQ(demand_->Counts().loaded, 0u);
  EXPECT_THAT(Use("large"), HasSubstr("needs 101 bytes"));
  EXPECT_EQ(host_.LoadCount("large"), 1u);
}

TEST_F(OnDemandMemoryTest, KnowsThePartsOfAnEnsembleThatFailed) {
  for (const char* name : {"a", "b", "ensemble"}) host_.Add(name, 40);
  host_.SetParts("ensemble", {"a", "b"});
  host_.Fail("b", "the file is damaged");
  Start();
  EXPECT_THAT(Use("ensemble"), HasSubstr("the file is damaged"));
  EXPECT_THAT(host_.Loaded(), ElementsAre("a"));
  const OnDemandCounts counts = demand_->Counts();
  EXPECT_EQ(counts.loaded, 1u);
  EXPECT_EQ(counts.used, MemoryBytes{40});
}

TEST_F(OnDemandMemoryTest, KnowsThePartsThatAnEnsembleLeavesBehind) {
  for (const char* name : {"a", "b", "ensemble"}) host_.Add(name, 20);
  host_.Add("large", 90);
  host_.SetParts("ensemble", {"a", "b"});
  Start();
  EXPECT_EQ(Use("ensemble"), "OK");
  EXPECT_EQ(demand_->Unload("ensemble", false).ToString(), "OK");
  EXPECT_THAT(host_.Loaded(), ElementsAre("a", "b"));
  // The memory of both is known to be taken: they go for another model.
  EXPECT_EQ(Use("large"), "OK");
  host_.WaitUntilLoaded(1);
  EXPECT_THAT(host_.Loaded(), ElementsAre("large"));
}

TEST_F(OnDemandMemoryTest, MeasuresAModelAgainThatIsReplaced) {
  host_.Add("a", 40);
  Start();
  EXPECT_EQ(Use("a"), "OK");
  for (const uint64_t bytes : {80u, 10u, 90u}) {
    host_.Add("a", bytes);
    EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
    EXPECT_EQ(demand_->Counts().used, MemoryBytes{bytes});
  }
}

TEST_F(OnDemandMemoryTest, CountsAModelOnceHoweverOftenItIsReplaced) {
  host_.Add("a", 40);
  Start();
  EXPECT_EQ(Use("a"), "OK");
  // The memory of the version before is free later than the next one is loaded.
  for (int i = 0; i < 5; ++i) {
    host_.Add("a", 40);
    EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
    EXPECT_EQ(demand_->Counts().used, MemoryBytes{40});
  }
}

TEST_F(OnDemandMemoryTest, DoesNotMeasureAModelWhileOneBeforeIsInUse) {
  host_.Add("a", 40);
  Start();
  Found request = Ask("a").get();
  // Now both versions are in memory, and one of them will go: nobody can tell what this one takes.
  host_.Add("a", 50);
  EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
  EXPECT_EQ(demand_->Counts().used, MemoryBytes{40});
  ASSERT_TRUE(request.ok());
  request->Reset();
  EXPECT_EQ(demand_->Unload("a", false).ToString(), "OK");
  EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
  EXPECT_EQ(demand_->Counts().used, MemoryBytes{50});
}

TEST_F(OnDemandMemoryTest, MeasuresAModelWhoseMemoryIsNotFreeYetSinceItWasUnloaded) {
  host_.Add("a", 40);
  Start();
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(demand_->Unload("a", false).ToString(), "OK");
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(demand_->Counts().used, MemoryBytes{40});
}

TEST_F(OnDemandMemoryTest, UnloadsModelsThatNobodyUses) {
  host_.Add("a", 40);
  host_.Add("busy", 40);
  Start({.idle_unload = milliseconds(1)});
  const Found busy = Ask("busy").get();
  EXPECT_EQ(Use("a"), "OK");
  host_.WaitUntilUnloaded("a");
  EXPECT_THAT(host_.Loaded(), ElementsAre("busy"));
}

TEST_F(OnDemandMemoryTest, KeepsThePartsOfAnEnsemble) {
  for (const char* name : {"part", "ensemble", "other"}) host_.Add(name, 40);
  host_.SetParts("ensemble", {"part"});
  Start();
  EXPECT_EQ(Use("part"), "OK");
  EXPECT_EQ(Use("ensemble"), "OK");
  EXPECT_EQ(Use("other"), "OK");
  // The part is the oldest, but what is unloaded is the ensemble.
  host_.WaitUntilUnloaded("ensemble");
  EXPECT_THAT(host_.Loaded(), ElementsAre("other", "part"));
}

TEST_F(OnDemandMemoryTest, UnloadsAnEnsembleForTheMemoryOfPartsThatWereLoadedBeforeIt) {
  for (const char* name : {"a", "b", "other"}) host_.Add(name, 40);
  host_.Add("ensemble", 0);
  host_.SetParts("ensemble", {"a", "b"});
  Start();
  // So that it is known what it needs, and room is made before.
  EXPECT_EQ(Use("other"), "OK");
  EXPECT_EQ(demand_->Unload("other", false).ToString(), "OK");
  for (const char* name : {"a", "b", "ensemble"}) EXPECT_EQ(Use(name), "OK");
  EXPECT_EQ(Use("other"), "OK");
  EXPECT_THAT(host_.Loaded(), AnyOf(ElementsAre("a", "other"), ElementsAre("b", "other")));
}

TEST_F(OnDemandMemoryTest, KeepsAModelThatWasLoadedWithItsOwnConfiguration) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 50);
  Start();
  EXPECT_EQ(demand_->Load("a", {.config = "{}", .files = {}}).ToString(), "OK");
  EXPECT_EQ(Use("b"), "OK");
  EXPECT_EQ(Use("c"), "OK");
  host_.WaitUntilUnloaded("b");
  EXPECT_THAT(host_.Loaded(), ElementsAre("a", "c"));
}

TEST_F(OnDemandMemoryTest, KeepsAModelWhoseOwnConfigurationALoadWithoutOneLeavesAsItIs) {
  for (const char* name : {"a", "b"}) host_.Add(name, 50);
  Start({.idle_unload = milliseconds(1)});
  EXPECT_EQ(demand_->Load("a", {.config = "{}", .files = {}}).ToString(), "OK");
  EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
  EXPECT_EQ(Use("b"), "OK");
  // What goes, goes in the order of the names.
  host_.WaitUntilUnloaded("b");
  EXPECT_THAT(host_.Loaded(), ElementsAre("a"));
}

TEST_F(OnDemandMemoryTest, LetsAModelGoThatHasTheFilesOfTheRepositoryAgain) {
  host_.Add("a", 50);
  Start({.idle_unload = milliseconds(1)});
  EXPECT_EQ(demand_->Load("a", {.config = "{}", .files = {}}).ToString(), "OK");
  // Newer files, which take the place of the configuration.
  host_.Add("a", 50);
  EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
  host_.WaitUntilUnloaded("a");
}

TEST_F(OnDemandMemoryTest, KeepsAPinOfAModelThatIsGoneForAWhile) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 50);
  host_.Fail("a", "the file is damaged");
  Start({.pinned = {"a"}});
  EXPECT_FALSE(demand_->Load("a", {}).ok());
  host_.Remove("a");
  demand_->Refresh();
  host_.Add("a", 50);
  host_.Fail("a", "");
  demand_->Refresh();
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(Use("b"), "OK");
  EXPECT_EQ(Use("c"), "OK");
  host_.WaitUntilUnloaded("b");
  EXPECT_THAT(host_.Loaded(), ElementsAre("a", "c"));
}

TEST_F(OnDemandMemoryTest, PinsNoOtherCopyOfAModelThatHadItsOwnConfiguration) {
  for (const char* name : {"a", "b"}) host_.Add(name, 50);
  Start({.idle_unload = milliseconds(1)});
  EXPECT_EQ(demand_->Load("a", {.config = "{}", .files = {}}).ToString(), "OK");
  // The thread of models on demand may be the first to see that it is gone.
  EXPECT_TRUE(host_.Unload("a", false).ok());
  EXPECT_EQ(Use("b"), "OK");
  EXPECT_EQ(demand_->Unload("a", false).ToString(), "OK");
  EXPECT_EQ(Use("a"), "OK");
  host_.WaitUntilUnloaded("a");
}

// Models change and are asked for, loaded and unloaded in any order. What is known of the memory is
// what is in use.
TEST_F(OnDemandMemoryTest, KnowsTheMemoryInUseUnderRandomOperations) {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) host_.Add(names.emplace_back("m" + std::to_string(i)), 10);
  Start();
  // The last load may still make room.
  const auto is_known = [&] {
    for (const base::TimePoint deadline = InAMinute(); Passed() < deadline;) {
      for (const std::string& name : names) host_.AwaitTeardown(name);
      const uint64_t used = host_.used();
      if (used <= 100 && demand_->Counts().used == MemoryBytes{used}) return true;
    }
    return false;
  };
  std::mt19937 random(5);
  for (int i = 0; i < 500; ++i) {
    const std::string& name = names[random() % names.size()];
    switch (random() % 4) {
      case 0:
        EXPECT_TRUE(demand_->Unload(name, random() % 2 == 0).ok());
        break;
      case 1:
        host_.Add(name, 1 + random() % 30);
        EXPECT_EQ(demand_->Load(name, {}).ToString(), "OK");
        break;
      default:
        EXPECT_EQ(Use(name), "OK");
    }
    ASSERT_TRUE(is_known()) << i;
  }
}

// Models and ensembles are asked for, loaded and unloaded in any order, and some fail. Whatever is
// loaded then is known, for itself or with an ensemble.
TEST_F(OnDemandMemoryTest, ForgetsNoModelUnderRandomOperations) {
  const std::vector<std::string> names = {"e", "f", "a", "b", "c", "d"};
  for (const std::string& name : names) host_.Add(name, 10);
  host_.Add("probe", 10);
  host_.SetParts("e", {"a", "b"});
  host_.SetParts("f", {"b", "c"});
  Start({.memory_budget = 1000, .failure_pause = milliseconds(0)});
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const std::string& name = names[random() % names.size()];
    host_.Fail(names[2 + random() % 4], random() % 2 == 0 ? "the file is damaged" : "");
    switch (random() % 4) {
      case 0:
        EXPECT_TRUE(demand_->Unload(name, random() % 2 == 0).ok());
        break;
      case 1:
        static_cast<void>(demand_->Load(name, {}));
        break;
      default:
        Use(name);
    }
    // Has what is loaded read again.
    EXPECT_EQ(demand_->Load("probe", {}).ToString(), "OK");
    ASSERT_GE(demand_->Counts().loaded, host_.LoadedForThemselves()) << i;
  }
}

}  // namespace
}  // namespace nereid::engine
