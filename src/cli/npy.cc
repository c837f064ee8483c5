// SPDX-License-Identifier: Apache-2.0
// The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "cli/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/arithmetic.h"
#include "cli/elements.h"
#include "tensor/shape.h"

namespace nereid::cli {
namespace {

using tensor::DataType;

constexpr std::string_view kMagic = "\x93NUMPY";
// The data begin at a multiple of this.
constexpr size_t kAlignment = 64;
// All byte strings of a file that is written together.
constexpr size_t kMaxStrings = size_t{4} << 30;

// A data type and NumPy's name for it, without the byte order.
struct Name {
  DataType type;
  std::string_view name;
};

constexpr Name kNames[] = {
    {DataType::kBool, "b1"},   {DataType::kUint8, "u1"},  {DataType::kUint16, "u2"},
    {DataType::kUint32, "u4"}, {DataType::kUint64, "u8"}, {DataType::kInt8, "i1"},
    {DataType::kInt16, "i2"},  {DataType::kInt32, "i4"},  {DataType::kInt64, "i8"},
    {DataType::kFp16, "f2"},   {DataType::kFp32, "f4"},   {DataType::kFp64, "f8"},
};

base::Status Wrong(std::string_view what) { return base::InvalidArgumentError(std::string(what)); }

// Returns the text of a key's value in the header, which is a Python dictionary:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
std::string_view ValueOf(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return {};
  std::string_view value = header.substr(at + key.size() + 3);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  if (value.starts_with('(')) return value.substr(0, value.find(')') + 1);
  return value.substr(0, value.find_first_of(",}"));
}

// Reads "(3, 4)", "(3,)" or "()".
std::optional<std::vector<int64_t>> ReadShape(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<int64_t> shape;
  while (!text.empty()) {
    if (text.front() == ' ' || text.front() == ',') {
      text.remove_prefix(1);
      continue;
    }
    int64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0) return std::nullopt;
    shape.push_back(size);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return shape;
}

void AppendUtf8(std::string& out, uint32_t code) {
  const auto byte = [&](uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xE0 | code >> 12);
    } else {
      byte(0xF0 | (code >> 18 & 7));
      byte(0x80 | (code >> 12 & 0x3F));
    }
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

// Returns the elements of an array of strings that all take `width` bytes, with zeros behind the
// shorter ones. Texts ("U") have four bytes for each character.
std::string StringsToBytes(std::string_view data, size_t width, bool is_text) {
  std::string out;
  for (; width > 0 && data.size() >= width; data.remove_prefix(width)) {
    const std::string_view element = data.substr(0, width);
    if (!is_text) {
      AppendBytes(out, element.substr(0, element.find_last_not_of('\0') + 1));
      continue;
    }
    std::string text;
    size_t size = 0;  // without the zeros at the end
    for (size_t i = 0; i + 4 <= width; i += 4) {
      uint32_t code = 0;
      std::memcpy(&code, element.data() + i, sizeof code);
      AppendUtf8(text, code);
      if (code != 0) size = text.size();
    }
    AppendBytes(out, std::string_view(text).substr(0, size));
  }
  return out;
}

base::Result<NpyArray> ReadStrings(std::string_view width_text, bool is_text,
                                   std::vector<int64_t> shape, std::string_view data) {
  uint32_t length = 0;
  const char* const end = width_text.data() + width_text.size();
  if (std::from_chars(width_text.data(), end, length).ptr != end || width_text.empty()) {
    return Wrong("its type of strings is not understood");
  }
  const size_t width = size_t{length} * (is_text ? 4 : 1);
  const auto count = tensor::ElementCount(shape);
  const auto size = count ? base::CheckedMul<size_t>(static_cast<size_t>(*count), width)
                          : std::optional<size_t>();
  if (!size || *size != data.size()) return Wrong("its size does not match its shape");
  if (width == 0 && *count > 0) return Wrong("its strings have no length");
  return NpyArray{DataType::kBytes, std::move(shape), StringsToBytes(data, width, is_text)};
}

}  // namespace

base::Result<NpyArray> ReadNpy(std::string_view file) {
  // The magic text, a version of two bytes, and the header's length in two bytes, or in four since
  // version 2.
  constexpr size_t kVersionAt = kMagic.size();
  if (!file.starts_with(kMagic) || file.size() < kVersionAt + 6) {
    return Wrong("it is no .npy file");
  }
  const size_t length_size = file[kVersionAt] == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, file.data() + kVersionAt + 2, length_size);
  const size_t data_at = kVersionAt + 2 + length_size + length;
  if (data_at > file.size()) return Wrong("its header is cut off");
  const std::string_view header = file.substr(kVersionAt + 2 + length_size, length);
  const std::string_view data = file.substr(data_at);

