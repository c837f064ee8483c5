// SPDX-License-Identifier: Apache-2.0
// The processor: what it can do, how many cores there are, and whether they are busy.
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "doctor/machine.h"

namespace nereid::doctor {
namespace {

// The features that each level of x86-64 adds, by the names of /proc/cpuinfo.
constexpr std::array<std::string_view, 6> kLevel2 = {"cx16",   "lahf_lm", "popcnt",
                                                     "sse4_1", "sse4_2",  "ssse3"};
constexpr std::array<std::string_view, 9> kLevel3 = {"abm",  "avx", "avx2",  "bmi1", "bmi2",
                                                     "f16c", "fma", "movbe", "xsave"};
constexpr std::array<std::string_view, 5> kLevel4 = {"avx512f", "avx512bw", "avx512cd", "avx512dq",
                                                     "avx512vl"};
// Beyond the levels, what makes models in 8 and 16 bits fast.
constexpr std::array<std::string_view, 6> kFast = {"avx_vnni", "avx512_vnni", "avx512_bf16",
                                                   "amx_bf16", "amx_int8",    "avx512_fp16"};

using Features = std::vector<std::string_view>;

bool Has(const Features& features, std::string_view name) {
  return std::ranges::find(features, name) != features.end();
}

template <size_t n>
bool HasAll(const Features& features, const std::array<std::string_view, n>& names) {
  return std::ranges::all_of(names, [&](std::string_view name) { return Has(features, name); });
}

void ExamineFeatures(const base::SystemFiles& files, Report& report) {
  const std::optional<std::string> flags = files.Field("/proc/cpuinfo", "flags");
  if (!flags) {
    report.Ok("processor.features", "no x86-64 processor, so its features are not examined");
    return;
  }
  const Features features = base::Words(*flags);
  const int level = LevelOfX86(features);
  std::string text = fmt::format("x86-64-v{}", level);
  for (const std::string_view name : kFast) {
    if (Has(features, name)) text += fmt::format(", {}", name);
  }
  constexpr int kFastLevel = 3;
  if (level >= kFastLevel) {
    report.Ok("processor.features", text);
  } else if (Has(features, "avx")) {
    report.Note("processor.features", text + " (without AVX2)",
                "Models on the CPU run several times slower than on a processor with AVX2; in a "
                "virtual machine, let it have the features of the host.");
  } else {
    report.Note("processor.features", text + " (without AVX)",
                "TensorFlow's library does not run here, and the others are slow; in a virtual "
                "machine, let it have the features of the host.");
  }
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
}

void ExamineCores(const base::SystemFiles& files, Report& report) {
  const std::string online = files.Text("/sys/devices/system/cpu/online").value_or("?");
  const int usable = UsableCores();
  report.Ok("processor.cores", fmt::format("{} cores may be used (online: {})", usable, online));
  const std::string load = files.Text("/proc/loadavg").value_or("");
  const double running = std::strtod(load.c_str(), nullptr);
  if (usable > 0 && running >= usable) {
    report.Note("processor.load",
                fmt::format("{:.1f} tasks on average want to run on {} cores", running, usable),
                "Other programs slow models down, and measurements here mean little.");
  } else {
    report.Ok("processor.load", fmt::format("{:.1f} tasks on average want to run", running));
  }
}

void ExamineNuma(const base::SystemFiles& files, Report& report) {
  const auto nodes =
      std::ranges::count_if(files.Names("/sys/devices/system/node"), [](const std::string& name) {
        return name.starts_with("node") &&
               base::ToNumber(std::string_view(name).substr(4)).has_value();
      });
  if (nodes <= 1) {
    report.Ok("processor.numa", "one NUMA node");
    return;
  }
  report.Note("processor.numa", fmt::format("{} NUMA nodes", nodes),
              "Memory of another node is slower: bind instances with --host-policy, or run one "
              "server for each node with numactl.");
}

void ExamineFrequency(const base::SystemFiles& files, Report& report) {
  const auto governor = files.Text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor) return;  // usual in virtual machines
  if (*governor != "powersave") {
    report.Ok("processor.frequency", fmt::format("frequency governor {}", *governor));
    return;
  }
  report.Note(
      "processor.frequency", "frequency governor powersave",
      "Single requests may take longer than need be: cpupower frequency-set -g performance");
}

}  // namespace

int LevelOfX86(const std::vector<std::string_view>& features) {
  if (!HasAll(features, kLevel2)) return 1;
  if (!HasAll(features, kLevel3)) return 2;
  return HasAll(features, kLevel4) ? 4 : 3;
}

void ExamineProcessor(const base::SystemFiles& files, Report& report) {
  ExamineFeatures(files, report);
  ExamineCores(files, report);
  ExamineNuma(files, report);
  ExamineFrequency(files, report);
}

}  // namespace nereid::doctor
