// SPDX-License-Identifier: Apache-2.0
#include "engine/memory_meter.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/allocator.h"
#include "base/log.h"
#include "base/system_files.h"

namespace nereid::engine {
namespace {

uint64_t FieldBytes(std::string_view status, std::string_view field) {
  const size_t start = status.find(field);
  if (start == std::string_view::npos) return 0;
  const std::string_view line = status.substr(start, status.find('\n', start) - start);
  const std::vector<std::string_view> words = base::Words(line);
  if (words.size() < 2) return 0;
  return base::ToNumber(words[1]).value_or(0) * 1024;
}

// Returns the processes that descend from this one.
std::vector<uint64_t> Descendants() {
  const base::SystemFiles files;
  std::multimap<uint64_t, uint64_t> children;
  for (const std::string& name : files.Names("/proc")) {
    const std::optional<uint64_t> pid = base::ToNumber(name);
    if (!pid) continue;
    const std::optional<std::string> parent = files.Field("/proc/" + name + "/status", "PPid");
    if (!parent) continue;
    children.emplace(base::ToNumber(*parent).value_or(0), *pid);
  }
  std::vector<uint64_t> found = {static_cast<uint64_t>(::getpid())};
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

}  // namespace

uint64_t AnonymousBytes(std::string_view status) { return FieldBytes(status, "RssAnon:"); }

MemoryMeter::MemoryMeter(bool with_gpus) {
  if (!with_gpus) return;
  auto gpus = observe::GpuMetrics::Open(observe::kNvmlLibrary, std::chrono::milliseconds(0));
  if (!gpus.ok()) {
    NEREID_LOG(kWarning, "the memory of GPUs is not measured, and models may take all of it: {}",
               gpus.status().message());
    return;
  }
  gpus_ = *std::move(gpus);
  for (size_t i = 0; i < gpus_->gpu_count(); ++i) kinds_.push_back(fmt::format("GPU {}", i));
}

std::vector<uint64_t> MemoryMeter::Measure() {
  // Without this, memory of models that were unloaded would hide what the next one takes.
  base::ReturnFreeMemory();
  std::vector<uint64_t> bytes(kinds_.size());
  const base::SystemFiles files;
  bytes[0] = AnonymousBytes(files.Text("/proc/self/status").value_or(""));
  for (const uint64_t pid : Descendants()) {
    bytes[0] += AnonymousBytes(files.Text(fmt::format("/proc/{}/status", pid)).value_or(""));
  }
  if (gpus_ == nullptr) return bytes;
  const std::vector<observe::GpuReading> readings = gpus_->Read();
  for (size_t i = 0; i < readings.size() && i + 1 < bytes.size(); ++i) {
    bytes[i + 1] = static_cast<uint64_t>(readings[i].used_bytes.value_or(0));
  }
  return bytes;
}

}  // namespace nereid::engine
