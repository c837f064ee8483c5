// SPDX-License-Identifier: Apache-2.0
// K-1, K-2, K-3 and K-4 of docs/scheduling.md.
#include "schedule/fair_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>

#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

core::CallerRef MakeCaller(std::string id, uint32_t weight = 1) {
  return std::make_shared<core::Caller>(
      core::Caller{.id = std::move(id), .limits = {.weight = weight}});
}

class FairLanesTest : public testing::Test {
 protected:
  void Make(BatchPolicy policy = {}) {
    lanes_.reset();
    policy_ = std::move(policy);
    lanes_ = std::make_unique<FairLanes>(policy_);
  }
  // `id` outlives the request.
  core::RequestPtr Request(const core::CallerRef& caller, std::string_view id = "",
                           uint64_t priority = 0, uint32_t batch_size = 1) {
    core::RequestPtr request = core::MakeFakeRequest(*model_, sink_, {batch_size, 16});
    request->caller = caller;
    request->id = id;
    request->priority = priority;
    return request;
  }
  std::string Order() {
    std::string order;
    for (FairLanes::Walk walk(*lanes_); walk.request() != nullptr; walk.Next()) {
      order += walk.request()->id;
    }
    return order;
  }
  std::string Pop(size_t count) {
    std::string order;
    while (count-- > 0) order += lanes_->PopFront()->id;
    return order;
  }

  core::FakeSink sink_;
  std::unique_ptr<core::Model> model_ = core::MakeFakeModel(64, {16});
  BatchPolicy policy_;
  std::unique_ptr<FairLanes> lanes_;
};

TEST_F(FairLanesTest, AreOneLineWithoutCallers) {
  Make();
  for (const char* id : {"a", "b", "c", "d"}) lanes_->Push(Request(nullptr, id));
  EXPECT_EQ(Order(), "abcd");
  EXPECT_EQ(Pop(4), "abcd");
  EXPECT_TRUE(lanes_->PopFront() == nullptr);
}

TEST_F(FairLanesTest, GiveCallersTurnsWhateverTheyHaveWaiting) {
  Make();
  const auto busy = MakeCaller("busy");
  const auto quiet = MakeCaller("quiet");
  for (const char* id : {"1", "2", "3", "4", "5", "6"}) lanes_->Push(Request(busy, id));
  for (const char* id : {"a", "b"}) lanes_->Push(Request(quiet, id));
  EXPECT_EQ(Order(), "1a2b3456");
  EXPECT_EQ(Pop(8), "1a2b3456");
}

TEST_F(FairLanesTest, KnowSinceWhenTheOldestWaitsOfAllLanesAndLevels) {
  Make({.priority_levels = 3, .default_priority_level = 2});
  EXPECT_EQ(lanes_->OldestNs(), UINT64_MAX);
  const auto push = [&](const core::CallerRef& caller, uint64_t priority, uint64_t since_ns) {
    core::RequestPtr request = Request(caller, "", priority);
    request->times.queue_start_ns = since_ns;
    core::Request& pushed = *request;
    lanes_->Push(std::move(request));
    return &pushed;
  };
  push(nullptr, 1, 50);
  EXPECT_EQ(lanes_->OldestNs(), 50u);
  core::Request* const oldest = push(MakeCaller("a"), 3, 10);
  push(MakeCaller("b"), 3, 20);
  EXPECT_EQ(lanes_->OldestNs(), 10u);
  // One that has lost its turn waits no less.
  lanes_->Delay(*oldest);
  EXPECT_EQ(lanes_->OldestNs(), 10u);
  lanes_->Remove(*oldest);
  EXPECT_EQ(lanes_->OldestNs(), 20u);
}

TEST_F(FairLanesTest, GiveThoseWhoWaitedBeforeTheFirstCallerTheirTurns) {
  for (const uint64_t levels : {0, 2}) {
    Make({.priority_levels = levels, .default_priority_level = levels});
    core::RequestPtr gone = Request(nullptr, "x");
    core::Request& leaves = *gone;
    lanes_->Push(Request(nullptr, "1"));
    lanes_->Push(std::move(gone));
    lanes_->Push(Request(nullptr, "2"));
    lanes_->Push(Request(nullptr, "3"));
    EXPECT_EQ(lanes_->CountAhead(*Request(MakeCaller("new"))), 1u);
    EXPECT_EQ(lanes_->CountAt(levels), 4u);
    const auto first = MakeCaller("first");
    for (const char* id : {"a", "b"}) lanes_->Push(Request(first, id));
    EXPECT_EQ(lanes_->Remove(leaves)->id, "x");
    EXPECT_EQ(Order(), "1a2b3");
    EXPECT_EQ(Pop(5), "1a2b3");
    EXPECT_EQ(lanes_->size(), 0u);
    EXPECT_TRUE(lanes_->PopFront() == nullptr);
  }
}

