// SPDX-License-Identifier: Apache-2.0
#include "http2/connection_watch.h"

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kStart = 1'000'000;

struct ConnectionWatchTest : testing::Test {
  GrpcServerOptions options;
};

TEST_F(ConnectionWatchTest, ProgressIsCheckedOnceInEachWindow) {
  options.message_window = milliseconds(1000);
  ConnectionWatch watch(options, kStart);
  EXPECT_TRUE(watch.IsCheckDue(kStart, false));
  EXPECT_EQ(watch.window().length_ms, 1000u);
  EXPECT_FALSE(watch.IsCheckDue(kStart + 999, false));
  EXPECT_TRUE(watch.IsCheckDue(kStart + 1000, false));
  EXPECT_EQ(watch.window().length_ms, 1000u);
  EXPECT_FALSE(watch.IsCheckDue(kStart + 1001, false));
}

TEST_F(ConnectionWatchTest, WindowsAreShorterWhileMemoryIsShort) {
  options.message_window = milliseconds(30'000);
  options.min_message_bytes_per_s = 10;
  ConnectionWatch watch(options, kStart);
  EXPECT_TRUE(watch.IsCheckDue(kStart, false));
  EXPECT_EQ(watch.window().length_ms, 30'000u);
  EXPECT_EQ(watch.window().min_bytes, 300u);
  EXPECT_FALSE(watch.IsCheckDue(kStart + 3'999, true));
  EXPECT_FALSE(watch.IsCheckDue(kStart + 4'100, false));
  EXPECT_TRUE(watch.IsCheckDue(kStart + 4'100, true));
  EXPECT_EQ(watch.window().length_ms, 4'100u);
  EXPECT_EQ(watch.window().min_bytes, uint64_t{64 << 10} * 41 / 10);
}

TEST_F(ConnectionWatchTest, AConnectionIsQuietTwoSecondsAfterItsLastBytes) {
  ConnectionWatch watch(options, kStart);
  EXPECT_FALSE(watch.IsQuiet(kStart + 2000));
  EXPECT_TRUE(watch.IsQuiet(kStart + 2001));
  watch.NoteRead(kStart + 2001);
  EXPECT_FALSE(watch.IsQuiet(kStart + 4001));
  EXPECT_FALSE(watch.IsQuiet(kStart));  // an older clock reading
}

TEST_F(ConnectionWatchTest, AClientThatTakesNothingIsGivenUpInTheEnd) {
  options.write_timeout = milliseconds(500);
  ConnectionWatch watch(options, kStart);
  EXPECT_FALSE(watch.IsStuck(kStart + 10'000, false));
  EXPECT_FALSE(watch.IsStuck(kStart + 11'000, true));
  EXPECT_FALSE(watch.IsStuck(kStart + 11'499, true));
  EXPECT_TRUE(watch.IsStuck(kStart + 11'500, true));
}

TEST_F(ConnectionWatchTest, AByteThatIsTakenBeginsTheWaitAnew) {
  options.write_timeout = milliseconds(500);
  ConnectionWatch watch(options, kStart);
  EXPECT_FALSE(watch.IsStuck(kStart, true));
  watch.NoteWritable();
  EXPECT_FALSE(watch.IsStuck(kStart + 500, true));
  EXPECT_FALSE(watch.IsStuck(kStart + 600, false));
  EXPECT_FALSE(watch.IsStuck(kStart + 1000, true));
  EXPECT_TRUE(watch.IsStuck(kStart + 1500, true));
}

}  // namespace
}  // namespace nereid::http2
