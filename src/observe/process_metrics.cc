// SPDX-License-Identifier: Apache-2.0
#include "observe/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace nereid::observe {
namespace {

using Kind = MetricsPage::Kind;

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Returns the number that `text` begins with.
std::optional<uint64_t> NumberAt(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// Returns when the machine was started, in seconds since 1970.
std::optional<uint64_t> BootTime() {
  constexpr std::string_view kName = "\nbtime ";
  const std::string stat = ReadFile("/proc/stat");
  const size_t at = stat.find(kName);
  return at == std::string::npos ? std::nullopt
                                 : NumberAt(std::string_view(stat).substr(at + kName.size()));
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
  stat.remove_prefix(name_end + 1);
  ProcessStatus status;
  // Columns are numbered as in proc(5); the first one behind the name is 3.
  for (int column = 3; column <= 24; ++column) {
    const size_t begin = stat.find_first_not_of(' ');
    if (begin == std::string_view::npos) return std::nullopt;
    stat.remove_prefix(begin);
    uint64_t* const place = column == 20   ? &status.threads
                            : column == 22 ? &status.start_ticks
                            : column == 23 ? &status.virtual_bytes
                            : column == 24 ? &status.resident_pages
                                           : nullptr;
    if (place != nullptr) {
      const std::optional<uint64_t> value = NumberAt(stat);
      if (!value) return std::nullopt;
      *place = *value;
    }
    stat.remove_prefix(std::min(stat.find(' '), stat.size()));
  }
  return status;
}

void AddProcessMetrics(MetricsPage& page) {
  if (const auto status = ParseProcessStatus(ReadFile("/proc/self/stat"))) {
    AddStatus(page, *status);
  }
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
