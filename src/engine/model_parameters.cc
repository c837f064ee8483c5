// SPDX-License-Identifier: Apache-2.0
#include "engine/model_parameters.h"

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace nereid::engine {
namespace {

base::Status Unexpected(const config::ModelConfig& config, std::string_view key,
                        std::string_view value, std::string_view expected) {
  return base::InvalidArgumentError(fmt::format("model '{}': parameter '{}' is '{}'; expected {}",
                                                config.name, key, value, expected));
}

// Sets `number` to the value of the parameter; leaves it alone if there is none.
template <typename Number>
base::Status ReadNumber(const config::ModelConfig& config, const std::string& key, Number& number) {
  const auto found = config.parameters.find(key);
  if (found == config.parameters.end()) return base::OkStatus();
  const std::string& text = found->second;
  Number read = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, read);
  const auto as_double = static_cast<double>(read);
  if (error != std::errc() || rest != end || !std::isfinite(as_double) || !(as_double > 0)) {
    return Unexpected(config, key, text, "a number above 0");
  }
  number = read;
  return base::OkStatus();
}

}  // namespace

base::Result<bool> AdaptsConcurrency(const config::ModelConfig& config, bool otherwise) {
  const std::string key = "adaptive_concurrency";
  const auto found = config.parameters.find(key);
  if (found == config.parameters.end()) return otherwise;
  if (found->second != "true" && found->second != "false") {
    return Unexpected(config, key, found->second, "'true' or 'false'");
  }
  return found->second == "true";
}

base::Result<core::CallerLimits> CallerLimitsOf(const config::ModelConfig& config) {
  core::CallerLimits limits;
  NEREID_RETURN_IF_ERROR(ReadNumber(config, "caller_requests_per_second", limits.requests_per_s));
  NEREID_RETURN_IF_ERROR(ReadNumber(config, "caller_bytes_per_second", limits.bytes_per_s));
  NEREID_RETURN_IF_ERROR(ReadNumber(config, "caller_in_flight", limits.in_flight));
  return limits;
}

}  // namespace nereid::engine
