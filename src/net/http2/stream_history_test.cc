// SPDX-License-Identifier: Apache-2.0
#include "http2/stream_history.h"

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

using Verdict = StreamHistory::Verdict;

TEST(StreamHistory, StreamsThatGrowAreNew) {
  StreamHistory history;
  EXPECT_TRUE(history.Begin(1));
  EXPECT_TRUE(history.Begin(3));
  EXPECT_TRUE(history.Begin(2'000'000'001));
  EXPECT_FALSE(history.Begin(3));
  EXPECT_FALSE(history.Begin(2'000'000'001));
}

TEST(StreamHistory, AStreamThatWasPassedOverMustNotBegin) {
  StreamHistory history;
  history.Begin(1);
  history.Begin(7);
  EXPECT_EQ(history.Judge(3), Verdict::kBadOrder);
  EXPECT_EQ(history.Judge(5), Verdict::kBadOrder);
  EXPECT_EQ(history.Judge(1), Verdict::kFine);
}

TEST(StreamHistory, AStreamThatTheClientHasEndedMustNotContinue) {
  StreamHistory history;
  history.Begin(1);
  history.Begin(3);
  history.End(1);
  EXPECT_EQ(history.Judge(1), Verdict::kEnded);
  EXPECT_EQ(history.Judge(3), Verdict::kFine);
  history.Begin(9);
  EXPECT_EQ(history.Judge(1), Verdict::kEnded);
}

TEST(StreamHistory, OldStreamsAreForgotten) {
  StreamHistory history;
  history.Begin(1);
  history.End(1);
  history.Begin(127);  // 63 streams later
  EXPECT_EQ(history.Judge(1), Verdict::kEnded);
  history.Begin(129);
  EXPECT_EQ(history.Judge(1), Verdict::kFine);
  history.End(1);  // has no effect
  history.Begin(1001);
  EXPECT_EQ(history.Judge(129), Verdict::kFine);
  EXPECT_EQ(history.Judge(999), Verdict::kBadOrder);
}

}  // namespace
}  // namespace nereid::http2
