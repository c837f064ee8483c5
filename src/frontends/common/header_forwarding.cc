// SPDX-License-Identifier: Apache-2.0
#include "common/header_forwarding.h"

#include <string>

#include <re2/re2.h>

#include "common/parameters.h"

namespace nereid::common {

HeaderForwarder::HeaderForwarder(std::unique_ptr<re2::RE2> pattern)
    : pattern_(std::move(pattern)) {}

HeaderForwarder::~HeaderForwarder() = default;

base::Result<std::unique_ptr<HeaderForwarder>> HeaderForwarder::Create(std::string_view pattern) {
  const std::string text = "(?i)" + std::string(pattern);
  auto compiled = std::make_unique<re2::RE2>(text, re2::RE2::Quiet);
  if (!compiled->ok()) {
    return base::InvalidArgumentError("not a regular expression: " + compiled->error());
  }
  return std::unique_ptr<HeaderForwarder>(new HeaderForwarder(std::move(compiled)));
}

base::Status HeaderForwarder::Offer(std::string_view name, std::string_view value,
                                    core::Request& request) const {
  if (!re2::RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *pattern_)) {
    return base::OkStatus();
  }
  NEREID_RETURN_IF_ERROR(CheckForwardedHeader(name));
  const std::string_view kept_name = request.arena().Copy(name);
  const std::string_view kept_value = request.arena().Copy(value);
  if (kept_name.size() != name.size() || kept_value.size() != value.size()) {
    return base::UnavailableError("out of memory");
  }
  request.parameters.push_back({kept_name, kept_value});
  return base::OkStatus();
}

}  // namespace nereid::common
