// SPDX-License-Identifier: Apache-2.0
#include "http2/lifetime.h"

#include <gtest/gtest.h>

#include "http2/deadlines.h"

namespace nereid::http2 {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kStart = 1'000'000'000;
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMs;

struct LifetimeTest : testing::Test {
  GrpcServerOptions options;
};

TEST_F(LifetimeTest, TheFirstSettingsMustComeInTime) {
  options.preface_timeout = milliseconds(30);
  Lifetime late(options, kStart);
  EXPECT_EQ(late.Check(kStart).next_ns, kStart + 30 * kMs);
  EXPECT_FALSE(late.Check(kStart + 30 * kMs - 1).is_dead);
  EXPECT_TRUE(late.Check(kStart + 30 * kMs).is_dead);
  Lifetime punctual(options, kStart);
  punctual.NoteSettings();
  const Lifetime::Decision decision = punctual.Check(kStart + kSecond);
  EXPECT_FALSE(decision.is_dead);
  EXPECT_EQ(decision.next_ns, kNever);
}

TEST_F(LifetimeTest, ADrainIsConfirmedWhenTheClientAcknowledgesThePing) {
  Lifetime lifetime(options, kStart);
  lifetime.NoteSettings();
  EXPECT_FALSE(lifetime.ConfirmDrain());  // a ping for another purpose
  EXPECT_TRUE(lifetime.StartDrain(kStart));
  EXPECT_FALSE(lifetime.StartDrain(kStart + 1));
  EXPECT_TRUE(lifetime.is_draining());
  EXPECT_EQ(lifetime.Check(kStart + 1).next_ns, kStart + kSecond);
  EXPECT_TRUE(lifetime.ConfirmDrain());
  EXPECT_FALSE(lifetime.ConfirmDrain());
  const Lifetime::Decision decision = lifetime.Check(kStart + 2 * kSecond);
  EXPECT_FALSE(decision.confirms_drain);
  EXPECT_EQ(decision.next_ns, kNever);
}

TEST_F(LifetimeTest, ADrainIsConfirmedAfterASecondOtherwise) {
  Lifetime lifetime(options, kStart);
  lifetime.NoteSettings();
  lifetime.StartDrain(kStart);
  EXPECT_FALSE(lifetime.Check(kStart + kSecond - 1).confirms_drain);
  EXPECT_TRUE(lifetime.Check(kStart + kSecond).confirms_drain);
  EXPECT_FALSE(lifetime.Check(kStart + kSecond).confirms_drain);
  EXPECT_FALSE(lifetime.ConfirmDrain());
}

TEST_F(LifetimeTest, AnOldConnectionDrainsOnce) {
  options.max_connection_age = milliseconds(10'000);
  Lifetime lifetime(options, kStart);
  lifetime.NoteSettings();
  Lifetime::Decision decision = lifetime.Check(kStart + 10 * kSecond - 1);
  EXPECT_FALSE(decision.starts_drain);
  EXPECT_EQ(decision.next_ns, kStart + 10 * kSecond);
  decision = lifetime.Check(kStart + 10 * kSecond);
  EXPECT_TRUE(decision.starts_drain);
  EXPECT_EQ(decision.next_ns, kStart + 11 * kSecond);
  decision = lifetime.Check(kStart + 11 * kSecond);
  EXPECT_FALSE(decision.starts_drain);
  EXPECT_TRUE(decision.confirms_drain);
}

TEST_F(LifetimeTest, NothingIsDueOnceAnOldConnectionHasSaidThatItEnds) {
  options.max_connection_age = milliseconds(10'000);
  Lifetime lifetime(options, kStart);
  lifetime.NoteSettings();
  EXPECT_TRUE(lifetime.Check(kStart + 10 * kSecond).starts_drain);
  EXPECT_TRUE(lifetime.ConfirmDrain());
  // A time that has passed would make the timer fire again and again while a last call runs.
  const Lifetime::Decision decision = lifetime.Check(kStart + 12 * kSecond);
  EXPECT_FALSE(decision.is_dead);
  EXPECT_EQ(decision.next_ns, kNever);
}

TEST_F(LifetimeTest, TheLastCallsOfAnOldConnectionHaveItsGrace) {
  options.max_connection_age = milliseconds(10'000);
  options.max_connection_age_grace = milliseconds(5'000);
  Lifetime lifetime(options, kStart);
  lifetime.NoteSettings();
  EXPECT_TRUE(lifetime.Check(kStart + 10 * kSecond).starts_drain);
  EXPECT_TRUE(lifetime.ConfirmDrain());
  const Lifetime::Decision decision = lifetime.Check(kStart + 15 * kSecond - 1);
  EXPECT_FALSE(decision.is_dead);
  EXPECT_EQ(decision.next_ns, kStart + 15 * kSecond);
  EXPECT_TRUE(lifetime.Check(kStart + 15 * kSecond).is_dead);
}

TEST_F(LifetimeTest, TimesThatDoNotFitNeverCome) {
  options.max_connection_age = milliseconds::max();
  options.preface_timeout = milliseconds::max();
  Lifetime lifetime(options, kStart);
  const Lifetime::Decision decision = lifetime.Check(kStart + 1'000'000 * kSecond);
  EXPECT_FALSE(decision.is_dead);
  EXPECT_FALSE(decision.starts_drain);
}

}  // namespace
}  // namespace nereid::http2
