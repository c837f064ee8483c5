// SPDX-License-Identifier: Apache-2.0
// What happens before and after a model that looks at small gray images. Knows nothing of servers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace images {

// Reads an image in the portable gray map format (PGM, text "P2" or binary "P5"), brings it to
// `width` x `height` by averaging, and writes width * height gray levels from 0 (black) to `white`
// to `pixels`, row by row. Returns what is wrong with the image, "" if nothing. Reads nothing
// beyond `file`, whatever its header says.
std::string DecodePgm(std::string_view file, size_t width, size_t height, float white,
                      std::span<float> pixels);

// The position of the largest value; needs at least one.
size_t Largest(std::span<const float> values);

}  // namespace images
