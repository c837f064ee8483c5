// SPDX-License-Identifier: Apache-2.0
// The names, and which states count as busy, follow Triton's core/src/metrics.cc.
#include "observe/cpu_metrics.h"

#include <array>
#include <charconv>

#include "base/system_files.h"

namespace nereid::observe {
namespace {

// Returns the text of a file of the kernel's; empty if it cannot be read.
std::string SystemText(const std::string& path) {
  return base::SystemFiles().Text(path).value_or("");
}

std::optional<uint64_t> TakeNumber(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// Finds the line "<name>:   <kB> kB" and returns its value in bytes.
std::optional<uint64_t> FindBytes(std::string_view meminfo, std::string_view name) {
  const size_t at = meminfo.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = meminfo.substr(at + name.size());
  const std::optional<uint64_t> kilobytes = TakeNumber(rest);
  if (!kilobytes) return std::nullopt;
  return *kilobytes * 1024;
}

}  // namespace

std::optional<CpuTimes> ParseCpuTimes(std::string_view stat) {
  if (!stat.starts_with("cpu ")) return std::nullopt;
  stat.remove_prefix(4);
  // The columns are: user nice system idle iowait irq softirq steal.
  std::array<uint64_t, 8> fields{};
  for (uint64_t& field : fields) {
    const std::optional<uint64_t> value = TakeNumber(stat);
    if (!value) return std::nullopt;
    field = *value;
  }
  return CpuTimes{.busy = fields[0] + fields[1] + fields[2] + fields[5] + fields[6] + fields[7],
                  .idle = fields[3] + fields[4]};
}

std::optional<MemoryBytes> ParseMemory(std::string_view meminfo) {
  const auto total = FindBytes(meminfo, "MemTotal:");
  const auto available = FindBytes(meminfo, "MemAvailable:");
  if (!total || !available || *available > *total) return std::nullopt;
  return MemoryBytes{*total, *total - *available};
}

CpuMetrics::CpuMetrics(std::chrono::milliseconds interval)
    : least_age_ns_(static_cast<uint64_t>(interval.count()) * 500'000) {
  base::MutexLock lock(mutex_);
  Refresh();
}

void CpuMetrics::Refresh() {
  read_at_ns_ = base::NowNs();
  if (const auto times = ParseCpuTimes(SystemText("/proc/stat")); times) {
    const uint64_t busy = times->busy > times_.busy ? times->busy - times_.busy : 0;
    const uint64_t idle = times->idle > times_.idle ? times->idle - times_.idle : 0;
    if (busy + idle > 0) {
      utilization_ = static_cast<double>(busy) / static_cast<double>(busy + idle);
    }
    times_ = *times;
  }
  memory_ = ParseMemory(SystemText("/proc/meminfo")).value_or(MemoryBytes{});
}

void CpuMetrics::AddTo(MetricsPage& page) {
  using Kind = MetricsPage::Kind;
  base::MutexLock lock(mutex_);
  if (base::NowNs() - read_at_ns_ >= least_age_ns_) Refresh();
  page.StartFamily("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", Kind::kGauge);
  page.Add("", utilization_);
  page.StartFamily("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", Kind::kGauge);
  page.Add("", static_cast<double>(memory_.total));
  page.StartFamily("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", Kind::kGauge);
  page.Add("", static_cast<double>(memory_.used));
}

}  // namespace nereid::observe
