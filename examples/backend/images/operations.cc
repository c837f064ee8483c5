// SPDX-License-Identifier: Apache-2.0
#include "operations.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace images {
namespace {

constexpr size_t kMaxPixels = size_t{64} << 20;

// Reads the file token by token.
class Reader {
 public:
  explicit Reader(std::string_view file) : rest_(file) {}

  // Reads a number of the header or of a text image; returns -1 if there is none. Comments extend
  // to the end of their line.
  long Number() {
    while (!rest_.empty() && (IsSpace(rest_[0]) || rest_[0] == '#')) {
      rest_.remove_prefix(rest_[0] == '#' ? std::min(rest_.find('\n'), rest_.size()) : 1);
    }
    long number = -1;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc() || number < 0) {
      return -1;
    }
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return number;
  }
  // Returns the bytes after the one that ends the header.
  std::string_view Bytes() const { return rest_.substr(std::min<size_t>(1, rest_.size())); }

 private:
  static bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  std::string_view rest_;
};

struct Image {
  size_t width = 0;
  size_t height = 0;
  std::vector<float> levels;  // 0 to 1
};

std::string Read(std::string_view file, Image& image) {
  const bool is_text = file.substr(0, 2) == "P2";
  if (!is_text && file.substr(0, 2) != "P5") {
    return "the image is not a portable gray map: it begins with neither P2 nor P5";
  }
  Reader reader(file.substr(2));
  const long width = reader.Number();
  const long height = reader.Number();
  const long most = reader.Number();
  if (width <= 0 || height <= 0 || most <= 0 || most > 65535) {
    return "the image's header is damaged";
  }
  image.width = static_cast<size_t>(width);
  image.height = static_cast<size_t>(height);
  if (image.width > kMaxPixels / image.height) {
    return "the image has more than 64 million pixels";
  }
  const size_t count = image.width * image.height;
  const std::string_view bytes = reader.Bytes();
  const size_t bytes_each = most > 255 ? 2 : 1;
  // A pixel takes at least a byte, so memory is allocated only for pixels that exist.
  if (bytes.size() < (is_text ? count : count * bytes_each)) {
    return "the image ends before its last pixel";
  }
  image.levels.resize(count);
  for (size_t i = 0; i < count; ++i) {
    long level = 0;
    if (is_text) {
      level = reader.Number();
    } else {
      for (size_t b = 0; b < bytes_each; ++b) {
        level = level << 8 | static_cast<unsigned char>(bytes[i * bytes_each + b]);
      }
    }
    if (level < 0 || level > most) {
      return "pixel " + std::to_string(i) + " of the image is missing or beyond " +
             std::to_string(most);
    }
    image.levels[i] = static_cast<float>(level) / static_cast<float>(most);
  }
  return {};
}

// Returns the range of cell `i` of `cells` on a line of `size` pixels: at least one pixel.
std::pair<size_t, size_t> Range(size_t i, size_t cells, size_t size) {
  const size_t begin = i * size / cells;
  return {begin, std::max(begin + 1, (i + 1) * size / cells)};
}

}  // namespace

std::string DecodePgm(std::string_view file, size_t width, size_t height, float white,
                      std::span<float> pixels) {
  Image image;
  if (std::string problem = Read(file, image); !problem.empty()) {
    return problem;
  }
  for (size_t y = 0; y < height; ++y) {
    const auto [top, bottom] = Range(y, height, image.height);
    for (size_t x = 0; x < width; ++x) {
      const auto [left, right] = Range(x, width, image.width);
      double sum = 0;
      for (size_t row = top; row < bottom; ++row) {
        for (size_t column = left; column < right; ++column) {
          sum += image.levels[row * image.width + column];
        }
      }
      const auto area = static_cast<double>((bottom - top) * (right - left));
      pixels[y * width + x] = static_cast<float>(sum / area) * white;
    }
  }
  return {};
}

size_t Largest(std::span<const float> values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace images
