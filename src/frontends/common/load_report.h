// SPDX-License-Identifier: Apache-2.0
// What responses tell load balancers of the server's load (ORCA), for all protocols.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nereid::common {

// The request header, or metadata, that asks for it.
inline constexpr std::string_view kLoadFormatHeader = "endpoint-load-metrics-format";

// The name of the answer, and of the answer as a serialized OrcaLoadReport.
inline constexpr std::string_view kLoadHeader = "endpoint-load-metrics";
inline constexpr std::string_view kBinaryLoadHeader = "endpoint-load-metrics-bin";

// Returns the value of kLoadHeader in the format "json" or "text": how full the key-value caches of
// language models are, as their backends say on the metrics page `metrics`. Empty if the page lacks
// that, or for another format.
std::string LoadText(std::string_view format, std::string_view metrics);

// Returns a message xds.data.orca.v3.OrcaLoadReport with the same, and with the number of requests
// in flight and the longest time in a queue.
std::string LoadMessage(std::string_view metrics);

}  // namespace nereid::common
