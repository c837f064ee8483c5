// SPDX-License-Identifier: Apache-2.0
// Whether a file of a model is the one that its configuration expects.
#pragma once

#include <string>
#include <string_view>

#include "backend_kit/error.h"

namespace nereid::checksum_agent {

// `key` is "MD5:<path in the model's folder>", the name of the algorithm in any case; `expected`
// the checksum in lower-case hexadecimal digits. Success when the file has it. An error, too, when
// the path leads out of `model_folder`: the text tells the checksum that was found, and other files
// are nobody's business. Error texts that users know are those of Triton's agent.
backend::Error CheckFile(const std::string& model_folder, std::string_view key,
                         std::string_view expected);

}  // namespace nereid::checksum_agent
