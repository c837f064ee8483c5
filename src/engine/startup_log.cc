// SPDX-License-Identifier: Apache-2.0
// Headers and order follow Triton's core/src/server.cc.
#include "engine/startup_log.h"

#include <string_view>

#include <fmt/format.h>

#include "base/log.h"
#include "base/nearest_name.h"
#include "base/text_table.h"

namespace nereid::engine {

void LogBackends(const std::vector<backend_host::LoadedBackend>& backends) {
  base::TextTable table({"Backend", "Path", "Config"});
  for (const backend_host::LoadedBackend& backend : backends) {
    table.Add({backend.name, backend.path, backend.config_json});
  }
  NEREID_LOG_LINES(kInfo, table.Lines());
}

void LogModels(const std::vector<service::IndexEntry>& index) {
  base::TextTable table({"Model", "Version", "Status"});
  for (const service::IndexEntry& entry : index) {
    if (entry.state.empty()) continue;
    std::string status = entry.state;
    // The first line of a reason summarises it; all lines have been logged before.
    const std::string reason = entry.reason.substr(0, entry.reason.find('\n'));
    if (!reason.empty()) status += ": " + reason;
    table.Add({entry.name, entry.version.empty() ? "-" : entry.version, std::move(status)});
  }
  NEREID_LOG_LINES(kInfo, table.Lines());
}

std::string DescribeFailures(const std::vector<service::IndexEntry>& index,
                             const std::set<std::string>& wanted) {
  std::set<std::string_view> failed;
  std::set<std::string_view> ready;
  std::set<std::string_view> missing(wanted.begin(), wanted.end());
  if (missing.contains("*")) missing.clear();
  for (const service::IndexEntry& entry : index) {
    missing.erase(entry.name);
    if (entry.state == "READY") {
      ready.insert(entry.name);
    } else if (!entry.reason.empty()) {
      failed.insert(entry.name);
    }
  }
  const auto list = [](const std::set<std::string_view>& names) {
    return base::QuotedList(std::vector<std::string_view>(names.begin(), names.end()));
  };
  std::vector<std::string> parts;
  if (!missing.empty()) parts.push_back(fmt::format("no model repository has {}", list(missing)));
  if (!failed.empty()) {
    parts.push_back(fmt::format("{} failed, for the reasons above", list(failed)));
  }
  if (parts.empty()) return {};
  if (!ready.empty()) {
    parts.push_back(fmt::format(
        "--exit-on-error=false would serve {}",
        ready.size() == 1 ? "the other model" : fmt::format("the other {} models", ready.size())));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace nereid::engine
