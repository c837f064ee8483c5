// SPDX-License-Identifier: Apache-2.0
#include "observe/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/system_files.h"

namespace nereid::observe {
namespace {

using Kind = MetricsPage::Kind;

// Returns when the machine was started, in seconds since 1970.
std::optional<uint64_t> BootTime() {
  const std::optional<std::string> time = base::SystemFiles().Field("/proc/stat", "btime");
  return time ? base::ToNumber(*time) : std::nullopt;
}

std::optional<uint64_t> CountDescriptors() {
  std::error_code error;
  uint64_t count = 0;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) ++count;
  // One of them is the folder's own.
  return error || count == 0 ? std::nullopt : std::optional(count - 1);
}

void AddGauge(MetricsPage& page, const char* name, const char* help, double value) {
  page.StartFamily(name, help, Kind::kGauge);
  page.Add("", value);
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

void AddStatus(MetricsPage& page, const ProcessStatus& status) {
  AddGauge(
      page, "process_resident_memory_bytes", "Resident memory size in bytes.",
      static_cast<double>(status.resident_pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  AddGauge(page, "process_virtual_memory_bytes", "Virtual memory size in bytes.",
           static_cast<double>(status.virtual_bytes));
  AddGauge(page, "process_threads", "Number of threads of the process.",
           static_cast<double>(status.threads));
  if (const std::optional<uint64_t> boot = BootTime()) {
    AddGauge(page, "process_start_time_seconds",
             "Start time of the process since unix epoch in seconds.",
             static_cast<double>(*boot) + static_cast<double>(status.start_ticks) /
                                              static_cast<double>(::sysconf(_SC_CLK_TCK)));
  }
}

}  // namespace

std::optional<ProcessStatus> ParseProcessStatus(std::string_view stat) {
  // The name of the program stands in parentheses, and may have blanks and parentheses itself.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> words = base::Words(stat.substr(name_end + 1));
  // Columns are numbered as in proc(5); the first one behind the name is 3.
  const auto column = [&words](size_t number) {
    return number - 3 < words.size() ? base::ToNumber(words[number - 3]) : std::nullopt;
  };
  const auto threads = column(20);
  const auto start_ticks = column(22);
  const auto virtual_bytes = column(23);
  const auto resident_pages = column(24);
  if (!threads || !start_ticks || !virtual_bytes || !resident_pages) return std::nullopt;
  return ProcessStatus{*threads, *start_ticks, *virtual_bytes, *resident_pages};
}

void AddProcessMetrics(MetricsPage& page) {
  const std::string stat = base::SystemFiles().Text("/proc/self/stat").value_or("");
  if (const auto status = ParseProcessStatus(stat)) AddStatus(page, *status);
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    page.StartFamily("process_cpu_seconds_total",
                     "Total user and system CPU time spent in seconds.", Kind::kCounter);
    page.Add("", Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  }
  if (const std::optional<uint64_t> count = CountDescriptors()) {
    AddGauge(page, "process_open_fds", "Number of open file descriptors.",
             static_cast<double>(*count));
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    AddGauge(page, "process_max_fds", "Maximum number of open file descriptors.",
             static_cast<double>(limit.rlim_cur));
  }
}

}  // namespace nereid::observe
