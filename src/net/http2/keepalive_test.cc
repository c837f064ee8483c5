// SPDX-License-Identifier: Apache-2.0
#include "http2/keepalive.h"

#include <gtest/gtest.h>

#include "http2/deadlines.h"

namespace nereid::http2 {
namespace {

using std::chrono::milliseconds;
using Verdict = Keepalive::Verdict;

constexpr uint64_t kStart = 1'000'000'000;
constexpr uint64_t kMs = 1'000'000;

struct KeepaliveTest : testing::Test {
  KeepaliveTest() {
    options.keepalive_time = milliseconds(100);
    options.keepalive_timeout = milliseconds(20);
    options.min_recv_ping_interval_without_data = milliseconds(50);
  }
  GrpcServerOptions options;
};

TEST_F(KeepaliveTest, AQuietClientIsPingedAndIsDeadWithoutAnAck) {
  Keepalive keepalive(options, kStart);
  Keepalive::Decision decision = keepalive.Check(kStart, true);
  EXPECT_EQ(decision.verdict, Verdict::kNothing);
  EXPECT_EQ(decision.next_ns, kStart + 100 * kMs);
  decision = keepalive.Check(kStart + 100 * kMs, true);
  EXPECT_EQ(decision.verdict, Verdict::kPing);
  EXPECT_EQ(decision.next_ns, kStart + 120 * kMs);
  decision = keepalive.Check(kStart + 119 * kMs, true);
  EXPECT_EQ(decision.verdict, Verdict::kNothing);
  EXPECT_EQ(decision.next_ns, kStart + 120 * kMs);
  EXPECT_EQ(keepalive.Check(kStart + 120 * kMs, true).verdict, Verdict::kDead);
}

TEST_F(KeepaliveTest, AnyByteShowsThatTheClientIsAlive) {
  Keepalive keepalive(options, kStart);
  EXPECT_EQ(keepalive.Check(kStart + 100 * kMs, true).verdict, Verdict::kPing);
  keepalive.NoteReceived(kStart + 110 * kMs);
  const Keepalive::Decision decision = keepalive.Check(kStart + 130 * kMs, true);
  EXPECT_EQ(decision.verdict, Verdict::kNothing);
  EXPECT_EQ(decision.next_ns, kStart + 210 * kMs);
}

TEST_F(KeepaliveTest, AConnectionWithoutCallsIsPingedOnlyIfThatIsPermitted) {
  Keepalive strict(options, kStart);
  const Keepalive::Decision decision = strict.Check(kStart + 100 * kMs, false);
  EXPECT_EQ(decision.verdict, Verdict::kNothing);
  EXPECT_EQ(decision.next_ns, kStart + 200 * kMs);
  options.keepalive_permit_without_calls = true;
  Keepalive permissive(options, kStart);
  EXPECT_EQ(permissive.Check(kStart + 100 * kMs, false).verdict, Verdict::kPing);
}

TEST_F(KeepaliveTest, PingsWithoutDataBetweenThemAreLimited) {
  options.max_pings_without_data = 2;
  Keepalive keepalive(options, kStart);
  uint64_t now_ns = kStart;
  const auto next = [&] {
    keepalive.NoteReceived(now_ns);
    now_ns += 100 * kMs;
    return keepalive.Check(now_ns, true).verdict;
  };
  EXPECT_EQ(next(), Verdict::kPing);
  EXPECT_EQ(next(), Verdict::kPing);
  EXPECT_EQ(next(), Verdict::kNothing);
  keepalive.NoteSent();
  EXPECT_EQ(next(), Verdict::kPing);
}

TEST_F(KeepaliveTest, IsOffAtTheLargestTime) {
  options.keepalive_time = milliseconds(INT32_MAX);
  Keepalive keepalive(options, kStart);
  const Keepalive::Decision decision = keepalive.Check(kNever - 1, true);
  EXPECT_EQ(decision.verdict, Verdict::kNothing);
  EXPECT_EQ(decision.next_ns, kNever);
}

TEST_F(KeepaliveTest, AClientMayPingAsOftenAsItIsAllowedTo) {
  Keepalive keepalive(options, kStart);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(keepalive.OnPing(kStart + i * 50 * kMs, true));
}

TEST_F(KeepaliveTest, AnEagerClientHasSomeStrikes) {
  options.max_ping_strikes = 2;
  Keepalive keepalive(options, kStart);
  EXPECT_TRUE(keepalive.OnPing(kStart, true));
  EXPECT_TRUE(keepalive.OnPing(kStart + 1, true));
  EXPECT_TRUE(keepalive.OnPing(kStart + 2, true));
  EXPECT_FALSE(keepalive.OnPing(kStart + 3, true));
}

TEST_F(KeepaliveTest, DataFromTheServerClearsTheStrikes) {
  options.max_ping_strikes = 1;
  Keepalive keepalive(options, kStart);
  EXPECT_TRUE(keepalive.OnPing(kStart, true));
  EXPECT_TRUE(keepalive.OnPing(kStart + 1, true));
  keepalive.NoteSent();
  EXPECT_TRUE(keepalive.OnPing(kStart + 2, true));
  EXPECT_TRUE(keepalive.OnPing(kStart + 3, true));
  EXPECT_FALSE(keepalive.OnPing(kStart + 4, true));
}

TEST_F(KeepaliveTest, WithoutCallsAClientMayPingOnceInTwoHours) {
  options.max_ping_strikes = 1;
  constexpr uint64_t kTwoHours = uint64_t{7200} * 1'000 * kMs;
  Keepalive keepalive(options, kStart);
  EXPECT_TRUE(keepalive.OnPing(kStart, false));
  EXPECT_TRUE(keepalive.OnPing(kStart + kTwoHours, false));
  EXPECT_TRUE(keepalive.OnPing(kStart + 2 * kTwoHours - 1,
                               false));  // the one permitted strike
  EXPECT_FALSE(keepalive.OnPing(kStart + 3 * kTwoHours - 2, false));
}

TEST_F(KeepaliveTest, NoLimitOfStrikesMeansNoLimit) {
  options.max_ping_strikes = 0;
  Keepalive keepalive(options, kStart);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(keepalive.OnPing(kStart + i, true));
}

}  // namespace
}  // namespace nereid::http2
