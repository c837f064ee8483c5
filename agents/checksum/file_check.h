// SPDX-License-Identifier: Apache-2.0
// Checks a file of a model against the checksum in its configuration.
#pragma once

#include <string>
#include <string_view>

#include "backend_kit/error.h"

namespace nereid::checksum_agent {

// Checks a file. `key` is "MD5:<path in the model's folder>", with the name of the algorithm in any
// case; `expected` is the checksum in lower-case hexadecimal digits. Also fails if the path leads
// out of `model_folder`, because the error text contains the actual checksum, which for other files
// is confidential. Known error texts are those of Triton's agent.
backend::Error CheckFile(const std::string& model_folder, std::string_view key,
                         std::string_view expected);

}  // namespace nereid::checksum_agent
