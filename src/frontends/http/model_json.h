// SPDX-License-Identifier: Apache-2.0
// The JSON bodies of the requests that describe the server and its models.
#pragma once

#include <span>
#include <string>

#include "service/service.h"

namespace nereid::http {

std::string ToJson(const service::ServerMetadata& metadata);
std::string ToJson(const service::ModelMetadata& metadata);
std::string ToJson(std::span<const service::ModelStatistics> list);
std::string ToJson(std::span<const service::IndexEntry> index);

}  // namespace nereid::http
