// SPDX-License-Identifier: Apache-2.0
// Headers and order: core/src/server.cc of Triton.
#include "engine/start_tables.h"

#include "base/log.h"
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
    // Of a reason of several lines the first says what is wrong; all of them have been logged.
    const std::string reason = entry.reason.substr(0, entry.reason.find('\n'));
    if (!reason.empty()) status += ": " + reason;
    table.Add({entry.name, entry.version.empty() ? "-" : entry.version, std::move(status)});
  }
  NEREID_LOG_LINES(kInfo, table.Lines());
}

}  // namespace nereid::engine
