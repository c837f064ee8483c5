// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/zip_directory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>

namespace nereid::pytorch {

using backend::Error;
using backend::Result;

namespace {

constexpr std::string_view kEnd("PK\x05\x06", 4);
constexpr std::string_view kEnd64Locator("PK\x06\x07", 4);
constexpr std::string_view kEnd64("PK\x06\x06", 4);
constexpr std::string_view kEntry("PK\x01\x02", 4);
constexpr size_t kEndSize = 22;
constexpr size_t kLocatorSize = 20;
constexpr size_t kEnd64Size = 56;
constexpr size_t kEntrySize = 46;
constexpr size_t kMaxComment = 0xffff;
// More than the largest models have; a hostile directory must not fill the memory.
constexpr uint64_t kMaxDirectory = 256 << 20;

// A little-endian number. REQUIRES: it is inside `bytes`.
uint64_t Number(std::string_view bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = size; i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return number;
}

// Reads parts of a file.
class Reader {
 public:
  explicit Reader(const std::string& path) : file_(path, std::ios::binary | std::ios::ate) {
    const std::streamoff end = file_ ? static_cast<std::streamoff>(file_.tellg()) : 0;
    size_ = end < 0 ? 0 : static_cast<uint64_t>(end);
  }
  uint64_t size() const { return size_; }
  std::optional<std::string> Read(uint64_t offset, uint64_t count) {
    if (offset > size_ || count > size_ - offset) {
      return std::nullopt;
    }
    std::string bytes(count, '\0');
    file_.seekg(static_cast<std::streamoff>(offset));
    file_.read(bytes.data(), static_cast<std::streamsize>(count));
    return file_ ? std::optional(std::move(bytes)) : std::nullopt;
  }

 private:
  std::ifstream file_;
  uint64_t size_ = 0;
};

// The place of the directory.
struct Extent {
  uint64_t offset = 0;
  uint64_t size = 0;
};

std::optional<Extent> FindDirectory(Reader& file) {
  const uint64_t tail_size = std::min<uint64_t>(file.size(), kMaxComment + kEndSize + kLocatorSize);
  const std::optional<std::string> tail = file.Read(file.size() - tail_size, tail_size);
  const size_t end = tail ? tail->rfind(kEnd) : std::string::npos;
  if (end == std::string::npos || tail->size() - end < kEndSize) {
    return std::nullopt;
  }
  Extent extent{.offset = Number(*tail, end + 16, 4), .size = Number(*tail, end + 12, 4)};
  const bool has_locator =
      end >= kLocatorSize &&
      tail->compare(end - kLocatorSize, kEnd64Locator.size(), kEnd64Locator) == 0;
  if (has_locator) {
    const uint64_t at = Number(*tail, end - kLocatorSize + 8, 8);
    const std::optional<std::string> end64 = file.Read(at, kEnd64Size);
    if (!end64 || end64->compare(0, kEnd64.size(), kEnd64) != 0) {
      return std::nullopt;
    }
    extent = {.offset = Number(*end64, 48, 8), .size = Number(*end64, 40, 8)};
  }
  return extent;
}

// Sizes and offsets of 4 GiB and more are in a field of their own, in this order, each only if it
// is needed.
void ReadLargeSizes(std::string_view extra, ZipEntry* entry) {
  constexpr uint64_t kInExtra = 0xffffffff;
  constexpr uint64_t kZip64 = 1;
  while (extra.size() >= 4) {
    const uint64_t kind = Number(extra, 0, 2);
    const size_t size = std::min<size_t>(Number(extra, 2, 2), extra.size() - 4);
    size_t at = 4;
    for (uint64_t* number : {&entry->size, &entry->compressed_size, &entry->offset}) {
      if (kind == kZip64 && *number == kInExtra && at + 8 <= 4 + size) {
        *number = Number(extra, at, 8);
        at += 8;
      }
    }
    extra.remove_prefix(4 + size);
  }
}

}  // namespace

Result<std::vector<ZipEntry>> ReadZipDirectory(const std::string& path) {
  Reader file(path);
  const std::optional<Extent> extent = FindDirectory(file);
  if (!extent) {
    return Error::InvalidArgument("it is a ZIP archive whose end is missing: the file was cut off");
  }
  const std::optional<std::string> directory =
      extent->size > kMaxDirectory ? std::nullopt : file.Read(extent->offset, extent->size);
  if (!directory) {
    return Error::InvalidArgument("it is a ZIP archive whose directory is not where it should be");
  }
  std::vector<ZipEntry> entries;
  std::string_view rest = *directory;
  while (rest.size() >= kEntrySize && rest.starts_with(kEntry)) {
    const size_t name_size = Number(rest, 28, 2);
    const size_t extra_size = Number(rest, 30, 2);
    const size_t whole = kEntrySize + name_size + extra_size + Number(rest, 32, 2);
    if (whole > rest.size()) {
      return Error::InvalidArgument("it is a ZIP archive with a damaged directory");
    }
    ZipEntry entry{.name = std::string(rest.substr(kEntrySize, name_size)),
                   .compressed_size = Number(rest, 20, 4),
                   .size = Number(rest, 24, 4),
                   .offset = Number(rest, 42, 4),
                   .method = static_cast<uint32_t>(Number(rest, 10, 2))};
    ReadLargeSizes(rest.substr(kEntrySize + name_size, extra_size), &entry);
    entries.push_back(std::move(entry));
    rest.remove_prefix(whole);
  }
  return entries;
}

}  // namespace nereid::pytorch