TEST_F(FairLanesTest, LetACallerThatHadNothingBeNext) {
  Make();
  const auto busy = MakeCaller("busy");
  const auto quiet = MakeCaller("quiet");
  for (int i = 0; i < 100; ++i) lanes_->Push(Request(busy, "b"));
  Pop(50);
  lanes_->Push(Request(quiet, "q"));
  EXPECT_EQ(Pop(1), "q");
}

TEST_F(FairLanesTest, CountItemsAndWeights) {
  Make();
  const auto heavy = MakeCaller("heavy", 3);
  const auto light = MakeCaller("light", 1);
  for (int i = 0; i < 6; ++i) lanes_->Push(Request(heavy, "h"));
  for (int i = 0; i < 2; ++i) lanes_->Push(Request(light, "l"));
  EXPECT_EQ(Pop(8), "hlhhhlhh");
  for (int i = 0; i < 2; ++i) lanes_->Push(Request(heavy, "H", 0, 6));
  for (int i = 0; i < 3; ++i) lanes_->Push(Request(light, "l"));
  EXPECT_EQ(Pop(5), "HllHl");
}

TEST_F(FairLanesTest, KeepPrioritiesInsideEachCaller) {
  Make({.priority_levels = 2, .default_priority_level = 2});
  const auto rude = MakeCaller("rude");
  const auto modest = MakeCaller("modest");
  lanes_->Push(Request(modest, "b", 2));
  lanes_->Push(Request(modest, "a", 1));
  for (int i = 0; i < 3; ++i) lanes_->Push(Request(rude, "!", 1));
  EXPECT_EQ(Order(), "a!b!!");
  EXPECT_EQ(Pop(5), "a!b!!");
}

TEST_F(FairLanesTest, ChargeNobodyForWhatIsRemoved) {
  Make();
  const auto one = MakeCaller("one");
  const auto two = MakeCaller("two");
  std::vector<core::Request*> removed;
  for (int i = 0; i < 10; ++i) {
    core::RequestPtr request = Request(one, "x");
    removed.push_back(request.get());
    lanes_->Push(std::move(request));
  }
  lanes_->Push(Request(one, "a"));
  lanes_->Push(Request(one, "b"));
  for (const char* id : {"1", "2"}) lanes_->Push(Request(two, id));
  for (core::Request* request : removed) lanes_->Remove(*request);
  EXPECT_EQ(Pop(4), "a1b2");
}

TEST_F(FairLanesTest, RememberWhatACallerHasHadWhileOthersWait) {
  Make();
  const auto one = MakeCaller("one");
  const auto two = MakeCaller("two");
  lanes_->Push(Request(one, "1", 0, 8));
  for (int i = 0; i < 12; ++i) lanes_->Push(Request(two, "2"));
  EXPECT_EQ(Pop(2), "12");
  // With nothing waiting, the caller still owes for its eight items.
  lanes_->Push(Request(one, "1"));
  EXPECT_EQ(Pop(9), "222222221");
}

TEST_F(FairLanesTest, SayHowManyRunBefore) {
  Make();
  const auto busy = MakeCaller("busy");
  const auto quiet = MakeCaller("quiet");
  for (int i = 0; i < 100; ++i) lanes_->Push(Request(busy));
  EXPECT_EQ(lanes_->CountAhead(*Request(busy)), 100u);
  EXPECT_EQ(lanes_->CountAhead(*Request(quiet)), 1u);
  lanes_->Push(Request(quiet));
  EXPECT_EQ(lanes_->CountAhead(*Request(quiet)), 3u);
}

TEST_F(FairLanesTest, FindWhoTakesUpMoreThanAnother) {
  Make();
  const auto busy = MakeCaller("busy");
  const auto quiet = MakeCaller("quiet");
  for (const char* id : {"1", "2", "3"}) lanes_->Push(Request(busy, id));
  EXPECT_EQ(lanes_->FindSurplus(*Request(quiet))->id, "3");
  EXPECT_EQ(lanes_->FindSurplus(*Request(busy)), nullptr);
  lanes_->Push(Request(quiet));
  lanes_->Push(Request(quiet));
  EXPECT_EQ(lanes_->FindSurplus(*Request(quiet)), nullptr);
}

