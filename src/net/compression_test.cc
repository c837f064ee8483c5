// SPDX-License-Identifier: Apache-2.0
#include "net/compression.h"

#include <zlib.h>

#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace nereid::net {
namespace {

std::string Compressed(Compression type, std::string_view text) {
  const iovec part{const_cast<char*>(text.data()), text.size()};
  auto result = Compress(type, {&part, 1});
  EXPECT_TRUE(result.ok());
  return std::string(result->data);
}

TEST(Compression, InflatesWhatItDeflated) {
  std::mt19937 random(3);
  for (const Compression type : {Compression::kGzip, Compression::kDeflate}) {
    for (const size_t size : {1ul, 100ul, 65'536ul, 65'537ul, 3'000'000ul}) {
      std::string text(size, ' ');
      for (char& c : text) c = static_cast<char>('a' + random() % 17);
      iovec parts[2] = {{text.data(), size / 3}, {text.data() + size / 3, size - size / 3}};
      auto compressed = Compress(type, parts);
      ASSERT_TRUE(compressed.ok());
      auto back = Decompress(compressed->data, {.aligned_byte = size / 2});
      ASSERT_TRUE(back.ok()) << back.status().ToString();
      EXPECT_EQ(text, back->data);
      EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(back->data.data() + size / 2) % 64);
    }
  }
}

TEST(Compression, BoundsTheOutputToTheByte) {
  const std::string zeros(1 << 20, '\0');
  const std::string bomb = Compressed(Compression::kGzip, zeros);
  EXPECT_TRUE(Decompress(bomb, {.max_bytes = 1 << 20}).ok());
  const auto refused =
      Decompress(bomb, {.max_bytes = (1 << 20) - 1, .limit_hint = "Ask for more."});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(base::StatusCode::kInvalidArgument, refused.status().code());
  EXPECT_EQ(
      "Decompressed data size exceeds the maximum allowed value of 1048575 bytes. "
      "Ask for more.",
      refused.status().message());
}

TEST(Compression, RefusesBrokenData) {
  const std::string good = Compressed(Compression::kGzip, std::string(10'000, 'x') + "end");
  EXPECT_FALSE(Decompress("", {}).ok());
  EXPECT_FALSE(Decompress("plain text", {}).ok());
  EXPECT_FALSE(Decompress(good + "more", {}).ok());
  EXPECT_FALSE(Decompress(good + good, {}).ok());
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(Decompress(good.substr(0, n), {}).ok());
  std::string wrong_sum = good;
  wrong_sum[wrong_sum.size() - 6] ^= 1;
  EXPECT_FALSE(Decompress(wrong_sum, {}).ok());
}

TEST(Compression, SurvivesMutatedData) {
  std::string text;
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) text += static_cast<char>('a' + random() % 9);
  const std::string good = Compressed(Compression::kDeflate, text);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    for (int m = 0; m < 3; ++m) bad[random() % bad.size()] = static_cast<char>(random());
    const auto result = Decompress(bad, {.max_bytes = 100'000});
    if (result.ok()) {
      EXPECT_LE(result->data.size(), 100'000u);
    }
  }
}

TEST(Compression, NegotiatesByQuality) {
  const std::pair<const char*, Compression> cases[] = {
      {"", Compression::kIdentity},
      {"gzip", Compression::kGzip},
      {"deflate", Compression::kDeflate},
      {"br", Compression::kIdentity},
      {"gzip, deflate", Compression::kGzip},
      {"deflate, gzip", Compression::kDeflate},
      {"gzip;q=0.5, deflate;q=0.8", Compression::kDeflate},
      {"gzip;q=0.5,identity;q=0.8", Compression::kIdentity},
      {"gzip;q=0", Compression::kIdentity},
      {"br;q=1.0, gzip;q=0.8, *;q=0.1", Compression::kGzip},
      {" gzip ; q=0.001 , , ;", Compression::kGzip},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(expected, NegotiateCompression(text)) << text;
}

TEST(Compression, ParsesContentEncodings) {
  EXPECT_EQ(Compression::kIdentity, *ParseContentEncoding(""));
  EXPECT_EQ(Compression::kIdentity, *ParseContentEncoding("identity"));
  EXPECT_EQ(Compression::kGzip, *ParseContentEncoding("gzip"));
  EXPECT_EQ(Compression::kDeflate, *ParseContentEncoding("deflate"));
  EXPECT_EQ("Unsupported compression type", ParseContentEncoding("br").status().message());
}

}  // namespace
}  // namespace nereid::net
