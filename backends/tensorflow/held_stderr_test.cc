// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/held_stderr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace nereid::tensorflow {
namespace {

using testing::ElementsAre;

TEST(TensorFlowLines, AreHeldBackAndThoseOfOthersAreNot) {
  testing::internal::CaptureStderr();
  const auto held = HoldBackAbseilLines([] {
    std::fputs("I1122 20:40:25.736682 1643 life_cycle.cc:230] \"loading\"\n", stderr);
    std::fputs("WARNING: All log messages before absl::InitializeLog() is called ...\n", stderr);
    std::fputs("I0000 00:00:1795378213.373726   11636 port.cc:153] oneDNN is on\n", stderr);
    std::fputs("no end of a line", stderr);
  });
  std::fputs(", after", stderr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "I1122 20:40:25.736682 1643 life_cycle.cc:230] \"loading\"\nno end of a line, after");
  EXPECT_THAT(held,
              ElementsAre("WARNING: All log messages before absl::InitializeLog() is called ...",
                          "I0000 00:00:1795378213.373726   11636 port.cc:153] oneDNN is on"));
}

}  // namespace
}  // namespace nereid::tensorflow
