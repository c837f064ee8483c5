// SPDX-License-Identifier: Apache-2.0
#include "python_backend/keeper.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <optional>
#include <thread>
#include <vector>

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;
using std::chrono::milliseconds;
using std::chrono::seconds;

// An event that takes longer than this will not happen.
constexpr seconds kForever{60};

class World;

// A body whose start ends when the test says how, or when it dies.
class FakeBody {
 public:
  explicit FakeBody(World& world) : world_(world) {}
  Error Initialize();
  void Kill(const std::string& why);
  void Bury();
  bool is_alive() const;
  std::string DeathMessage() const;
  bool has_served() const { return has_served_.load(); }
  void NoteServed() { has_served_.store(true); }

 private:
  friend class World;
  World& world_;
  std::optional<std::string> death_;
  bool is_buried_ = false;
  std::atomic<bool> has_served_{false};
};

// The state that the bodies and the test share, under one lock.
class World {
 public:
  explicit World(milliseconds pause)
      : keeper_({.name = "m_0",
                 .patience = milliseconds(2),
                 .shortest_pause = pause,
                 .longest_pause = pause},
                [this] { return Make(); }) {}

  Keeper<FakeBody>& keeper() { return keeper_; }

  // Decides how the next start ends, whether it waits already or not.
  void Decide(bool succeeds) {
    const backend::MutexLock lock(mutex_);
    verdicts_.push_back(succeeds);
    changed_.NotifyAll();
  }
  // Ends the process of the newest body, as kill -9 does.
  void KillNewest() {
    std::shared_ptr<FakeBody> body;
    {
      const backend::MutexLock lock(mutex_);
      if (bodies_.empty()) return;
      body = bodies_.back();
    }
    body->Kill("it was killed by signal 9");
  }
  template <typename Condition>
  bool Await(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kForever;
    const backend::MutexLock lock(mutex_);
    while (!condition()) {
      if (!changed_.WaitUntil(mutex_, end)) return condition();
    }
    return true;
  }
  size_t made() const { return bodies_.size(); }
  size_t starting() const { return starting_; }
  size_t failed() const { return failed_; }

  void ExpectNothingLeft(const std::shared_ptr<FakeBody>& handed_over) {
    const backend::MutexLock lock(mutex_);
    for (const auto& body : bodies_) {
      if (body == handed_over) continue;
      EXPECT_TRUE(body->death_.has_value()) << "a body lives on that nobody has";
      EXPECT_TRUE(body->is_buried_) << "nobody waited for the end of a body";
    }
  }

 private:
  friend class FakeBody;

  Result<std::shared_ptr<FakeBody>> Make() {
    const backend::MutexLock lock(mutex_);
    bodies_.push_back(std::make_shared<FakeBody>(*this));
    changed_.NotifyAll();
    return bodies_.back();
  }

  mutable backend::Mutex mutex_;
  backend::CondVar changed_;
  std::deque<bool> verdicts_;
  std::vector<std::shared_ptr<FakeBody>> bodies_;
  size_t starting_ = 0;
  size_t failed_ = 0;  // starts that failed, in total
  Keeper<FakeBody> keeper_;
};

Error FakeBody::Initialize() {
  const backend::MutexLock lock(world_.mutex_);
  ++world_.starting_;
  world_.changed_.NotifyAll();
  while (!death_ && world_.verdicts_.empty()) world_.changed_.Wait(world_.mutex_);
  --world_.starting_;
  world_.changed_.NotifyAll();
  if (!death_ && world_.verdicts_.front()) {
    world_.verdicts_.pop_front();
    return {};
  }
  if (!death_) world_.verdicts_.pop_front();
  ++world_.failed_;
  return Error::Internal(death_ ? *death_ : "RuntimeError: cannot start");
}

void FakeBody::Kill(const std::string& why) {
  {
    const backend::MutexLock lock(world_.mutex_);
    if (death_) return;
    death_ = why;
    world_.changed_.NotifyAll();
  }
  world_.keeper_.NoticeDeath();
}

void FakeBody::Bury() {
  const backend::MutexLock lock(world_.mutex_);
  EXPECT_TRUE(death_.has_value()) << "to wait for the end of what lives takes for ever";
  is_buried_ = true;
}

