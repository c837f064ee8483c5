// SPDX-License-Identifier: Apache-2.0
// The process_* metric families, by the names that Prometheus' own client libraries give them: what
// the server's process takes. Processes of Python models and of isolated models are not counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "observe/metrics_page.h"

namespace nereid::observe {

// What the kernel says about a process.
struct ProcessStatus {
  uint64_t threads = 0;
  uint64_t start_ticks = 0;  // after boot, in the kernel's ticks
  uint64_t virtual_bytes = 0;
  uint64_t resident_pages = 0;
};
// Parses the text of /proc/<process>/stat. Returns nothing for any other text.
std::optional<ProcessStatus> ParseProcessStatus(std::string_view stat);

// Reads the values of this process and adds them to the page. What cannot be read is left out.
void AddProcessMetrics(MetricsPage& page);

}  // namespace nereid::observe
