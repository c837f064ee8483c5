// SPDX-License-Identifier: Apache-2.0
#include "net/compression.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "base/arithmetic.h"
#include "base/trim.h"

namespace nereid::net {
namespace {

constexpr size_t kFirstOutput = 64 << 10;
constexpr int kDetectGzipOrZlib = 15 | 32;
constexpr int kGzipWindow = 15 | 16;
constexpr int kZlibWindow = 15;

constexpr std::string_view kBlanks = " \t";

// Returns the thousandths of a "q=0.5" parameter list; 1000 if there is none or it is not a number.
int Quality(std::string_view parameters) {
  while (!parameters.empty()) {
    const size_t end = parameters.find(';');
    std::string_view parameter = base::Trim(parameters.substr(0, end), kBlanks);
    parameters = end == std::string_view::npos ? std::string_view() : parameters.substr(end + 1);
    if (parameter.size() < 3 || (parameter[0] | 0x20) != 'q' || parameter[1] != '=') continue;
    parameter.remove_prefix(2);
    int quality = 0;
    int scale = 1000;
    if (parameter[0] < '0' || parameter[0] > '9') return 1000;
    quality = (parameter[0] - '0') * scale;
    if (parameter.size() > 1 && parameter[1] == '.') {
      for (const char digit : parameter.substr(2)) {
        if (digit < '0' || digit > '9' || scale == 1) break;
        scale /= 10;
        quality += (digit - '0') * scale;
      }
    }
    return quality;
  }
  return 1000;
}

// Grows a buffer by doubling. The `offset` bytes in front of the data stay where they are.
class GrowingOutput {
 public:
  GrowingOutput(size_t offset, size_t limit) : offset_(offset), limit_(limit) {}

  // Makes room for at least one byte after the data; returns false if memory or the limit is
  // exhausted.
  bool Grow() {
    const size_t target = std::min(std::max(capacity() * 2, kFirstOutput), limit_);
    if (target <= size_) return false;
    base::BufferRef larger = base::AcquireBuffer(offset_ + target);
    if (!larger) return false;
    if (size_ > 0) std::memcpy(larger.data() + offset_, buffer_.data() + offset_, size_);
    buffer_ = std::move(larger);
    return true;
  }
  size_t capacity() const { return buffer_ ? std::min(buffer_.capacity() - offset_, limit_) : 0; }
  size_t room() const { return capacity() - size_; }
  size_t size() const { return size_; }
  unsigned char* end() const {
    return reinterpret_cast<unsigned char*>(buffer_.data()) + offset_ + size_;
  }
  void Advance(size_t n) { size_ += n; }
  BufferView Finish() && {
    if (!buffer_) return {};
    const auto* data = reinterpret_cast<const char*>(buffer_.data()) + offset_;
    return {std::move(buffer_), {data, size_}};
  }

 private:
  const size_t offset_;
  const size_t limit_;
  base::BufferRef buffer_;
  size_t size_ = 0;
};

struct Inflater {
  z_stream stream{};
  bool ok = inflateInit2(&stream, kDetectGzipOrZlib) == Z_OK;
  ~Inflater() {
    if (ok) inflateEnd(&stream);
  }
};

struct Deflater {
  z_stream stream{};
  bool ok;
  explicit Deflater(Compression type)
      : ok(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                        type == Compression::kGzip ? kGzipWindow : kZlibWindow, 8,
                        Z_DEFAULT_STRATEGY) == Z_OK) {}
  ~Deflater() {
    if (ok) deflateEnd(&stream);
  }
};

base::Status TooLarge(const DecompressOptions& options) {
  return base::InvalidArgumentError(
      fmt::format("Decompressed data size exceeds the maximum allowed value of {} bytes. {}",
                  options.max_bytes, options.limit_hint));
}

}  // namespace

base::Result<Compression> ParseContentEncoding(std::string_view value) {
  if (value.empty() || value == "identity") return Compression::kIdentity;
  if (value == "gzip") return Compression::kGzip;
  if (value == "deflate") return Compression::kDeflate;
  return base::UnsupportedError("Unsupported compression type");
}

