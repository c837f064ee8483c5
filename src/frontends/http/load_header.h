// SPDX-License-Identifier: Apache-2.0
// The header of a generate reply that tells a load balancer how full the key-value cache of its
// model is (ORCA), from the metrics that LLM backends publish.
#pragma once

#include <string>
#include <string_view>

#include "service/service.h"

namespace nereid::http {

// Returns the complete header line; empty if there are no such metrics or the format is unknown.
std::string MakeLoadHeader(std::string_view format, service::Service& service);

}  // namespace nereid::http
