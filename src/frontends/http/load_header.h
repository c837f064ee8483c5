// SPDX-License-Identifier: Apache-2.0
// The header of a reply that tells a load balancer how busy the server is (ORCA).
#pragma once

#include <string>
#include <string_view>

#include "service/service.h"

namespace nereid::http {

// Returns the complete header line; empty if the format is unknown.
std::string MakeLoadHeader(std::string_view format, service::Service& service);

}  // namespace nereid::http
