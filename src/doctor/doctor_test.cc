// SPDX-License-Identifier: Apache-2.0
// What is concluded from files of made-up machines.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/control_group.h"
#include "base/temporary_folder.h"
#include "doctor/child.h"
#include "doctor/gpu.h"
#include "doctor/machine.h"
#include "doctor/ports.h"

namespace nereid::doctor {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

// A machine whose files the test writes.
class Machine : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const fs::path file = root_.path + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  base::SystemFiles files() const { return base::SystemFiles(root_.path); }
  std::string Path(const std::string& path) const { return root_.path + path; }

 private:
  base::TemporaryFolder root_ = *base::MakeTemporaryFolder("doctor-test");
};

auto Is(Level level, const std::string& id, const std::string& text) {
  return AllOf(Field(&Finding::level, level), Field(&Finding::id, id),
               Field(&Finding::text, HasSubstr(text)));
}

TEST_F(Machine, TheProcessOnATakenPortIsNamed) {
  // 8000 is 1F40; the second line is a connection, not a listener.
  Write("/proc/net/tcp",
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid inode\n"
        "   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1\n"
        "   1: 0100007F:1F41 0100007F:C000 01 00000000:00000000 00:00000000 00000000 0 0 4712 1");
  Write("/proc/12/comm", "python3");
  fs::create_directories(Path("/proc/12/fd"));
  fs::create_symlink("socket:[4711]", Path("/proc/12/fd/5"));
  EXPECT_EQ(FindListener(files(), 8000), "python3 (process 12)");
  EXPECT_EQ(FindListener(files(), 8001), std::nullopt);
  Report report;
  ExaminePorts(
      files(),
      {{"http", "HTTP", "--http-port", 8000, false}, {"grpc", "gRPC", "--grpc-port", 8001, true}},
      report);
  EXPECT_THAT(report.findings,
              ElementsAre(Is(Level::kProblem, "ports.http",
                             "port 8000 (HTTP) is taken by python3 (process 12)"),
                          Is(Level::kOk, "ports.grpc", "port 8001 (gRPC) is free")));
}

TEST_F(Machine, ALowPortNeedsAPrivilege) {
  Write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "1024");
  const std::vector<Port> ports = {{"http", "HTTP", "--http-port", 80, true}};
  Write("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000");
  Report without;
  ExaminePorts(files(), ports, without);
  EXPECT_THAT(without.findings, ElementsAre(Is(Level::kProblem, "ports.http", "privileged")));
  Write("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000400");
  Report with;
  ExaminePorts(files(), ports, with);
  EXPECT_THAT(with.findings, ElementsAre(Is(Level::kOk, "ports.http", "free")));
}

TEST_F(Machine, TheStrictestControlGroupOfVersion2Counts) {
  Write("/proc/self/cgroup", "0::/a/b");
  Write("/sys/fs/cgroup/a/memory.max", "1073741824");
  Write("/sys/fs/cgroup/a/memory.current", "500000000");
  Write("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 400000000");
  Write("/sys/fs/cgroup/a/b/memory.max", "max");
  Write("/sys/fs/cgroup/a/b/cpu.max", "150000 100000");
  Write("/sys/fs/cgroup/a/cpu.max", "max 100000");
  Write("/sys/fs/cgroup/a/b/pids.max", "100");
  const base::ControlGroupLimits limits = base::ReadControlGroups(files());
  EXPECT_EQ(limits.memory_bytes, 1073741824);
  EXPECT_EQ(limits.memory_used_bytes, 100000000);
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.tasks, 100);
}

TEST_F(Machine, ControlGroupsOfVersion1AreReadAlsoWhereTheirPathIsThatOfTheHost) {
  Write("/proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000");
  Write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  const base::ControlGroupLimits limits = base::ReadControlGroups(files());
  EXPECT_EQ(limits.memory_bytes, 536870912);
  EXPECT_EQ(limits.memory_used_bytes, 1000);
  EXPECT_EQ(limits.cpus, 0.5);
}

