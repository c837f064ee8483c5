// SPDX-License-Identifier: Apache-2.0
// Preprocessing and postprocessing for a model of small gray images. Independent of servers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace images {

// Reads an image in the portable gray map format (PGM, text "P2" or binary "P5"), resizes it to
// `width` x `height` by averaging, and writes width * height gray levels from 0 (black) to `white`
// to `pixels`, row by row. Returns the error in the image, or "". Reads nothing beyond `file`,
// whatever its header says.
std::string DecodePgm(std::string_view file, size_t width, size_t height, float white,
                      std::span<float> pixels);

// Returns the position of the largest value. REQUIRES: there is at least one.
size_t Largest(std::span<const float> values);

}  // namespace images
