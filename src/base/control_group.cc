// SPDX-License-Identifier: Apache-2.0
#include "base/control_group.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace nereid::base {
namespace {

constexpr const char* kMount = "/sys/fs/cgroup";
// Version 1 writes "no limit" as the largest number of whole pages.
constexpr uint64_t kNoLimitV1 = uint64_t{1} << 62;

// A hierarchy of control groups.
struct Hierarchy {
  std::string mount;
  std::string path;  // of the group of this process, from the mount
};

// Returns the folders of the group and of those above it. In a container the path may be that of
// the host, which does not exist here; then the mount is the container's own group.
std::vector<std::string> Groups(const SystemFiles& files, const Hierarchy& hierarchy) {
  std::string path = hierarchy.path == "/" ? "" : hierarchy.path;
  if (!path.starts_with('/') || !files.Exists(hierarchy.mount + path)) path.clear();
  std::vector<std::string> folders = {hierarchy.mount + path};
  while (!path.empty()) {
    path.resize(path.rfind('/'));
    folders.push_back(hierarchy.mount + path);
  }
  return folders;
}

// Returns the hierarchy of a controller of version 1, or of version 2 if `controller` is empty.
std::optional<Hierarchy> Find(const SystemFiles& files, std::string_view controller) {
  const std::string text = files.Text("/proc/self/cgroup").value_or("");
  for (const std::string_view line : Lines(text)) {
    // ID:CONTROLLERS:PATH
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string names(line.substr(first + 1, second - first - 1));
    const std::string path(line.substr(second + 1));
    if (controller.empty() && names.empty()) {
      const bool is_hybrid = files.Exists(fmt::format("{}/unified", kMount));
      return Hierarchy{fmt::format("{}{}", kMount, is_hybrid ? "/unified" : ""), path};
    }
    const bool is_it =
        fmt::format(",{},", names).find(fmt::format(",{},", controller)) != std::string::npos;
    if (controller.empty() || !is_it) continue;
    // The folder has the names of all controllers, and often a link for each.
    const std::string mount = fmt::format("{}/{}", kMount, names);
    return Hierarchy{files.Exists(mount) ? mount : fmt::format("{}/{}", kMount, controller), path};
  }
  return std::nullopt;
}

// Memory that the kernel gives back when it is needed counts as used as well; it is taken off.
uint64_t UsedBytes(const SystemFiles& files, const std::string& folder, const char* usage,
                   const char* reclaimable) {
  const uint64_t used = files.Number(folder + usage).value_or(0);
  const auto cached =
      ToNumber(files.Field(folder + "/memory.stat", reclaimable).value_or("")).value_or(0);
  return used - std::min(used, cached);
}

template <typename T>
void Lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

void ReadGroup2(const SystemFiles& files, const std::string& folder, ControlGroupLimits& limits) {
  const auto memory = files.Number(folder + "/memory.max");
  if (memory && (!limits.memory_bytes || *memory < *limits.memory_bytes)) {
    limits.memory_bytes = memory;
    limits.memory_used_bytes = UsedBytes(files, folder, "/memory.current", "inactive_file");
  }
  const std::string quota = files.Text(folder + "/cpu.max").value_or("");
  const std::vector<std::string_view> words = Words(quota);
  if (words.size() == 2) {
    const auto time = ToNumber(words[0]);
    const auto period = ToNumber(words[1]);
    if (time && period.value_or(0) > 0) {
      Lower(limits.cpus, static_cast<double>(*time) / static_cast<double>(*period));
    }
  }
  if (const auto tasks = files.Number(folder + "/pids.max")) Lower(limits.tasks, *tasks);
}

void ReadMemory1(const SystemFiles& files, const std::string& folder, ControlGroupLimits& limits) {
  const auto memory = files.Number(folder + "/memory.limit_in_bytes");
  if (!memory || *memory >= kNoLimitV1) return;
  if (limits.memory_bytes && *limits.memory_bytes <= *memory) return;
  limits.memory_bytes = memory;
  limits.memory_used_bytes =
      UsedBytes(files, folder, "/memory.usage_in_bytes", "total_inactive_file");
}

void ReadCpu1(const SystemFiles& files, const std::string& folder, ControlGroupLimits& limits) {
  const auto time = files.Number(folder + "/cpu.cfs_quota_us");  // -1, which is no number: no limit
  const auto period = files.Number(folder + "/cpu.cfs_period_us");
  if (time && period.value_or(0) > 0) {
    Lower(limits.cpus, static_cast<double>(*time) / static_cast<double>(*period));
  }
}

}  // namespace

ControlGroupLimits ReadControlGroups(const SystemFiles& files) {
  ControlGroupLimits limits;
  const auto each = [&](std::string_view controller, auto&& read) {
    const std::optional<Hierarchy> hierarchy = Find(files, controller);
    if (!hierarchy) return;
    for (const std::string& folder : Groups(files, *hierarchy)) read(folder);
  };
  each("", [&](const std::string& folder) { ReadGroup2(files, folder, limits); });
  each("memory", [&](const std::string& folder) { ReadMemory1(files, folder, limits); });
  each("cpu", [&](const std::string& folder) { ReadCpu1(files, folder, limits); });
  each("pids", [&](const std::string& folder) {
    if (const auto tasks = files.Number(folder + "/pids.max")) Lower(limits.tasks, *tasks);
  });
  return limits;
}

}  // namespace nereid::base
