// SPDX-License-Identifier: Apache-2.0
// Which outputs the requests of a batch want.
#pragma once

#include <cstdint>
#include <vector>

#include "backend_kit/error.h"

namespace nereid::backend {

// The outputs that each request of one batch after the other wants. Confined to the thread that
// executes.
class WantedOutputs {
 public:
  // Starts a new batch, of which no request was read.
  void Begin(size_t requests, size_t outputs) {
    outputs_ = outputs;
    wanted_.assign(requests * outputs, 0);
  }

  // Reads request `r`. find(hint, name) returns the position of an output, or -1 for an unknown
  // one, which is left out.
  template <typename Find>
  Error Read(TRITONBACKEND_Request* request, uint32_t r, Find&& find) {
    uint32_t count = 0;
    NEREID_KIT_TRY(TRITONBACKEND_RequestOutputCount(request, &count));
    for (uint32_t o = 0; o < count; ++o) {
      const char* name = nullptr;
      NEREID_KIT_TRY(TRITONBACKEND_RequestOutputName(request, o, &name));
      if (const int output = find(o, name); output >= 0) {
        wanted_[r * outputs_ + static_cast<size_t>(output)] = 1;
      }
    }
    return {};
  }

  bool has(uint32_t r, size_t output) const { return wanted_[r * outputs_ + output] != 0; }

 private:
  size_t outputs_ = 0;
  std::vector<char> wanted_;  // of each request, each output
};

}  // namespace nereid::backend