TEST_F(FairLanesTest, SayWhoIsBelowItsShare) {
  Make();
  const auto busy = MakeCaller("busy");
  const auto quiet = MakeCaller("quiet");
  for (int i = 0; i < 10; ++i) lanes_->Push(Request(busy));
  // Alone, everything is its share, which the total limits already.
  EXPECT_FALSE(lanes_->IsBelowShare(*Request(busy), 10));
  EXPECT_TRUE(lanes_->IsBelowShare(*Request(quiet), 10));
  for (int i = 0; i < 5; ++i) lanes_->Push(Request(quiet));
  EXPECT_FALSE(lanes_->IsBelowShare(*Request(quiet), 10));
}

// Whatever is pushed, popped and removed: nothing is lost, a walk says what will be popped, each
// caller's requests keep their order, and callers that wait all the time get what their weights
// say.
TEST_F(FairLanesTest, AreFairInEveryRandomHistory) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Make();
    std::mt19937 random(seed);
    const auto draw = [&](size_t below) {
      return std::uniform_int_distribution<size_t>(0, below - 1)(random);
    };
    std::vector<core::CallerRef> callers;
    for (size_t i = 0; i < 2 + draw(6); ++i) {
      callers.push_back(MakeCaller(std::to_string(i), static_cast<uint32_t>(1 + draw(4))));
    }
    std::vector<std::deque<core::Request*>> waiting(callers.size());
    // What each has had per weight since the last time one of them had nothing waiting.
    std::vector<double> had(callers.size());
    double largest = 1;
    for (int step = 0; step < 1500; ++step) {
      const size_t who = draw(callers.size());
      const size_t action = draw(10);
      if (action < 5) {
        const auto items = static_cast<uint32_t>(1 + draw(4));
        core::RequestPtr request = Request(callers[who], "", 0, items);
        waiting[who].push_back(request.get());
        lanes_->Push(std::move(request));
      } else if (action < 6 && !waiting[who].empty()) {
        const auto at = waiting[who].begin() + static_cast<ptrdiff_t>(draw(waiting[who].size()));
        core::Request& request = **at;
        waiting[who].erase(at);
        lanes_->Remove(request);
      } else if (lanes_->size() > 0) {
        core::Request* const expected = FairLanes::Walk(*lanes_).request();
        const core::RequestPtr popped = lanes_->PopFront();
        ASSERT_EQ(popped.get(), expected);
        size_t whose = 0;
        while (callers[whose] != popped->caller) ++whose;
        ASSERT_EQ(waiting[whose].front(), popped.get());
        waiting[whose].pop_front();
        had[whose] += static_cast<double>(popped->batch_count()) / callers[whose]->limits.weight;
      }
      size_t total = 0;
      bool all_wait = true;
      for (const auto& line : waiting) {
        total += line.size();
        all_wait &= !line.empty();
      }
      ASSERT_EQ(lanes_->size(), total);
      if (!all_wait) {
        std::ranges::fill(had, 0);
        largest = 4;
        continue;
      }
      const auto [least, most] = std::ranges::minmax(had);
      // Start-time fairness: no more apart than one largest request of each of the two.
      ASSERT_LE(most - least, 2 * largest) << "seed " << seed << " step " << step;
    }
  }
}

TEST_F(FairLanesTest, WalkInTheOrderInWhichTheyPop) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Make({.priority_levels = 3, .default_priority_level = 2});
    std::mt19937 random(seed);
    const auto draw = [&](size_t below) {
      return std::uniform_int_distribution<size_t>(0, below - 1)(random);
    };
    std::vector<core::CallerRef> callers = {nullptr};
    for (size_t i = 0; i < 5; ++i) {
      callers.push_back(MakeCaller(std::to_string(i), static_cast<uint32_t>(1 + draw(4))));
    }
    for (int i = 0; i < 100; ++i) {
      lanes_->Push(Request(callers[draw(callers.size())], "", 1 + draw(3),
                           static_cast<uint32_t>(1 + draw(4))));
      if (draw(3) == 0) lanes_->PopFront();
    }
    std::vector<core::Request*> walked;
    for (FairLanes::Walk walk(*lanes_); walk.request() != nullptr; walk.Next()) {
      walked.push_back(walk.request());
    }
    ASSERT_EQ(walked.size(), lanes_->size());
    for (core::Request* request : walked) ASSERT_EQ(lanes_->PopFront().get(), request);
  }
}

TEST_F(FairLanesTest, ForgetCallersWhoAreGone) {
  Make();
  std::weak_ptr<const core::Caller> first;
  for (int i = 0; i < 1000; ++i) {
    const auto caller = MakeCaller(std::to_string(i));
    if (i == 0) first = caller;
    lanes_->Push(Request(caller));
    lanes_->PopFront();
  }
  EXPECT_TRUE(first.expired());
}

}  // namespace
}  // namespace nereid::schedule