bool FakeBody::is_alive() const {
  const backend::MutexLock lock(world_.mutex_);
  return !death_.has_value();
}

std::string FakeBody::DeathMessage() const {
  const backend::MutexLock lock(world_.mutex_);
  return death_.value_or("it lives");
}

// The state in which a pair of events happens.
enum class Scene { kExecutes, kStarts, kRests };
enum class Event { kDies, kStartEnds, kStartFails, kHangs, kExecute, kStop };
constexpr std::array kScenes = {Scene::kExecutes, Scene::kStarts, Scene::kRests};
constexpr std::array kEvents = {Event::kDies,  Event::kStartEnds, Event::kStartFails,
                                Event::kHangs, Event::kExecute,   Event::kStop};

const char* Name(Event event) {
  constexpr std::array kNames = {"the worker dies", "its start ends",  "its start fails",
                                 "its start hangs", "a request comes", "the model is unloaded"};
  return kNames[static_cast<size_t>(event)];
}

class Act {
 public:
  explicit Act(Scene scene)
      : world_(scene == Scene::kRests ? milliseconds(3600'000) : milliseconds(1)) {
    world_.Decide(true);
    EXPECT_TRUE(world_.keeper().Start().ok());
    if (scene == Scene::kExecutes) return;
    world_.KillNewest();
    EXPECT_TRUE(world_.Await([this] { return world_.starting() == 1; }));
    if (scene == Scene::kStarts) return;
    world_.Decide(false);
    EXPECT_TRUE(world_.Await([this] { return world_.failed() == 1; }));
  }

  void Fire(Event event) {
    switch (event) {
      case Event::kDies:
        return world_.KillNewest();
      case Event::kStartEnds:
        return world_.Decide(true);
      case Event::kStartFails:
        return world_.Decide(false);
      case Event::kHangs:
        return;  // the start was not decided
      case Event::kExecute: {
        auto body = world_.keeper().Acquire();
        if (!body.ok()) {
          EXPECT_STRNE(body.TakeError().message(), "");
        }
        return;
      }
      case Event::kStop: {
        const backend::MutexLock lock(mutex_);
        handed_over_.push_back(
            std::async(std::launch::async, [this] { return world_.keeper().Stop(); }));
        return;
      }
    }
  }

  // Waits for the end that must follow in every case; returns false if it does not come.
  bool End() {
    Fire(Event::kStop);
    std::shared_ptr<FakeBody> body;
    for (auto& stop : handed_over_) {
      if (stop.wait_for(kForever) != std::future_status::ready) return false;
      const std::shared_ptr<FakeBody> got = stop.get();
      EXPECT_TRUE(got == nullptr || body == nullptr) << "one body was handed over twice";
      if (got != nullptr) body = got;
    }
    world_.ExpectNothingLeft(body);
    return true;
  }

  // A stopped keeper starts no body again.
  void ExpectStopped() {
    const size_t made = world_.made();
    for (const Event event : {Event::kStartEnds, Event::kDies, Event::kStartFails}) Fire(event);
    EXPECT_EQ(world_.keeper().Ready(), nullptr);
    auto body = world_.keeper().Acquire();
    ASSERT_FALSE(body.ok());
    EXPECT_EQ(body.TakeError().code(), TRITONSERVER_ERROR_UNAVAILABLE);
    EXPECT_EQ(world_.keeper().Stop(), nullptr);
    EXPECT_EQ(world_.made(), made);
  }

 private:
  World world_;
  backend::Mutex mutex_;
  std::vector<std::future<std::shared_ptr<FakeBody>>> handed_over_;
};

TEST(Life, NothingComesAfterStopping) {
  for (size_t event = 0; event < kLifeEvents; ++event) {
    EXPECT_EQ(Next(LifeState::kStopping, static_cast<LifeEvent>(event)), LifeState::kStopping);
  }
  for (size_t state = 0; state < kLifeStates; ++state) {
    EXPECT_EQ(Next(static_cast<LifeState>(state), LifeEvent::kStopped), LifeState::kStopping);
  }
}

TEST(Life, ADeadWorkerIsFollowedByAStartAndAFailedStartByAnother) {
  EXPECT_EQ(Next(LifeState::kReady, LifeEvent::kDied), LifeState::kStarting);
  EXPECT_EQ(Next(LifeState::kStarting, LifeEvent::kStartFailed), LifeState::kFailing);
  EXPECT_EQ(Next(LifeState::kFailing, LifeEvent::kStartFailed), LifeState::kFailing);
  EXPECT_EQ(Next(LifeState::kFailing, LifeEvent::kStarted), LifeState::kReady);
}

TEST(Keeper, EndsAfterEveryPairOfEventsInEveryScene) {
  for (const Scene scene : kScenes) {
    for (const Event first : kEvents) {
      for (const Event second : kEvents) {
        SCOPED_TRACE(testing::Message() << "scene " << static_cast<int>(scene) << ": "
                                        << Name(first) << ", then " << Name(second));
        Act act(scene);
        act.Fire(first);
        act.Fire(second);
        ASSERT_TRUE(act.End()) << "the keeper waits for ever";
        act.ExpectStopped();
      }
    }
  }
}

TEST(Keeper, EndsWhenAnyTwoEventsMeet) {
  constexpr int kRounds = 20;
  for (const Scene scene : kScenes) {
    for (const Event first : kEvents) {
      for (const Event second : kEvents) {
        SCOPED_TRACE(testing::Message() << "scene " << static_cast<int>(scene) << ": "
                                        << Name(first) << " while " << Name(second));
        for (int round = 0; round < kRounds; ++round) {
          Act act(scene);
          auto other = std::async(std::launch::async, [&] { act.Fire(first); });
          act.Fire(second);
          other.get();
          ASSERT_TRUE(act.End()) << "the keeper waits for ever";
          act.ExpectStopped();
        }
      }
    }
  }
}

TEST(Keeper, KillsABodyThatStartsWhenItIsStopped) {
  Act act(Scene::kStarts);
  EXPECT_TRUE(act.End()) << "it waits for a start that hangs";
}

// The keeper notices the end of a start a moment after the body.
Result<std::shared_ptr<FakeBody>> AcquireSoon(Keeper<FakeBody>& keeper) {
  const auto deadline = std::chrono::steady_clock::now() + kForever;
  auto body = keeper.Acquire();
  while (!body.ok() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    body = keeper.Acquire();
  }
  return body;
}

TEST(Keeper, ReplacesABodyThatDies) {
  World world(milliseconds(1));
  world.Decide(true);
  ASSERT_TRUE(world.keeper().Start().ok());
  const auto first = world.keeper().Ready();
  ASSERT_NE(first, nullptr);
  world.KillNewest();
  EXPECT_EQ(world.keeper().Ready(), nullptr);
  ASSERT_TRUE(world.Await([&] { return world.starting() == 1; }));
  EXPECT_STREQ(world.keeper().Acquire().TakeError().message(), "it was killed by signal 9");
  world.Decide(false);
  ASSERT_TRUE(world.Await([&] { return world.failed() == 1; }));
  ASSERT_TRUE(world.Await([&] { return world.starting() == 1; })) << "it does not try again";
  EXPECT_STREQ(world.keeper().Acquire().TakeError().message(), "RuntimeError: cannot start");
  world.Decide(true);
  ASSERT_TRUE(world.Await([&] { return world.starting() == 0; }));
  auto second = AcquireSoon(world.keeper());
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second.value(), first);
  EXPECT_EQ(world.keeper().Stop(), second.value());
}

TEST(Keeper, DoesNotRestBeforeItReplacesABodyThatHasServed) {
  World world(std::chrono::hours(1));
  world.Decide(true);
  ASSERT_TRUE(world.keeper().Start().ok());
  for (size_t death = 1; death <= 3; ++death) {
    auto body = AcquireSoon(world.keeper());
    ASSERT_TRUE(body.ok());
    body.value()->NoteServed();
    world.KillNewest();
    ASSERT_TRUE(world.Await([&] { return world.made() == death + 1; })) << "it rests for an hour";
    world.Decide(true);
  }
}

TEST(Keeper, AFirstStartThatFailsSaysWhy) {
  World world(milliseconds(1));
  world.Decide(false);
  Error error = world.keeper().Start();
  ASSERT_FALSE(error.ok());
  EXPECT_STREQ(error.message(), "RuntimeError: cannot start");
  EXPECT_EQ(world.keeper().Stop(), nullptr);
  world.ExpectNothingLeft(nullptr);
}

}  // namespace
}  // namespace nereid::python
