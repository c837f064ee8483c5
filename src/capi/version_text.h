// SPDX-License-Identifier: Apache-2.0
// Model versions as the C API passes them, in the form that service::Service takes.
#pragma once

#include <cstdint>
#include <string>

namespace nereid::capi {

// -1 lets the server choose.
inline std::string VersionText(int64_t version) {
  return version == -1 ? std::string() : std::to_string(version);
}

}  // namespace nereid::capi
