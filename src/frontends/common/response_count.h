// SPDX-License-Identifier: Apache-2.0
// What a client is told when a model that is not decoupled did not send one response to a request.
#pragma once

#include <cstddef>

#include <fmt/format.h>

#include "base/status.h"

namespace nereid::common {

// `count` responses were sent. Of one it was not said that it was the last, before the request was
// released.
inline base::Status ResponseCountError(size_t count) {
  if (count == 1) return base::InternalError("the request was released without its last response");
  return base::InternalError(fmt::format("expected a single response, got {}", count));
}

}  // namespace nereid::common
