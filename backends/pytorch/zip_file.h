// SPDX-License-Identifier: Apache-2.0
// The files inside a ZIP archive, read piece by piece and never beyond the size that the archive's
// directory gives them.
#pragma once

#include <cstdint>
#include <string>

#include "backend_kit/error.h"
#include "pytorch_backend/zip_directory.h"

namespace nereid::pytorch {

// Returns the contents of a file. Fails, with a sentence about what is wrong, for files of more
// than `limit` bytes, and for those that are damaged or compressed in an unusual way.
backend::Result<std::string> ReadZipFile(const std::string& archive, const ZipEntry& entry,
                                         uint64_t limit);

// Writes the file to `to`, whose folder exists. May leave a part of it there if it fails.
backend::Error ExtractZipFile(const std::string& archive, const ZipEntry& entry,
                              const std::string& to);

// Whether the name of a file in an archive stays below the folder that it is unpacked to.
bool IsInsideArchive(std::string_view name);

}  // namespace nereid::pytorch
