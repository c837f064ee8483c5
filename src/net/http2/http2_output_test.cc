// SPDX-License-Identifier: Apache-2.0
#include "http2/http2_output.h"

#include <string>

#include <gtest/gtest.h>

namespace nereid::http2 {
namespace {

std::string Content(const Http2Output& output) {
  std::string content;
  for (const iovec& piece : output.pieces()) {
    content.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  }
  return content;
}

bool Add(Http2Output& output, const std::string& text) {
  bool failed = false;
  const bool is_referred =
      output.Add(reinterpret_cast<const std::byte*>(text.data()), text.size(), &failed);
  EXPECT_FALSE(failed);
  return is_referred;
}

TEST(Http2Output, SmallPiecesAreCopiedTogetherAndLargeOnesReferredTo) {
  const std::string small(100, 's'), large(5000, 'l');
  Http2Output output;
  EXPECT_TRUE(output.empty());
  EXPECT_TRUE(output.Copy("head", 4));
  EXPECT_FALSE(Add(output, small));
  EXPECT_TRUE(Add(output, large));
  EXPECT_TRUE(output.Copy("tail", 4));
  EXPECT_EQ(output.pieces().size(), 3u);
  EXPECT_EQ(output.pieces()[1].iov_base, large.data());
  EXPECT_EQ(Content(output), "head" + small + large + "tail");
}

TEST(Http2Output, WrittenBytesAreGoneWhereverTheWriteEnded) {
  const std::string large(5000, 'l');
  Http2Output output;
  EXPECT_TRUE(output.Copy("head", 4));
  Add(output, large);
  EXPECT_TRUE(output.Copy("tail", 4));
  output.Advance(3);
  EXPECT_EQ(Content(output), "d" + large + "tail");
  output.Advance(2);
  EXPECT_EQ(Content(output), large.substr(1) + "tail");
  output.Advance(5003);
  EXPECT_TRUE(output.empty());
  EXPECT_TRUE(output.Copy("again", 5));
  EXPECT_EQ(Content(output), "again");
}

TEST(Http2Output, IsFullWithEnoughForOneWrite) {
  const std::string large(1 << 20, 'l');
  Http2Output output;
  EXPECT_TRUE(output.Copy("x", 1));
  EXPECT_FALSE(output.full());
  Add(output, large);
  EXPECT_TRUE(output.full());
  output.Advance(2);
  EXPECT_FALSE(output.full());
  output.Clear();
  EXPECT_TRUE(output.empty());
  // The limit applies to the number of pieces as well as of bytes.
  for (int i = 0; i < 256; ++i) {
    EXPECT_FALSE(output.full());
    EXPECT_TRUE(output.Copy("x", 1));
    output.Refer(reinterpret_cast<const std::byte*>(large.data()), 1);
  }
  EXPECT_TRUE(output.full());
}

}  // namespace
}  // namespace nereid::http2
