// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace nereid::object_store {

// Whether a token that is sent to this address reaches nobody else: it is encrypted, or stays on
// this machine.
bool IsConfidential(const std::string& endpoint);

}  // namespace nereid::object_store
