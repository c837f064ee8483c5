// SPDX-License-Identifier: Apache-2.0
#include "engine/load_failures.h"

#include <gtest/gtest.h>

namespace nereid::engine {
namespace {

using std::chrono::seconds;

base::TimePoint At(int64_t second) { return base::TimePoint() + seconds(1000 + second); }

TEST(LoadFailures, AreToldUntilThePauseIsOver) {
  LoadFailures failures{seconds(2)};
  EXPECT_FALSE(failures.TooSoon("m", At(0)).has_value());
  const base::Status told = failures.Note("m", base::UnavailableError("damaged"), At(0));
  EXPECT_EQ(told.message(), "damaged");
  EXPECT_EQ(told.retry_after(), seconds(2));
  EXPECT_EQ(failures.TooSoon("m", At(1))->retry_after(), seconds(1));
  EXPECT_FALSE(failures.TooSoon("m", At(2)).has_value());
  // The pause is over, but the model has not been loaded yet.
  EXPECT_TRUE(failures.Contains("m"));
  EXPECT_FALSE(failures.Contains("other"));
}

TEST(LoadFailures, DoNotCountAfterAnUnloadDuringTheLoad) {
  const base::Status given_up = base::UnavailableError("given up");
  LoadFailures failures{seconds(2)};
  failures.NoteBegin();
  failures.NoteUnload("m");
  EXPECT_EQ(failures.Note("m", given_up, At(0)).retry_after(), seconds(2));
  EXPECT_FALSE(failures.Contains("m"));
  // The unload of a part ends the load of its ensemble, but not that of another one.
  EXPECT_EQ(failures.Note("e", given_up, At(0), {"p", "m"}).message(), "given up");
  EXPECT_FALSE(failures.Contains("e"));
  EXPECT_EQ(failures.Note("f", given_up, At(0), {"p"}).message(), "given up");
  EXPECT_TRUE(failures.Contains("f"));
  failures.NoteBegin();
  EXPECT_EQ(failures.Note("m", given_up, At(0)).message(), "given up");
  EXPECT_TRUE(failures.Contains("m"));
  failures.NoteUnload("m");
  EXPECT_FALSE(failures.Contains("m"));
}

TEST(LoadFailures, MakeLongerPausesUpToAMinute) {
  LoadFailures failures{seconds(1)};
  for (const int expected : {1, 2, 4, 8, 16, 32, 60, 60}) {
    EXPECT_EQ(failures.Note("m", base::UnavailableError("damaged"), At(0)).retry_after(),
              seconds(expected));
  }
  failures.Forget("m");
  EXPECT_FALSE(failures.Contains("m"));
  EXPECT_EQ(failures.Note("m", base::UnavailableError("damaged"), At(0)).retry_after(), seconds(1));
}

}  // namespace
}  // namespace nereid::engine
