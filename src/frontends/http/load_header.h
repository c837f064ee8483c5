// SPDX-License-Identifier: Apache-2.0
// The header in which a generate reply tells a load balancer how full the key-value cache of its
// model is (ORCA), from the metrics that LLM backends publish.
#pragma once

#include <string>
#include <string_view>

namespace nereid::http {

// The request header that asks for it: "json" or "text".
inline constexpr std::string_view kLoadFormatHeader = "endpoint-load-metrics-format";

// The complete header line; empty when the metrics page has no such metrics or there is no such
// format.
std::string MakeLoadHeader(std::string_view format, std::string_view metrics);

}  // namespace nereid::http