  std::string_view type = ValueOf(header, "descr");
  if (type.size() < 4 || type.front() != '\'') return Wrong("it holds records, not plain elements");
  type = type.substr(1, type.size() - 2);
  auto shape = ReadShape(ValueOf(header, "shape"));
  if (!shape) return Wrong("its shape is not understood");
  if (ValueOf(header, "fortran_order") == "True" && shape->size() > 1) {
    return Wrong("its elements are in Fortran order; save numpy.ascontiguousarray(array) instead");
  }
  if (type.front() == '>') return Wrong("its elements are big-endian");
  type.remove_prefix(1);
  if (type.front() == 'S' || type.front() == 'U') {
    return ReadStrings(type.substr(1), type.front() == 'U', *std::move(shape), data);
  }
  const auto* const name = std::ranges::find(kNames, type, &Name::name);
  if (name == std::end(kNames)) {
    return Wrong(fmt::format("its elements of NumPy's type '{}' have no counterpart", type));
  }
  if (tensor::ByteSize(name->type, *shape) != data.size()) {
    return Wrong("its size does not match its shape");
  }
  return NpyArray{name->type, *std::move(shape), std::string(data)};
}

base::Result<std::string> WriteNpy(DataType type, const std::vector<int64_t>& shape,
                                   std::string_view bytes) {
  std::string data(bytes);
  std::string descr;
  if (type == DataType::kBytes) {
    const auto elements = SplitBytes(bytes);
    if (!elements) return Wrong("the lengths of the elements are wrong");
    size_t width = 1;
    for (const std::string_view element : *elements) width = std::max(width, element.size());
    // One long text among many short ones makes a file much larger than the tensor.
    if (width > kMaxStrings / std::max<size_t>(elements->size(), 1)) {
      return Wrong("its elements would take more than 4 GiB as byte strings of equal length");
    }
    data.clear();
    for (const std::string_view element : *elements) {
      data.append(element).append(width - element.size(), '\0');
    }
    descr = fmt::format("|S{}", width);
  } else if (type == DataType::kBf16) {
    data.clear();
    for (size_t i = 0; i + 2 <= bytes.size(); i += 2) {
      // The bits of a BF16 are the upper ones of the FP32.
      data.append(2, '\0').append(bytes.substr(i, 2));
    }
    descr = "<f4";
  } else {
    const auto* const name = std::ranges::find(kNames, type, &Name::type);
    if (name == std::end(kNames)) return Wrong("the data type is unknown");
    descr = fmt::format("{}{}", tensor::ElementSize(type) == 1 ? '|' : '<', name->name);
  }
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const size_t before = kMagic.size() + 4 + header.size() + 1;
  header.append((kAlignment - before % kAlignment) % kAlignment, ' ') += '\n';
  if (header.size() > UINT16_MAX) return Wrong("the shape has too many dimensions");
  const auto length = static_cast<uint16_t>(header.size());
  std::string file(kMagic);
  file += {'\x01', '\x00', static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  return file + header + data;
}

}  // namespace nereid::cli
