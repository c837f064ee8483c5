// SPDX-License-Identifier: Apache-2.0
#include "observe/gpu_metrics.h"

#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

TEST(GpuMetrics, PrintsTheValuesOfEachGpu) {
  auto metrics = GpuMetrics::Open(NEREID_FAKE_NVML, std::chrono::milliseconds(0));
  ASSERT_TRUE(metrics.ok()) << metrics.status().ToString();
  ASSERT_EQ((*metrics)->gpu_count(), 2u);
  MetricsPage page;
  (*metrics)->AddTo(page);
  const std::string& text = page.text();
  for (const char* line :
       {"# TYPE nv_gpu_utilization gauge\nnv_gpu_utilization{gpu_uuid=\"GPU-1\"} 0.25\n",
        "nv_gpu_memory_total_bytes{gpu_uuid=\"GPU-2\"} 1000\n",
        "nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-1\"} 400\n",
        "nv_gpu_power_usage{gpu_uuid=\"GPU-1\"} 71.5\n",
        "nv_gpu_power_limit{gpu_uuid=\"GPU-2\"} 300\n",
        "# TYPE nv_energy_consumption counter\nnv_energy_consumption{gpu_uuid=\"GPU-1\"} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_EQ(text.find("nv_gpu_power_usage{gpu_uuid=\"GPU-2\"}"), std::string::npos);
}

TEST(GpuMetrics, ReadsTheSameValuesForOthers) {
  auto metrics = GpuMetrics::Open(NEREID_FAKE_NVML, std::chrono::milliseconds(0));
  ASSERT_TRUE(metrics.ok()) << metrics.status().ToString();
  const std::vector<GpuReading> readings = (*metrics)->Read();
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[1].uuid, "GPU-2");
  EXPECT_EQ(readings[1].utilization, 0.25);
  EXPECT_EQ(readings[1].total_bytes, 1000);
  EXPECT_EQ(readings[1].used_bytes, 400);
}

TEST(GpuMetrics, IsUnavailableWithoutItsLibrary) {
  EXPECT_EQ(GpuMetrics::Open("no_such_library.so", std::chrono::milliseconds(0)).status().code(),
            base::StatusCode::kUnavailable);
  EXPECT_EQ(GpuMetrics::Open("libc.so.6", std::chrono::milliseconds(0)).status().code(),
            base::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace nereid::observe
