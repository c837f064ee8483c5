// SPDX-License-Identifier: Apache-2.0
// Files that arguments name.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::cli {

// Returns the content; "-" is the standard input. INVALID_ARGUMENT with the file's name if it
// cannot be read.
base::Result<std::string> ReadFile(const std::string& path);

// Whether WriteFile will be able to, as far as that is known beforehand: for work that would be for
// nothing. Changes nothing.
base::Status CheckWritable(const std::string& path);

// Replaces the file. The error has its name.
base::Status WriteFile(const std::string& path, std::string_view content);

}  // namespace nereid::cli
