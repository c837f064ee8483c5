// SPDX-License-Identifier: Apache-2.0
#include "engine/on_demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/testing/on_demand_fixture.h"

namespace nereid::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

class OnDemandTest : public OnDemandFixture {};

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

TEST_F(OnDemandTest, LoadsAgainWhatWasUnloadedExplicitly) {
  host_.Add("a", 40);
  Start();
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(demand_->Unload("a", false).ToString(), "OK");
  EXPECT_EQ(demand_->Counts().used, MemoryBytes{0});
  EXPECT_EQ(Use("a"), "OK");
  EXPECT_EQ(host_.LoadCount("a"), 2u);
}

// What an unload ends is not a failure of the model.
TEST_F(OnDemandTest, ServesAModelAgainWhoseLoadWasEndedByAnUnload) {
  host_.Add("a", 40);
  host_.Add("part", 40);
  host_.SetParts("a", {"part"});
  Start({.failure_pause = std::chrono::hours(1)});
  for (const char* unloaded : {"a", "part"}) {
    host_.Hold("a");
    std::future<Found> request = Ask("a");
    host_.WaitUntilLoading("a");
    // The unload is over before anybody hears what came of the load.
    std::promise<void> is_unloaded;
    host_.SetMeasureHook([over = is_unloaded.get_future().share()] { over.wait(); });
    EXPECT_EQ(demand_->Unload(unloaded, false).ToString(), "OK");
    is_unloaded.set_value();
    const base::Status status = request.get().status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("the load was given up"));
    EXPECT_GT(status.retry_after().count(), 0);
    EXPECT_TRUE(demand_->IsServable("a"));
    host_.LetGo("a");
    EXPECT_EQ(Use("a"), "OK");
    EXPECT_EQ(demand_->Unload("a", true).ToString(), "OK");
  }
}

TEST_F(OnDemandTest, RemembersAFailureAlthoughAnotherModelIsUnloadedDuringTheLoad) {
  host_.Add("a", 40);
  host_.Add("b", 40);
  host_.Hold("a");
  host_.Fail("a", "the file is damaged");
  Start({.failure_pause = std::chrono::hours(1)});
  std::future<Found> request = Ask("a");
  host_.WaitUntilLoading("a");
  EXPECT_EQ(demand_->Unload("b", false).ToString(), "OK");
  host_.LetGo("a");
  EXPECT_FALSE(request.get().ok());
  EXPECT_FALSE(demand_->IsServable("a"));
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
  constexpr uint64_t kMaxSize = 40;
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
  EXPECT_LE(host_.peak(), 200 + kMaxSize);
  const OnDemandCounts counts = demand_->Counts();
  EXPECT_EQ(counts.waiting, 0u);
  EXPECT_EQ(counts.timeouts, 0u);
  EXPECT_EQ(counts.loads, counts.memory_evictions + counts.loaded);
}

}  // namespace
}  // namespace nereid::engine
