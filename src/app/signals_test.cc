// SPDX-License-Identifier: Apache-2.0
#include "app/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace nereid::app {
namespace {

using std::chrono::seconds;

class SignalsTest : public testing::Test {
 protected:
  SignalsTest() { pthread_sigmask(SIG_SETMASK, nullptr, &before_); }
  ~SignalsTest() override { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Sends a signal to the process and returns the resulting event.
  static Signals::Event EventOf(Signals& signals, int number) {
    kill(getpid(), number);
    return signals.Wait(seconds(60));
  }

 private:
  sigset_t before_;
};

TEST_F(SignalsTest, ToStopAndToReopenTheLogAreEvents) {
  Signals signals;
  EXPECT_EQ(EventOf(signals, SIGTERM), Signals::Event::kStop);
  EXPECT_EQ(EventOf(signals, SIGINT), Signals::Event::kStop);
  EXPECT_EQ(EventOf(signals, SIGHUP), Signals::Event::kReopenLog);
}

TEST_F(SignalsTest, OfNoMeaningEndNothing) {
  Signals signals;
  EXPECT_EQ(EventOf(signals, SIGUSR1), Signals::Event::kNothing);
  EXPECT_EQ(EventOf(signals, SIGUSR2), Signals::Event::kNothing);
  kill(getpid(), SIGPIPE);
  kill(getpid(), SIGXFSZ);
  EXPECT_EQ(signals.Wait(seconds(0)), Signals::Event::kNothing);
}

TEST_F(SignalsTest, AnotherThreadMayWakeTheMainOne) {
  Signals signals;
  signals.Wake();
  signals.Wake();
  EXPECT_EQ(signals.Wait(seconds(60)), Signals::Event::kWoken);
  EXPECT_EQ(signals.Wait(seconds(0)), Signals::Event::kNothing);
  // Signals have precedence over Wake.
  signals.Wake();
  EXPECT_EQ(EventOf(signals, SIGTERM), Signals::Event::kStop);
  EXPECT_EQ(signals.Wait(seconds(60)), Signals::Event::kWoken);
}

TEST_F(SignalsTest, ASecondOneToStopEndsTheProcess) {
  EXPECT_EXIT(
      {
        Signals signals;
        kill(getpid(), SIGTERM);
        if (signals.Wait(seconds(60)) != Signals::Event::kStop) _exit(1);
        Signals::LetStopEndTheProcess();
        kill(getpid(), SIGTERM);
        _exit(2);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace nereid::app
