// SPDX-License-Identifier: Apache-2.0
// Infer heads as nearly every client writes them: short, tensors in the binary part, plain names,
// whole numbers. Read in one pass without any preparation, which for so little text costs more than
// the reading. It answers "taken" or "not for me"; errors and everything else are for the other
// readers. Private to this module.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/request.h"
#include "http/infer_request.h"

namespace nereid::http {

// Longer heads have more in them than this reader knows, or are worth the preparation.
inline constexpr size_t kMostPlainBytes = 1024;

// False: nothing is decided and `request` and `answer` may be half filled.
bool ReadPlainHead(std::string_view json, std::string_view binary, core::Request& request,
                   AnswerOptions& answer);

}  // namespace nereid::http
