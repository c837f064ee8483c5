// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/zip_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <string_view>

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

constexpr std::string_view kHeader("PK\x03\x04", 4);
constexpr size_t kHeaderSize = 30;
constexpr uint32_t kStored = 0;
constexpr uint32_t kDeflated = 8;
constexpr size_t kPiece = size_t{64} << 10;

Error Damaged(const ZipEntry& entry) {
  return Error::InvalidArgument(StrCat("the file '", entry.name, "' in it is damaged or cut off"));
}

uint64_t ShortAt(const std::array<char, kHeaderSize>& bytes, size_t at) {
  return static_cast<unsigned char>(bytes[at]) | static_cast<unsigned char>(bytes[at + 1]) << 8U;
}

// Goes to the first byte of a file's data, behind the file's own header.
bool FindData(std::ifstream& file, const ZipEntry& entry) {
  std::array<char, kHeaderSize> header{};
  file.seekg(static_cast<std::streamoff>(entry.offset));
  file.read(header.data(), header.size());
  if (!file || std::string_view(header.data(), kHeader.size()) != kHeader) {
    return false;
  }
  file.seekg(static_cast<std::streamoff>(ShortAt(header, 26) + ShortAt(header, 28)), std::ios::cur);
  return file.good();
}

// Passes a stored file to `sink` in pieces.
template <typename Sink>
Error CopyStored(std::ifstream& file, const ZipEntry& entry, Sink&& sink) {
  if (entry.compressed_size != entry.size) {
    return Damaged(entry);
  }
  std::string piece(kPiece, '\0');
  for (uint64_t left = entry.size; left > 0;) {
    const size_t count = static_cast<size_t>(std::min<uint64_t>(left, piece.size()));
    file.read(piece.data(), static_cast<std::streamsize>(count));
    if (!file) {
      return Damaged(entry);
    }
    NEREID_KIT_TRY(sink(std::string_view(piece.data(), count)));
    left -= count;
  }
  return {};
}

// The state of zlib, freed at the end.
struct Inflater {
  z_stream stream{};
  const bool is_ready;
  // Without the header that zlib's own format has.
  Inflater() : is_ready(inflateInit2(&stream, -MAX_WBITS) == Z_OK) {}
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

// Passes a compressed file to `sink` in pieces, not more of it than its directory entry says.
template <typename Sink>
Error Inflate(std::ifstream& file, const ZipEntry& entry, Sink&& sink) {
  Inflater inflater;
  std::string in(kPiece, '\0');
  std::string out(kPiece, '\0');
  z_stream& stream = inflater.stream;
  uint64_t left_in = entry.compressed_size;
  uint64_t left_out = entry.size;
  int status = inflater.is_ready ? Z_OK : Z_MEM_ERROR;
  while (status == Z_OK) {
    if (stream.avail_in == 0 && left_in > 0) {
      const size_t count = static_cast<size_t>(std::min<uint64_t>(left_in, in.size()));
      file.read(in.data(), static_cast<std::streamsize>(count));
      if (!file) {
        return Damaged(entry);
      }
      stream.next_in = reinterpret_cast<Bytef*>(in.data());
      stream.avail_in = static_cast<uInt>(count);
      left_in -= count;
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    // Without progress, because the data ends too early, this is Z_BUF_ERROR.
    status = inflate(&stream, Z_NO_FLUSH);
    const size_t count = out.size() - stream.avail_out;
    if (count > left_out) {
      return Damaged(entry);
    }
    NEREID_KIT_TRY(sink(std::string_view(out.data(), count)));
    left_out -= count;
  }
  return status == Z_STREAM_END && left_out == 0 ? Error() : Damaged(entry);
}

template <typename Sink>
Error Read(const std::string& archive, const ZipEntry& entry, Sink&& sink) {
  if (entry.method != kStored && entry.method != kDeflated) {
    return Error::InvalidArgument(StrCat("the file '", entry.name,
                                         "' in it is compressed by method ", entry.method,
                                         ", which is not supported"));
  }
  std::ifstream file(archive, std::ios::binary);
  if (!FindData(file, entry)) {
    return Damaged(entry);
  }
  return entry.method == kStored ? CopyStored(file, entry, sink) : Inflate(file, entry, sink);
}

}  // namespace

Result<std::string> ReadZipFile(const std::string& archive, const ZipEntry& entry, uint64_t limit) {
  if (entry.size > limit) {
    return Error::InvalidArgument(
        StrCat("the file '", entry.name, "' in it is too large: ", entry.size, " bytes"));
  }
  std::string text;
  NEREID_KIT_TRY(Read(archive, entry, [&](std::string_view piece) {
    text += piece;
    return Error();
  }));
  return text;
}

Error ExtractZipFile(const std::string& archive, const ZipEntry& entry, const std::string& to) {
  std::ofstream file(to, std::ios::binary);
  const auto failed = [&] {
    return Error::Internal(StrCat("cannot write '", entry.name,
                                  "' to the folder for temporary files: is the disk full?"));
  };
  if (!file) {
    return failed();
  }
  NEREID_KIT_TRY(Read(archive, entry, [&](std::string_view piece) {
    file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    return file ? Error() : failed();
  }));
  file.close();
  return file ? Error() : failed();
}

bool IsInsideArchive(std::string_view name) {
  if (name.empty() || name.find('\\') != name.npos || name.find('\0') != name.npos) {
    return false;
  }
  while (true) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    // A folder's own entry ends in a slash.
    if (part == ".." || part == "." || (part.empty() && !name.empty())) {
      return false;
    }
    if (slash == name.npos) {
      return true;
    }
    name.remove_prefix(slash + 1);
  }
}

}  // namespace nereid::pytorch
