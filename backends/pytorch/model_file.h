// SPDX-License-Identifier: Apache-2.0
// Tells what a model's file is before PyTorch reads it, whose own errors are about pickles and
// archives rather than about what the user should do.
#pragma once

#include <string>

#include "backend_kit/error.h"

namespace nereid::pytorch {

// Fails, with what the file is and what to do, unless it can be a TorchScript file.
backend::Error CheckTorchScriptFile(const std::string& path);

}  // namespace nereid::pytorch
