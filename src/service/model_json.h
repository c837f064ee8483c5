// SPDX-License-Identifier: Apache-2.0
// The JSON of server and model descriptions that HTTP and the C API share.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "service/service.h"

namespace nereid::service {

std::string ToJson(const ServerMetadata& metadata);
std::string ToJson(const ModelMetadata& metadata);
std::string ToJson(std::span<const ModelStatistics> list);
std::string ToJson(std::span<const IndexEntry> index);
std::string ToJson(const TrafficState& state);
// {"ready":false,"checks":[...]}, where `quality` is "ready" or "live".
std::string ToJson(std::string_view quality, bool is_good, std::span<const HealthCheck> checks);

}  // namespace nereid::service
