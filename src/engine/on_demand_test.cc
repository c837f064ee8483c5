// SPDX-License-Identifier: Apache-2.0
#include "engine/on_demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <random>
#include <thread>

#include "base/timers.h"
#include "engine/testing/fake_demand_host.h"
#include "engine/testing/fakes.h"

namespace nereid::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Found = base::Result<core::ModelHandle>;

class OnDemandTest : public testing::Test {
 protected:
  // Models of 40 bytes, of which two fit, unless the options say otherwise.
  void Start(OnDemandOptions options = {}) {
    if (options.memory_budget == 0) options.memory_budget = 100;
    if (options.min_stay == OnDemandOptions().min_stay) options.min_stay = milliseconds(0);
    demand_ = std::make_unique<OnDemand>(host_, timers_, std::move(options));
    demand_->Refresh();
  }
  void TearDown() override {
    if (demand_ != nullptr) {
      EXPECT_TRUE(demand_->Stop(InAMinute()));
    }
    demand_.reset();
    EXPECT_THAT(host_.faults(), IsEmpty());
  }

  std::future<Found> Ask(const std::string& name, const std::string& version = "") {
    auto promise = std::make_shared<std::promise<Found>>();
    std::future<Found> future = promise->get_future();
    demand_->Await(name, version, [promise](Found found) { promise->set_value(std::move(found)); });
    return future;
  }
  // Returns "OK", or the error.
  std::string Use(const std::string& name, const std::string& version = "") {
    return Ask(name, version).get().status().ToString();
  }

  FakeDemandHost host_;
  base::Timers timers_;
  std::unique_ptr<OnDemand> demand_;
};

TEST_F(OnDemandTest, KnowsModelsWithoutLoadingThem) {
  host_.Add("a", 40);
  Start();
  EXPECT_TRUE(demand_->IsKnown("a"));
  EXPECT_TRUE(demand_->IsServable("a"));
  EXPECT_FALSE(demand_->IsKnown("b"));
  EXPECT_THAT(host_.Loaded(), IsEmpty());
  host_.Add("b", 40);
  host_.Remove("a");
  demand_->Refresh();
  EXPECT_FALSE(demand_->IsKnown("a"));
  EXPECT_TRUE(demand_->IsKnown("b"));
}

TEST_F(OnDemandTest, LoadsAModelOnceForAllWhoAsk) {
  host_.Add("a", 40);
  host_.Hold("a");
  Start();
  std::vector<std::future<Found>> requests;
  for (int i = 0; i < 64; ++i) requests.push_back(Ask("a"));
  host_.WaitUntilLoading("a");
  for (int i = 0; i < 64; ++i) requests.push_back(Ask("a"));
  EXPECT_EQ(demand_->Counts().waiting, 128u);
  host_.LetGo("a");
  for (auto& request : requests) EXPECT_TRUE(request.get().ok());
  EXPECT_EQ(host_.LoadCount("a"), 1u);
  const OnDemandCounts counts = demand_->Counts();
  EXPECT_EQ(counts.waits, 128u);
  EXPECT_EQ(counts.waiting, 0u);
  EXPECT_EQ(counts.loads, 1u);
  EXPECT_EQ(counts.used, MemoryBytes{40});
}

TEST_F(OnDemandTest, AnswersAtOnceWhenTheModelIsLoaded) {
  host_.Add("a", 40);
  Start();
  EXPECT_EQ(Use("a"), "OK");
  bool was_called = false;
  demand_->Await("a", "", [&was_called](const Found& found) { was_called = found.ok(); });
  EXPECT_TRUE(was_called);
  EXPECT_EQ(Use("a", "2"), "Not found: no such version");
  EXPECT_EQ(host_.LoadCount("a"), 1u);
}

TEST_F(OnDemandTest, FindsAModelThatIsLoadedWhileItIsLookedFor) {
  host_.Add("a", 40);
  Start();
  host_.LoadAfterNextFind("a");
  EXPECT_EQ(Use("a"), "OK");
}

