// SPDX-License-Identifier: Apache-2.0
#include "observe/cpu_metrics.h"

#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

TEST(CpuMetrics, ReadsTheTimesOfAllCpus) {
  const auto times = ParseCpuTimes("cpu  10 20 30 400 50 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->busy, 81u);
  EXPECT_EQ(times->idle, 450u);
  EXPECT_FALSE(ParseCpuTimes("cpu  10 20"));
  EXPECT_FALSE(ParseCpuTimes("intr 1"));
  EXPECT_FALSE(ParseCpuTimes(""));
}

TEST(CpuMetrics, MemoryInUseIsTheTotalLessWhatIsAvailable) {
  const auto memory = ParseMemory("MemTotal:  100 kB\nMemFree: 10 kB\nMemAvailable:   40 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total, 102'400u);
  EXPECT_EQ(memory->used, 61'440u);
  EXPECT_FALSE(ParseMemory("MemTotal: 100 kB\n"));
  EXPECT_FALSE(ParseMemory("MemTotal: 1 kB\nMemAvailable: 2 kB\n"));
}

TEST(CpuMetrics, PrintsThreeGauges) {
  CpuMetrics metrics(std::chrono::milliseconds(0));
  MetricsPage page;
  metrics.AddTo(page);
  for (const char* name :
       {"nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes"}) {
    EXPECT_NE(page.text().find(std::string("# TYPE ") + name + " gauge\n"), std::string::npos);
  }
}

}  // namespace
}  // namespace nereid::observe
