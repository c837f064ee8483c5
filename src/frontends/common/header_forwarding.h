// SPDX-License-Identifier: Apache-2.0
// Request headers that become parameters of the request (Triton's --http-header-forward-pattern and
// --grpc-header-forward-pattern), for models to read.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "core/request.h"

namespace re2 {
class RE2;
}

namespace nereid::common {

// Immutable. The time of a match is linear in the header's name, whatever the pattern.
class HeaderForwarder {
 public:
  // `pattern` is a regular expression in RE2's syntax that is looked for anywhere in a header's
  // name, in any case unless it begins with (?-i). An error says what is wrong with it.
  static base::Result<std::unique_ptr<HeaderForwarder>> Create(std::string_view pattern);
  ~HeaderForwarder();

  // Adds the header to the parameters of `request` if its name matches. An error when that name has
  // a meaning of its own and no client may set it by a header.
  base::Status Offer(std::string_view name, std::string_view value, core::Request& request) const;

 private:
  explicit HeaderForwarder(std::unique_ptr<re2::RE2> pattern);
  const std::unique_ptr<re2::RE2> pattern_;
};

}  // namespace nereid::common
