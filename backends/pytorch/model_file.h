// SPDX-License-Identifier: Apache-2.0
// Tells what a model's file is before PyTorch reads it, whose own errors are about pickles and
// archives rather than about what the user should do.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/error.h"
#include "pytorch_backend/zip_directory.h"

namespace nereid::pytorch {

// Fails, with what the file is and what to do, unless it can be a TorchScript file.
backend::Error CheckTorchScriptFile(const std::string& path);

// Returns what is in a package compiled by AOTInductor. Fails, as above, for other files.
backend::Result<std::vector<ZipEntry>> ReadCompiledEntries(const std::string& path);

}  // namespace nereid::pytorch
