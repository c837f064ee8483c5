// SPDX-License-Identifier: Apache-2.0
// The table of contents of a ZIP archive, which is what PyTorch's files are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend_kit/error.h"

namespace nereid::pytorch {

// A file in an archive, as its directory describes it.
struct ZipEntry {
  std::string name;
  uint64_t compressed_size = 0;
  uint64_t size = 0;
  uint64_t offset = 0;  // of the file's own header
  uint32_t method = 0;  // of compression; 0: none
};

// Reads the directory at the end of an archive of any size, with every bound checked.
// Fails with a sentence about what is wrong with the archive.
// Names are as the archive has them, which may be hostile.
backend::Result<std::vector<ZipEntry>> ReadZipDirectory(const std::string& path);

}  // namespace nereid::pytorch