TEST_F(Machine, LimitsThatAreNoneAreNoLimits) {
  Write("/proc/self/cgroup", "5:memory:/\n4:cpu:/\n0::/");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  const base::ControlGroupLimits limits = base::ReadControlGroups(files());
  EXPECT_EQ(limits.memory_bytes, std::nullopt);
  EXPECT_EQ(limits.cpus, std::nullopt);
}

TEST(Limits, FewDescriptorsAreAProblemAndModestOnesANote) {
  Report report;
  JudgeDescriptors(256, 4096, report);
  JudgeDescriptors(1024, 4096, report);
  JudgeDescriptors(65'536, ~uint64_t{0}, report);
  EXPECT_THAT(report.findings,
              ElementsAre(Is(Level::kProblem, "limits.files", "256 open files (at most 4096)"),
                          Is(Level::kNote, "limits.files", "1024"),
                          Is(Level::kOk, "limits.files", "65536 open files (at most unlimited)")));
}

TEST(Processor, LevelsNeedAllTheirFeatures) {
  const std::string level2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3";
  const std::string level3 = level2 + " abm avx avx2 bmi1 bmi2 f16c fma movbe xsave";
  EXPECT_EQ(LevelOfX86(base::Words("fpu sse2")), 1);
  EXPECT_EQ(LevelOfX86(base::Words(level2)), 2);
  EXPECT_EQ(LevelOfX86(base::Words(level2 + " avx avx2")), 2);
  EXPECT_EQ(LevelOfX86(base::Words(level3)), 3);
  EXPECT_EQ(LevelOfX86(base::Words(level3 + " avx512f avx512bw avx512cd avx512dq avx512vl")), 4);
}

TEST_F(Machine, AnOldProcessorAndSeveralNodesAreNoted) {
  Write("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse2\nmodel name\t: Old");
  Write("/proc/loadavg", "0.10 0.2 0.3 1/100 1");
  Write("/sys/devices/system/node/node0/cpulist", "0-1");
  Write("/sys/devices/system/node/node1/cpulist", "2-3");
  Write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave");
  Report report;
  ExamineProcessor(files(), report);
  EXPECT_THAT(
      report.findings,
      testing::IsSupersetOf({Is(Level::kNote, "processor.features", "x86-64-v1 (without AVX)"),
                             Is(Level::kOk, "processor.load", "0.1"),
                             Is(Level::kNote, "processor.numa", "2 NUMA nodes"),
                             Is(Level::kNote, "processor.frequency", "powersave")}));
}

TEST_F(Machine, SettingsOfTheKernelThatServersFeelAreNoted) {
  Write("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never");
  Write("/proc/sys/vm/overcommit_memory", "2");
  Write("/proc/sys/net/core/somaxconn", "128");
  Write("/proc/sys/vm/max_map_count", "65530");
  Write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet");
  Report report;
  ExamineKernel(files(), report);
  EXPECT_THAT(report.findings,
              ElementsAre(Is(Level::kNote, "kernel.huge_pages", "always"),
                          Is(Level::kNote, "kernel.overcommit", "= 2"),
                          Is(Level::kNote, "kernel.connections", "net/core/somaxconn = 128"),
                          Is(Level::kOk, "kernel.mappings", "vm/max_map_count = 65530")));
  Report clocks;
  ExamineClocks(files(), clocks);
  EXPECT_THAT(clocks.findings, testing::Contains(Is(Level::kNote, "clocks.monotonic", "hpet")));
}

using Gpus = base::Result<std::vector<std::string>>;

void WriteGpu(const std::function<void(const std::string&, const std::string&)>& write) {
  write("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de");
  write("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200");
  write("/sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086");
  write("/sys/bus/pci/devices/0000:00:1f.0/class", "0x030000");
}

TEST_F(Machine, WithoutAGpuNothingIsMissing) {
  Report report;
  ExamineGpus(files(), [] { return Gpus(std::vector<std::string>()); }, report);
  EXPECT_THAT(report.findings, ElementsAre(Is(Level::kOk, "gpu.driver", "no NVIDIA GPU")));
}

TEST_F(Machine, AGpuWithoutADriverIsAProblem) {
  WriteGpu([this](const std::string& path, const std::string& text) { Write(path, text); });
  Report report;
  ExamineGpus(files(), [] { return Gpus(std::vector<std::string>()); }, report);
  EXPECT_THAT(report.findings, ElementsAre(Is(Level::kProblem, "gpu.module", "1 NVIDIA GPU")));
}

TEST_F(Machine, DevicesThatAContainerHidesAreAProblemWithTheOptionThatShowsThem) {
  WriteGpu([this](const std::string& path, const std::string& text) { Write(path, text); });
  Write("/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023");
  Report report;
  ExamineGpus(files(), [] { return Gpus(std::vector<std::string>()); }, report);
  EXPECT_THAT(report.findings,
              ElementsAre(Is(Level::kOk, "gpu.module", "535.104.05"),
                          AllOf(Is(Level::kProblem, "gpu.driver", "no GPU"),
                                Field(&Finding::advice, HasSubstr("--gpus all")))));
}

TEST_F(Machine, GpusAndTheirInstancesAreListed) {
  WriteGpu([this](const std::string& path, const std::string& text) { Write(path, text); });
  Write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Kernel Module  535.104.05  Sat");
  Write("/proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t NVIDIA H100\nBus Location: \t 0000:01:00.0");
  fs::create_directories(Path("/proc/driver/nvidia/capabilities/gpu0/mig/gi1"));
  fs::create_directories(Path("/proc/driver/nvidia/capabilities/gpu0/mig/gi2"));
  Report report;
  ExamineGpus(
      files(), [] { return Gpus(std::vector<std::string>{"GPU 0: compute capability 9.0"}); },
      report);
  EXPECT_THAT(report.findings,
              ElementsAre(Is(Level::kOk, "gpu.module", "535.104.05"),
                          Is(Level::kOk, "gpu.device0", "NVIDIA H100 at 0000:01:00.0"),
                          Is(Level::kNote, "gpu.mig", "2 MIG instances"),
                          Is(Level::kOk, "gpu.cuda0", "compute capability 9.0")));
}

TEST_F(Machine, ADriverThatCrashesIsAProblem) {
  Report report;
  ExamineGpus(files(), [] { return Gpus(base::InternalError("it ended by signal 11")); }, report);
  EXPECT_THAT(report.findings, ElementsAre(Is(Level::kProblem, "gpu.driver", "signal 11")));
}

TEST(Child, ReturnsItsTexts) {
  const auto texts = TryInChild([] { return std::vector<std::string>{"a", "", "b\nc"}; },
                                std::chrono::seconds(60));
  ASSERT_TRUE(texts.ok());
  EXPECT_THAT(*texts, ElementsAre("a", "", "b\nc"));
}

TEST(Child, ThatCrashesNamesItsSignal) {
  const auto texts = TryInChild(
      []() -> std::vector<std::string> {
        ::raise(SIGKILL);
        return {};
      },
      std::chrono::seconds(60));
  ASSERT_FALSE(texts.ok());
  EXPECT_EQ(texts.status().message(), "it ended by signal 9 (Killed)");
}

TEST(Child, ThatHangsIsEnded) {
  const auto texts = TryInChild(
      []() -> std::vector<std::string> {
        while (true) ::pause();
      },
      std::chrono::milliseconds(1));
  ASSERT_FALSE(texts.ok());
  EXPECT_THAT(std::string(texts.status().message()), HasSubstr("did not end"));
}

}  // namespace
}  // namespace nereid::doctor
