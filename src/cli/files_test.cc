// SPDX-License-Identifier: Apache-2.0
#include "cli/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/file_test.h"

namespace nereid::cli {
namespace {

using testing::HasSubstr;

using FilesTest = FileTest;

TEST_F(FilesTest, AnyContentIsReadAsItWasWritten) {
  std::string content;
  for (int i = 0; i < 300'000; ++i) content += static_cast<char>(i * 7);
  for (const std::string& text : {content, std::string("\0\r\n", 3), std::string()}) {
    ASSERT_TRUE(WriteFile(Path("a"), text).ok());
    const auto read = ReadFile(Path("a"));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, text) << "an earlier and longer content is gone";
  }
}

TEST_F(FilesTest, ErrorsHaveTheNameOfTheFileAndTheReason) {
  EXPECT_EQ(ReadFile(Path("none")).status().message(),
            "cannot read '" + Path("none") + "': No such file or directory");
  EXPECT_THAT(std::string(ReadFile(Path("")).status().message()), HasSubstr("Is a directory"));
  EXPECT_EQ(WriteFile(Path("none/a"), "x").message(),
            "cannot write '" + Path("none/a") + "': No such file or directory");
  EXPECT_THAT(std::string(WriteFile(Path(""), "x").message()), HasSubstr("Is a directory"));
}

TEST_F(FilesTest, WhatCannotBeWrittenIsKnownBeforehand) {
  Write("there", "kept");
  for (const char* name : {"there", "new"}) EXPECT_TRUE(CheckWritable(Path(name)).ok()) << name;
  EXPECT_EQ(*ReadFile(Path("there")), "kept");
  EXPECT_FALSE(std::filesystem::exists(Path("new")));
  for (const char* name : {"none/a", "", "there/a"}) {
    EXPECT_FALSE(CheckWritable(Path(name)).ok()) << name;
    EXPECT_EQ(CheckWritable(Path(name)).message(), WriteFile(Path(name), "x").message());
  }
}

TEST_F(FilesTest, AFullDiskIsAnError) {
  EXPECT_THAT(std::string(WriteFile("/dev/full", "x").message()), HasSubstr("No space left"));
  EXPECT_FALSE(WriteFile("/dev/full", std::string(1 << 20, 'x')).ok());
}

}  // namespace
}  // namespace nereid::cli