Compression NegotiateCompression(std::string_view accept_encoding) {
  Compression best = Compression::kIdentity;
  int best_quality = 0;
  while (!accept_encoding.empty()) {
    const size_t comma = accept_encoding.find(',');
    const std::string_view item = accept_encoding.substr(0, comma);
    accept_encoding =
        comma == std::string_view::npos ? std::string_view() : accept_encoding.substr(comma + 1);
    const size_t semicolon = item.find(';');
    const std::string_view name = base::Trim(item.substr(0, semicolon), kBlanks);
    const auto coding = ParseContentEncoding(name);
    if (!coding.ok() || name.empty()) continue;
    const int quality =
        semicolon == std::string_view::npos ? 1000 : Quality(item.substr(semicolon + 1));
    if (quality > best_quality) {
      best = *coding;
      best_quality = quality;
    }
  }
  return best;
}

base::Result<BufferView> Decompress(std::string_view compressed, const DecompressOptions& options) {
  if (compressed.empty()) return base::InvalidArgumentError("nothing to be decompressed");
  Inflater inflater;
  if (!inflater.ok) {
    return base::InternalError("failed to initialize state for data decompression");
  }
  const size_t offset = (base::kBufferAlignment - options.aligned_byte % base::kBufferAlignment) %
                        base::kBufferAlignment;
  // One byte over the limit distinguishes "exactly full" from "too large".
  const auto limit = base::CheckedAdd<size_t>(options.max_bytes, 1);
  GrowingOutput output(offset, limit.value_or(options.max_bytes));
  z_stream& stream = inflater.stream;
  const char* next = compressed.data();
  size_t left = compressed.size();
  for (;;) {
    if (output.room() == 0 && !output.Grow()) {
      if (output.size() > options.max_bytes) return TooLarge(options);
      return base::UnavailableError("out of memory for decompressed data");
    }
    stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(next));
    const auto in = static_cast<uInt>(std::min<size_t>(left, INT_MAX));
    const auto room = static_cast<uInt>(std::min<size_t>(output.room(), INT_MAX));
    stream.avail_in = in;
    stream.next_out = output.end();
    stream.avail_out = room;
    const int result = inflate(&stream, Z_NO_FLUSH);
    next += in - stream.avail_in;
    left -= in - stream.avail_in;
    output.Advance(room - stream.avail_out);
    if (output.size() > options.max_bytes) return TooLarge(options);
    if (result == Z_STREAM_END) break;
    if (result == Z_OK && (left > 0 || stream.avail_out == 0)) continue;
    if (result == Z_BUF_ERROR && stream.avail_out == 0) continue;
    return base::InvalidArgumentError(left == 0 && (result == Z_OK || result == Z_BUF_ERROR)
                                          ? "compressed request data ends before its end mark"
                                          : "compressed request data is malformed");
  }
  if (left != 0) return base::InvalidArgumentError("unexpected bytes after the compressed data");
  return std::move(output).Finish();
}

base::Result<BufferView> Compress(Compression type, std::span<const iovec> parts) {
  size_t total = 0;
  for (const iovec& part : parts) total += part.iov_len;
  if (type == Compression::kIdentity || total == 0) {
    return base::InvalidArgumentError("nothing to be compressed");
  }
  Deflater deflater(type);
  if (!deflater.ok) {
    return base::InternalError("failed to initialize state for data compression");
  }
  z_stream& stream = deflater.stream;
  GrowingOutput output(0, SIZE_MAX / 4);
  size_t index = 0;
  size_t used = 0;
  for (;;) {
    while (index < parts.size() && used == parts[index].iov_len) {
      ++index;
      used = 0;
    }
    const bool last = index == parts.size();
    const size_t left = last ? 0 : parts[index].iov_len - used;
    const auto in = static_cast<uInt>(std::min<size_t>(left, INT_MAX));
    if (output.room() == 0 && !output.Grow()) {
      return base::UnavailableError("out of memory for compressed data");
    }
    const auto room = static_cast<uInt>(std::min<size_t>(output.room(), INT_MAX));
    stream.next_in = last ? nullptr : static_cast<unsigned char*>(parts[index].iov_base) + used;
    stream.avail_in = in;
    stream.next_out = output.end();
    stream.avail_out = room;
    const int result = deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    used += in - stream.avail_in;
    output.Advance(room - stream.avail_out);
    if (result == Z_STREAM_END) return std::move(output).Finish();
    if (result == Z_STREAM_ERROR) {
      return base::InternalError("encountered inconsistent stream state during compression");
    }
  }
}

}  // namespace nereid::net
