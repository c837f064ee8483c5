// SPDX-License-Identifier: Apache-2.0
#include "cli/printable.h"

#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

TEST(Printable, GoodTextStaysAsItIs) {
  EXPECT_EQ(Printable("añ€😀"), "añ€😀");
  EXPECT_EQ(ValidUtf8("a\n\x1b[31m"), "a\n\x1b[31m");
}

TEST(Printable, WhatATerminalWouldObeyIsReplaced) {
  EXPECT_EQ(Printable("a\nb\tc"), "a b c");
  EXPECT_EQ(Printable("\x1b[2J\x7f"), "\uFFFD[2J\uFFFD");
  EXPECT_EQ(Printable("\xC2\x9B[2J"), "\uFFFD[2J");
}

TEST(Printable, BytesThatAreNoCharactersAreReplacedOneByOne) {
  EXPECT_EQ(ValidUtf8("\xFFx\xC3"), "\uFFFDx\uFFFD");
  EXPECT_EQ(ValidUtf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(ValidUtf8("\xE2\x82"), "\uFFFD\uFFFD");
}

}  // namespace
}  // namespace nereid::cli
