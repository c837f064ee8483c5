// SPDX-License-Identifier: Apache-2.0
#include "observe/process_metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <ctime>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

using ::testing::HasSubstr;

double ValueOf(const std::string& name) {
  MetricsPage page;
  AddProcessMetrics(page);
  const std::string line = "\n" + name + " ";
  const size_t at = page.text().find(line);
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? -1 : std::stod(page.text().substr(at + line.size()));
}

TEST(ProcessStatus, TheNameOfTheProgramMayLookLikeTheRest) {
  const auto status = ParseProcessStatus(
      "42 (a) 9 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 39 18 555 4096000 77 19 20\n");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->threads, 39u);
  EXPECT_EQ(status->start_ticks, 555u);
  EXPECT_EQ(status->virtual_bytes, 4'096'000u);
  EXPECT_EQ(status->resident_pages, 77u);
}

TEST(ProcessStatus, AnythingElseIsRefused) {
  for (const char* text : {"", "42", "42 (a)", "42 (a) S 1 2 3",
                           "42 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 x 18 5 4 7 1"}) {
    EXPECT_FALSE(ParseProcessStatus(text)) << text;
  }
}

TEST(ProcessMetrics, AreThoseOfThisProcess) {
  MetricsPage page;
  AddProcessMetrics(page);
  EXPECT_THAT(page.text(), HasSubstr("# TYPE process_cpu_seconds_total counter\n"));
  EXPECT_GT(ValueOf("process_resident_memory_bytes"), 1e5);
  EXPECT_GE(ValueOf("process_virtual_memory_bytes"), ValueOf("process_resident_memory_bytes"));
  EXPECT_GE(ValueOf("process_threads"), 1);
  // After 2020, and not in the future.
  EXPECT_GT(ValueOf("process_start_time_seconds"), 1.577e9);
  EXPECT_LE(ValueOf("process_start_time_seconds"), static_cast<double>(std::time(nullptr)) + 1);
  EXPECT_GE(ValueOf("process_max_fds"), ValueOf("process_open_fds"));
}

TEST(ProcessMetrics, CountDescriptors) {
  const double before = ValueOf("process_open_fds");
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(ValueOf("process_open_fds"), before + 1);
  ::close(file);
  EXPECT_EQ(ValueOf("process_open_fds"), before);
}

}  // namespace
}  // namespace nereid::observe