TEST_F(OnDemandTest, DoesNotLoadAModelAgainWhoseRulesNameAVersionThatIsNotReady) {
  host_.Add("a", 40);
  host_.RemoveDefault("a");
  Start();
  // The first request has it loaded.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Use("a"), "Unavailable: the label is not ready");
  EXPECT_EQ(Use("a", "1"), "OK");
  EXPECT_EQ(host_.LoadCount("a"), 1u);
}

TEST_F(OnDemandTest, RefusesAModelThatDoesNotExist) {
  Start();
  EXPECT_EQ(Use("a"), "Not found: Request for unknown model: 'a' is not found");
}

TEST_F(OnDemandTest, UnloadsAModelForAnother) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 40);
  Start();
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(Use("b"), "OK");
  EXPECT_EQ(Use("c"), "OK");
  host_.WaitUntilLoaded(2);
  EXPECT_THAT(host_.Loaded(), Contains("c"));
}

TEST_F(OnDemandTest, MakesRoomFirstForAModelThatItKnows) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 50);
  Start();
  for (const char* name : {"a", "b", "c", "a", "b", "c", "a"}) EXPECT_EQ(Use(name), "OK");
  // Only first loads, whose need nobody knew, exceed the budget.
  EXPECT_LE(host_.peak(), 150u);
  const OnDemandCounts counts = demand_->Counts();
  EXPECT_EQ(counts.loads, counts.memory_evictions + counts.loaded);
}

TEST_F(OnDemandTest, TellsEverybodyWhyALoadFailed) {
  host_.Add("a", 40);
  host_.Hold("a");
  host_.Fail("a", "the file is damaged");
  Start();
  std::vector<std::future<Found>> requests;
  for (int i = 0; i < 8; ++i) requests.push_back(Ask("a"));
  host_.LetGo("a");
  for (auto& request : requests) {
    const base::Status status = request.get().status();
    EXPECT_EQ(status.ToString(), "Unavailable: model 'a' could not be loaded: the file is damaged");
    EXPECT_GT(status.retry_after().count(), 0);
  }
  EXPECT_EQ(host_.LoadCount("a"), 1u);
  EXPECT_FALSE(demand_->IsServable("a"));
}

TEST_F(OnDemandTest, DoesNotRepeatAFailedLoadForEveryRequest) {
  host_.Add("a", 40);
  host_.Fail("a", "the file is damaged");
  Start({.failure_pause = std::chrono::hours(1)});
  EXPECT_THAT(Use("a"), HasSubstr("the file is damaged"));
  EXPECT_THAT(Use("a"), HasSubstr("the file is damaged"));
  EXPECT_EQ(host_.LoadCount("a"), 1u);
  host_.Fail("a", "");
  // An explicit load does not wait.
  EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
  EXPECT_TRUE(demand_->IsServable("a"));
  EXPECT_EQ(Use("a"), "OK");
}

TEST_F(OnDemandTest, GivesUpRequestsThatWaitTooLong) {
  host_.Add("a", 40);
  host_.Hold("a");
  Start({.load_wait = milliseconds(30)});
  const base::Status status = Ask("a").get().status();
  EXPECT_EQ(status.code(), base::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("model 'a' is still being loaded after"));
  EXPECT_GT(status.retry_after().count(), 0);
  host_.LetGo("a");
  // The load goes on, and the next request has its model.
  EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(demand_->Counts().timeouts, 1u);
}

TEST_F(OnDemandTest, WaitsForModelsThatAreInUse) {
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

TEST_F(OnDemandTest, SaysWhichMemoryIsShortWhenModelsStayInUse) {
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

TEST_F(OnDemandTest, NeverUnloadsPinnedModels) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 50);
  Start({.pinned = {"a"}});
  EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
  EXPECT_EQ(Use("b"), "OK");
  EXPECT_EQ(Use("c"), "OK");
  host_.WaitUntilUnloaded("b");
  EXPECT_THAT(host_.Loaded(), ElementsAre("a", "c"));
}

