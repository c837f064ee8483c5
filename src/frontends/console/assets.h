// SPDX-License-Identifier: Apache-2.0
// The files of the console's page, which the build puts into the program (CMakeLists.txt).
#pragma once

#include <span>
#include <string_view>

namespace nereid::console {

// A file, compressed with gzip.
struct Asset {
  std::string_view path;  // below /ui/, such as "assets/index.js"
  std::string_view content_type;
  std::string_view etag;  // with its quotation marks
  std::string_view gzip;
};

// Returns all of them, sorted by path; none if the console was not built. Generated.
std::span<const Asset> Assets();

// Returns the file of that path; null if there is none.
const Asset* FindAsset(std::span<const Asset> assets, std::string_view path);

}  // namespace nereid::console
