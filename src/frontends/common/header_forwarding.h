// SPDX-License-Identifier: Apache-2.0
// Request headers that become parameters of the request for its model (Triton's
// --http-header-forward-pattern and --grpc-header-forward-pattern).
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "core/request.h"

namespace re2 {
class RE2;
}

namespace nereid::common {

// Immutable. Matching takes time linear in the header's name, for any pattern.
class HeaderForwarder {
 public:
  // `pattern` is a regular expression in RE2's syntax that is searched for anywhere in a header's
  // name, ignoring case unless it begins with (?-i). The error says what is wrong with it.
  static base::Result<std::unique_ptr<HeaderForwarder>> Create(std::string_view pattern);
  ~HeaderForwarder();

  // Adds the header to the parameters of `request` if its name matches. Fails if that name is
  // reserved and no client may set it by a header.
  base::Status Offer(std::string_view name, std::string_view value, core::Request& request) const;

 private:
  explicit HeaderForwarder(std::unique_ptr<re2::RE2> pattern);
  const std::unique_ptr<re2::RE2> pattern_;
};

}  // namespace nereid::common
