// SPDX-License-Identifier: Apache-2.0
// What responses tell load balancers of the server's load (ORCA), for all protocols.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "service/service.h"

namespace nereid::common {

// The request header, or metadata, that asks for it.
inline constexpr std::string_view kLoadFormatHeader = "endpoint-load-metrics-format";

// The name of the answer, and of the answer as a serialized OrcaLoadReport.
inline constexpr std::string_view kLoadHeader = "endpoint-load-metrics";
inline constexpr std::string_view kBinaryLoadHeader = "endpoint-load-metrics-bin";

// The metric family by which backends of language models say how full their key-value caches are.
inline constexpr const char* kKeyValueCacheFamily = "nv_trt_llm_kv_cache_block_metrics";

// Returns the value of kLoadHeader in the format "json" or "text"; empty for another one. First, as
// in Triton, how full the key-value caches of language models are, if the lines of
// kKeyValueCacheFamily say it; then the number of requests in flight and the longest time in a
// queue.
std::string LoadText(std::string_view format, const service::LoadTotals& totals,
                     std::string_view cache_lines);

// Returns a message xds.data.orca.v3.OrcaLoadReport with the same.
std::string LoadMessage(const service::LoadTotals& totals, std::string_view cache_lines);

// The same of what `service` says. Only that is read, and not the whole metrics page: a balancer
// asks with every request, and the page has lines for every model.
std::string ReadLoadText(std::string_view format, service::Service& service);
std::string ReadLoadMessage(service::Service& service);

}  // namespace nereid::common
