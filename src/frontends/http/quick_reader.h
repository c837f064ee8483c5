// SPDX-License-Identifier: Apache-2.0
// The quick reader of infer heads: one pass over what clients usually send. It accepts a head or
// leaves it, with all errors and rarities, to the exact reader. Private to this module.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/request.h"
#include "http/infer_request.h"

namespace nereid::http {

// Keeps a little memory from request to request. Thread-compatible.
class QuickReader {
 public:
  explicit QuickReader(size_t max_input_bytes) : max_input_bytes_(max_input_bytes) {}

  // If this returns false, nothing is decided and `request` and `response_options` may be partly
  // filled.
  bool Read(std::string_view json, std::string_view binary, core::Request& request,
            ResponseOptions& response_options);

 private:
  const size_t max_input_bytes_;
  std::string scratch_;  // strings with resolved escapes, and the elements of a BYTES tensor
};

}  // namespace nereid::http