TEST_F(OnDemandTest, RefusesAModelThatCannotFit) {
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

TEST_F(OnDemandTest, UnloadsAModelThatCannotFitAlthoughARequestHasFoundIt) {
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

TEST_F(OnDemandTest, KnowsThePartsOfAnEnsembleThatFailed) {
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

TEST_F(OnDemandTest, KnowsThePartsThatAnEnsembleLeavesBehind) {
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

TEST_F(OnDemandTest, MeasuresAModelAgainThatIsReplaced) {
  host_.Add("a", 40);
  Start();
  EXPECT_EQ(Use("a"), "OK");
  for (const uint64_t bytes : {80u, 10u, 90u}) {
    host_.Add("a", bytes);
    EXPECT_EQ(demand_->Load("a", {}).ToString(), "OK");
    EXPECT_EQ(demand_->Counts().used, MemoryBytes{bytes});
  }
}

TEST_F(OnDemandTest, CountsAModelOnceHoweverOftenItIsReplaced) {
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

TEST_F(OnDemandTest, DoesNotMeasureAModelWhileOneBeforeIsInUse) {
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

TEST_F(OnDemandTest, MeasuresAModelWhoseMemoryIsNotFreeYetSinceItWasUnloaded) {
  host_.Add("a", 40);
  Start();
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(demand_->Unload("a", false).ToString(), "OK");
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(demand_->Counts().used, MemoryBytes{40});
}

TEST_F(OnDemandTest, UnloadsModelsThatNobodyUses) {
  host_.Add("a", 40);
  host_.Add("busy", 40);
  Start({.idle_unload = milliseconds(1)});
  const Found busy = Ask("busy").get();
  EXPECT_EQ(Use("a"), "OK");
  host_.WaitUntilUnloaded("a");
  EXPECT_THAT(host_.Loaded(), ElementsAre("busy"));
}

TEST_F(OnDemandTest, KeepsThePartsOfAnEnsemble) {
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

TEST_F(OnDemandTest, UnloadsAnEnsembleForTheMemoryOfPartsThatWereLoadedBeforeIt) {
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

TEST_F(OnDemandTest, LoadsAgainWhatWasUnloadedExplicitly) {
  host_.Add("a", 40);
  Start();
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(demand_->Unload("a", false).ToString(), "OK");
  EXPECT_EQ(demand_->Counts().used, MemoryBytes{0});
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(host_.LoadCount("a"), 2u);
}

TEST_F(OnDemandTest, KeepsAModelThatWasLoadedWithItsOwnConfiguration) {
  for (const char* name : {"a", "b", "c"}) host_.Add(name, 50);
  Start();
  EXPECT_EQ(demand_->Load("a", {.config = "{}", .files = {}}).ToString(), "OK");
  EXPECT_EQ(Use("b"), "OK");
  EXPECT_EQ(Use("c"), "OK");
  host_.WaitUntilUnloaded("b");
  EXPECT_THAT(host_.Loaded(), ElementsAre("a", "c"));
}

TEST_F(OnDemandTest, KeepsAPinOfAModelThatIsGoneForAWhile) {
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

TEST_F(OnDemandTest, PinsNoOtherCopyOfAModelThatHadItsOwnConfiguration) {
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

TEST_F(OnDemandTest, TriesAFailedLoadAgainAfterAPause) {
  host_.Add("a", 40);
  host_.Fail("a", "the file is damaged");
  Start({.failure_pause = milliseconds(1)});
  EXPECT_THAT(Use("a"), HasSubstr("the file is damaged"));
  host_.Fail("a", "");
  while (Use("a") != "OK") {
  }
  EXPECT_TRUE(demand_->IsServable("a"));
}

TEST_F(OnDemandTest, CarriesOutALoadThatIsAskedForDuringAnother) {
  host_.Add("a", 40);
  host_.Hold("a");
  Start();
  std::future<Found> request = Ask("a");
  host_.WaitUntilLoading("a");
  // The order may bring another configuration than that of the load in progress.
  auto load = std::async(std::launch::async, [this] {
    return demand_->Load("a", {.config = "{}", .files = {}}).ToString();
  });
  while (demand_->Counts().orders == 0) std::this_thread::yield();
  host_.LetGo("a");
  EXPECT_TRUE(request.get().ok());
  EXPECT_EQ(load.get(), "OK");
  EXPECT_EQ(host_.LoadCount("a"), 2u);
}

TEST_F(OnDemandTest, AnswersWhoWaitsWhenTheServerStops) {
  host_.Add("a", 40);
  host_.Hold("a");
  Start();
  std::future<Found> request = Ask("a");
  host_.WaitUntilLoading("a");
  EXPECT_FALSE(demand_->Stop(Passed()));
  EXPECT_EQ(request.get().status().ToString(), "Unavailable: Server exiting");
  EXPECT_EQ(Use("a"), "Unavailable: Server exiting");
  host_.LetGo("a");
}

// Many threads ask for random models, keep them for a moment and let them go.
TEST_F(OnDemandTest, IsSoundUnderRandomRequests) {
  constexpr size_t kModels = 30;
  constexpr uint64_t kLargest = 40;
  for (size_t i = 0; i < kModels; ++i) host_.Add("m" + std::to_string(i), 10 + i);
  host_.Fail("m7", "never loads");
  Start({.memory_budget = 200, .load_wait = seconds(60)});
  std::atomic<size_t> served = 0;
  std::atomic<size_t> failed = 0;
  std::vector<std::thread> clients;
  for (unsigned seed = 0; seed < 8; ++seed) {
    clients.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 100; ++i) {
        const std::string name = "m" + std::to_string(random() % kModels);
        const Found found = Ask(name).get();
        EXPECT_EQ(found.ok(), name != "m7") << found.status().ToString();
        ++(found.ok() ? served : failed);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(served + failed, 800u);
  // Every model is loaded once without anybody knowing what it needs.
  EXPECT_LE(host_.peak(), 200 + kLargest);
  const OnDemandCounts counts = demand_->Counts();
  EXPECT_EQ(counts.waiting, 0u);
  EXPECT_EQ(counts.timeouts, 0u);
  EXPECT_EQ(counts.loads, counts.memory_evictions + counts.loaded);
}

// Models change and are asked for, loaded and unloaded in any order. What is known of the memory is
// what is in use.
TEST_F(OnDemandTest, KnowsTheMemoryInUseUnderRandomOperations) {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) host_.Add(names.emplace_back("m" + std::to_string(i)), 10);
  Start();
  std::mt19937 random(5);
  for (int i = 0; i < 500; ++i) {
    const std::string& name = names[random() % names.size()];
    switch (random() % 3) {
      case 0:
        EXPECT_EQ(Use(name), "OK");
        break;
      case 1:
        EXPECT_TRUE(demand_->Unload(name, random() % 2 == 0).ok());
        break;
      default:
        host_.Add(name, 1 + random() % 30);
        EXPECT_EQ(demand_->Load(name, {}).ToString(), "OK");
    }
  }
  // The last load may still make room.
  const base::TimePoint deadline = InAMinute();
  uint64_t used = 0;
  do {
    for (const std::string& name : names) host_.AwaitTeardown(name);
    used = host_.used();
  } while (demand_->Counts().used != MemoryBytes{used} && Passed() < deadline);
  EXPECT_EQ(demand_->Counts().used, MemoryBytes{used});
  EXPECT_LE(used, 100u);
  EXPECT_GT(used, 0u);
}

// Models and ensembles are asked for, loaded and unloaded in any order, and some fail. Whatever is
// loaded then is known, so that it goes when nobody uses it.
TEST_F(OnDemandTest, ForgetsNoModelUnderRandomOperations) {
  const std::vector<std::string> names = {"e", "f", "a", "b", "c", "d"};
  for (const std::string& name : names) host_.Add(name, 10);
  host_.SetParts("e", {"a", "b"});
  host_.SetParts("f", {"b", "c"});
  Start({.memory_budget = 60, .idle_unload = milliseconds(200), .failure_pause = milliseconds(0)});
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const std::string& name = names[random() % names.size()];
    host_.Fail(names[2 + random() % 4], random() % 4 == 0 ? "the file is damaged" : "");
    switch (random() % 4) {
      case 0:
        Use(name);
        break;
      case 1:
        static_cast<void>(demand_->Load(name, {}));
        break;
      default:
        EXPECT_TRUE(demand_->Unload(name, random() % 2 == 0).ok());
    }
  }
  host_.WaitUntilLoaded(0);
}

}  // namespace
}  // namespace nereid::engine
