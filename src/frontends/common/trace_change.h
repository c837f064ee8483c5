// SPDX-License-Identifier: Apache-2.0
// A client's changes of the trace settings, in the texts of the protocols.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "observe/trace.h"

namespace nereid::common {

// Reads one setting into `change`; `name` is one of trace_level, trace_rate, trace_count and
// log_frequency. Unknown levels are skipped. InvalidArgument for invalid values. `after_got`
// follows "got:" if a count is too small: Triton has a blank there in gRPC alone.
base::Status ReadTraceLevels(std::span<const std::string_view> levels,
                             observe::TraceChange& change);
base::Status ReadTraceNumber(std::string_view name, const std::string& text,
                             observe::TraceChange& change, std::string_view after_got = "");
// Resets a setting to the server's value, or to its value at the start.
void ClearTraceSetting(std::string_view name, observe::TraceChange& change);

inline constexpr std::string_view kTraceNumbers[] = {"trace_rate", "trace_count", "log_frequency"};

// Returns "OFF", or the levels that are on.
std::vector<std::string_view> TraceLevelNames(uint32_t levels);
// Returns the further settings as protocols show them: names and texts, in order.
std::vector<std::pair<std::string, std::string>> TraceSettingTexts(const observe::TraceView& view);

}  // namespace nereid::common
