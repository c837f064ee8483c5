// SPDX-License-Identifier: Apache-2.0
#include "base/system_limits.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace nereid::base {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Folders that look like /proc and /sys.
class SystemLimitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "system_limits_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  SystemLimits Read() const { return ReadSystemLimits(SystemFiles(root_)); }

 private:
  std::string root_;
};

TEST_F(SystemLimitsTest, TakesTheMachineWhereThereIsNoCgroup) {
  EXPECT_GT(Read().memory_bytes, kMiB);
  EXPECT_STREQ(Read().memory_source, "the machine");
}

TEST_F(SystemLimitsTest, FindsTheSmallestLimitOnTheWayToTheTop) {
  Write("proc/self/cgroup", "0::/a.slice/b.service\n");
  Write("sys/fs/cgroup/a.slice/memory.max", "8388608\n");
  Write("sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
  EXPECT_EQ(Read().memory_bytes, 8 * kMiB);
  EXPECT_STREQ(Read().memory_source, "the cgroup");
}

TEST_F(SystemLimitsTest, FindsTheLimitOfAContainerWhosePathIsTheHosts) {
  Write("proc/self/cgroup", "0::/docker/0123abcd\n");
  Write("sys/fs/cgroup/memory.max", "4194304\n");
  EXPECT_EQ(Read().memory_bytes, 4 * kMiB);
}

TEST_F(SystemLimitsTest, ReadsTheFirstVersionOfCgroups) {
  Write("proc/self/cgroup", "9:cpuset:/\n4:memory:/jobs/one\n0::/\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes", "2097152\n");
  EXPECT_EQ(Read().memory_bytes, 2 * kMiB);
}

TEST_F(SystemLimitsTest, CountsThePartOfACoreInAQuotaAsOne) {
  Write("proc/self/cgroup", "0::/a.slice/b.service\n");
  Write("sys/fs/cgroup/a.slice/cpu.max", "50000 100000\n");
  Write("sys/fs/cgroup/a.slice/b.service/cpu.max", "max 100000\n");
  EXPECT_EQ(Read().cpus, 1u);
}

TEST_F(SystemLimitsTest, ReadsTheQuotaOfTheFirstVersionOfCgroups) {
  Write("proc/self/cgroup", "4:cpu,cpuacct:/jobs/one\n");
  Write("sys/fs/cgroup/cpu,cpuacct/jobs/one/cpu.cfs_quota_us", "1000\n");
  Write("sys/fs/cgroup/cpu,cpuacct/jobs/one/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Read().cpus, 1u);
}

TEST_F(SystemLimitsTest, AQuotaAboveTheAffinityMaskChangesNothing) {
  const unsigned cpus = Read().cpus;
  EXPECT_GE(cpus, 1u);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "100000000 100000\n");
  EXPECT_EQ(Read().cpus, cpus);
  EXPECT_EQ(AvailableCpus(), cpus);
}

TEST_F(SystemLimitsTest, IgnoresWhatItCannotRead) {
  Write("proc/self/cgroup", "nonsense\n0:\n0::\n0::/\n0::/x/\n0::x\n");
  Write("sys/fs/cgroup/memory.max", "many\n");
  EXPECT_STREQ(Read().memory_source, "the machine");
}

TEST_F(SystemLimitsTest, ReadsTheNumberOfDescriptors) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{200, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(Read().descriptors, 200u);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace nereid::base
