// SPDX-License-Identifier: Apache-2.0
#include "engine/failure_history.h"

#include <gtest/gtest.h>

namespace nereid::engine {
namespace {

const VersionKey kOne{"m", 1};
const VersionKey kTwo{"m", 2};

TEST(FailureHistory, KnowsWhatIsNew) {
  FailureHistory history;
  EXPECT_TRUE(history.Note(kOne, 100, "broken"));
  EXPECT_FALSE(history.Note(kOne, 100, "broken"));
  EXPECT_TRUE(history.Note(kOne, 100, "lost"));
  EXPECT_TRUE(history.Note(kOne, 200, "lost"));
  EXPECT_TRUE(history.Note(kTwo, 200, "lost"));
  EXPECT_FALSE(history.Note(kOne, 200, "lost"));
}

TEST(FailureHistory, TakesAFirstFailureForNewWhateverItIs) {
  FailureHistory history;
  EXPECT_TRUE(history.Note(kOne, 0, ""));
  EXPECT_FALSE(history.Note(kOne, 0, ""));
}

TEST(FailureHistory, CallsALoadOfTheSameFilesARepetition) {
  FailureHistory history;
  EXPECT_FALSE(history.IsRepetition(kOne, 100));
  history.Note(kOne, 100, "broken");
  EXPECT_TRUE(history.IsRepetition(kOne, 100));
  EXPECT_FALSE(history.IsRepetition(kOne, 200));
  EXPECT_FALSE(history.IsRepetition(kTwo, 100));
}

TEST(FailureHistory, ForgetsWhatWasLoaded) {
  FailureHistory history;
  history.Note(kOne, 100, "broken");
  history.Note({"m", FailureHistory::kNoVersion}, 100, "no version");
  history.Forget(kOne);
  history.Forget(kTwo);
  EXPECT_FALSE(history.IsRepetition(kOne, 100));
  EXPECT_TRUE(history.Note(kOne, 100, "broken"));
  EXPECT_FALSE(history.Note({"m", FailureHistory::kNoVersion}, 100, "no version"));
}

}  // namespace
}  // namespace nereid::engine
