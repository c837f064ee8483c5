// SPDX-License-Identifier: Apache-2.0
#include "schedule/instance_roster.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/testing/fakes.h"

namespace nereid::schedule {
namespace {

// Records its calls, and has work bound to the instances that the test names.
class BindingSource final : public WorkSource {
 public:
  bool HasWaiting() const override { return false; }
  BatchDecision Decide(size_t /*instance*/, uint64_t /*now_ns*/) override { return {}; }
  void Take(size_t /*instance*/, const BatchDecision& /*decision*/,
            std::vector<core::RequestPtr>& /*batch*/) override {}
  void AddInstance(size_t instance, uint64_t /*now_ns*/) override {
    calls += "+" + std::to_string(instance);
  }
  void RetireInstance(size_t instance) override { calls += "-" + std::to_string(instance); }
  bool IsReleased(size_t instance) const override { return !bound.contains(instance); }

  std::string calls;
  std::set<size_t> bound;
};

// Counts how often it was told that a backend has no request any more.
class CountingWatcher final : public core::OpenRequests::Watcher {
 public:
  void OnNoneOpen() override { ++told; }
  int told = 0;
};

class InstanceRosterTest : public testing::Test {
 protected:
  PooledInstances Make(size_t count) {
    PooledInstances made;
    for (size_t i = 0; i < count; ++i) {
      made.push_back(std::make_unique<PooledInstance>(
          std::make_unique<core::FakeInstance>("instance", true, nullptr), policy_.NewRecord({}),
          watcher_, [](PooledInstance&) {}));
    }
    return made;
  }
  const core::Instance* At(size_t position) {
    return roster_.instances().at(position)->instance.get();
  }

  const InlinePolicy policy_{std::chrono::nanoseconds(0), 1, std::chrono::nanoseconds(0)};
  BindingSource source_;
  CountingWatcher watcher_;
  base::Mutex mutex_;
  InstanceRoster roster_{source_};
};

TEST_F(InstanceRosterTest, InstancesGetTheLowestNumbersThatAreFree) {
  base::MutexLock lock(mutex_);
  roster_.Admit(mutex_, Make(3));
  roster_.Retire(mutex_, {At(1)});
  ASSERT_NE(roster_.TakeRetired(mutex_), nullptr);
  roster_.Admit(mutex_, Make(2));
  EXPECT_EQ(source_.calls, "+0+1+2-1+1+3");
}

TEST_F(InstanceRosterTest, AnInstanceIsOverWhenItIsLeavingAndNothingIsBoundToIt) {
  base::MutexLock lock(mutex_);
  roster_.Admit(mutex_, Make(1));
  const PooledInstance& instance = *roster_.instances().front();
  EXPECT_FALSE(roster_.IsOver(mutex_, instance));
  EXPECT_FALSE(roster_.has_leaving());
  source_.bound = {0};
  const auto ids = roster_.Retire(mutex_, {At(0)});
  ASSERT_EQ(ids.size(), 1u);
  EXPECT_TRUE(roster_.has_leaving());
  EXPECT_FALSE(roster_.IsOver(mutex_, instance));
  EXPECT_TRUE(roster_.IsGoneOrBound(mutex_, ids[0])) << "nobody waits for a sequence";
  EXPECT_EQ(roster_.TakeRetired(mutex_), nullptr);
  source_.bound = {};
  EXPECT_TRUE(roster_.IsOver(mutex_, instance));
  EXPECT_TRUE(roster_.IsDone(mutex_, instance));
  EXPECT_FALSE(roster_.IsGoneOrBound(mutex_, ids[0]));
}

// I-3
TEST_F(InstanceRosterTest, AnInstanceStaysAsLongAsItsBackendHasRequests) {
  base::MutexLock lock(mutex_);
  roster_.Admit(mutex_, Make(1));
  PooledInstance& instance = *roster_.instances().front();
  instance.open.Add(2);
  instance.state.Under(mutex_).is_busy = true;
  const auto ids = roster_.Retire(mutex_, {At(0)});
  EXPECT_TRUE(roster_.IsOver(mutex_, instance)) << "it takes no more";
  EXPECT_FALSE(roster_.IsDone(mutex_, instance));
  EXPECT_FALSE(roster_.IsGoneOrBound(mutex_, ids[0])) << "the execution may end them";
  instance.open.Remove();
  instance.state.Under(mutex_).is_busy = false;
  EXPECT_TRUE(roster_.IsGoneOrBound(mutex_, ids[0])) << "nobody knows when the backend ends it";
  EXPECT_EQ(roster_.TakeRetired(mutex_), nullptr);
  EXPECT_EQ(watcher_.told, 0);
  instance.open.Remove();
  EXPECT_EQ(watcher_.told, 1);
  EXPECT_TRUE(roster_.IsDone(mutex_, instance));
  EXPECT_FALSE(roster_.IsGoneOrBound(mutex_, ids[0]));
  EXPECT_NE(roster_.TakeRetired(mutex_), nullptr);
}

TEST_F(InstanceRosterTest, AnInstanceThatIsOutStaysOverThoughAnotherHasItsNumber) {
  base::MutexLock lock(mutex_);
  roster_.Admit(mutex_, Make(1));
  roster_.Retire(mutex_, {At(0)});
  const std::unique_ptr<PooledInstance> retired = roster_.TakeRetired(mutex_);
  ASSERT_NE(retired, nullptr);
  roster_.Admit(mutex_, Make(1));
  source_.bound = {0};
  EXPECT_TRUE(roster_.IsOver(mutex_, *retired));
  EXPECT_FALSE(roster_.IsOver(mutex_, *roster_.instances().front()));
}

TEST_F(InstanceRosterTest, AnInstanceIsTakenOutWhenItIsIdleAndForgottenWhenItIsDestroyed) {
  base::MutexLock lock(mutex_);
  roster_.Admit(mutex_, Make(2));
  const core::Instance* const removed = At(1);
  roster_.instances()[1]->state.Under(mutex_).is_busy = true;
  const auto ids = roster_.Retire(mutex_, {removed});
  EXPECT_EQ(roster_.TakeRetired(mutex_), nullptr) << "it is busy";
  roster_.instances()[1]->state.Under(mutex_).is_busy = false;
  std::unique_ptr<PooledInstance> retired = roster_.TakeRetired(mutex_);
  ASSERT_NE(retired, nullptr);
  EXPECT_EQ(retired->instance.get(), removed);
  EXPECT_EQ(roster_.instances().size(), 1u);
  EXPECT_FALSE(roster_.IsGoneOrBound(mutex_, ids[0])) << "it is not destroyed yet";
  EXPECT_TRUE(roster_.has_leaving());
  roster_.Forget(ids[0]);
  EXPECT_TRUE(roster_.IsGoneOrBound(mutex_, ids[0]));
  EXPECT_FALSE(roster_.has_leaving());
}

TEST_F(InstanceRosterTest, OnlyInstancesThatAreThereCanLeave) {
  core::FakeInstance stranger("stranger", true, nullptr);
  base::MutexLock lock(mutex_);
  roster_.Admit(mutex_, Make(1));
  EXPECT_TRUE(roster_.Retire(mutex_, {&stranger}).empty());
  EXPECT_EQ(source_.calls, "+0");
}

}  // namespace
}  // namespace nereid::schedule
