// SPDX-License-Identifier: Apache-2.0
// Tells whether a file is a whole shared library for this machine. The system's loader reads a
// library that was cut off beyond its end, which ends the process.
#pragma once

#include <string>

#include "backend_kit/error.h"

namespace nereid::pytorch {

// Fails with what is wrong.
backend::Error CheckLibraryFile(const std::string& path);

}  // namespace nereid::pytorch
