// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/error_stream.h"

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>
#include <thread>

namespace nereid::pytorch {
namespace {

// Replaces std::cerr's destination, which the tests look at.
class ErrorStream : public ::testing::Test {
 protected:
  ErrorStream() : before_(std::cerr.rdbuf(printed_.rdbuf())) {}
  ~ErrorStream() override { std::cerr.rdbuf(before_); }

  std::ostringstream printed_;

 private:
  std::streambuf* const before_;
};

TEST_F(ErrorStream, KeepsWhatItsThreadWritesAndLetsThroughWhatOthersWrite) {
  const ErrorStreamRoute route;
  std::cerr << "before\n";
  {
    const CapturedErrors captured;
    std::cerr << "Error: " << 7 << '\n' << std::endl;
    std::thread([] { std::cerr << "another thread\n"; }).join();
    EXPECT_EQ(captured.Text(), "Error: 7");
  }
  std::cerr << "after\n";
  EXPECT_EQ(printed_.str(), "before\nanother thread\nafter\n");
}

TEST_F(ErrorStream, IsAsBeforeWhenTheRouteIsGone) {
  {
    const ErrorStreamRoute route;
  }
  const CapturedErrors captured;
  std::cerr << "printed";
  EXPECT_EQ(printed_.str(), "printed");
  EXPECT_EQ(captured.Text(), "");
}

}  // namespace
}  // namespace nereid::pytorch
