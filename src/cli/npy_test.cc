// SPDX-License-Identifier: Apache-2.0
#include "cli/npy.h"

#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/elements.h"
#include "tensor/shape.h"

namespace nereid::cli {
namespace {

using tensor::DataType;
using testing::ElementsAre;
using testing::HasSubstr;

// A file of version 1 with this header, without the padding, which readers must not need.
std::string FileWith(std::string_view header, std::string_view data, char version = 1) {
  std::string file = "\x93NUMPY";
  file += {version, '\0', static_cast<char>(header.size() & 0xFF),
           static_cast<char>(header.size() >> 8)};
  if (version > 1) file.append(2, '\0');
  return file.append(header).append(data);
}

std::string HeaderOf(std::string_view type, std::string_view shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}\n", type, shape);
}

std::string WhyNot(std::string_view header, std::string_view data = "") {
  return std::string(ReadNpy(FileWith(header, data)).status().message());
}

// The elements of a one-dimensional file of strings.
std::vector<std::string> Strings(std::string_view type, size_t count, std::string_view data) {
  const auto array = ReadNpy(FileWith(HeaderOf(type, fmt::format("({},)", count)), data));
  EXPECT_TRUE(array.ok()) << array.status().message();
  if (!array.ok()) return {};
  std::vector<std::string> texts;
  const auto split = SplitBytes(array->bytes);
  for (const std::string_view text : *split) texts.emplace_back(text);
  return texts;
}

TEST(NpyFiles, EveryTypeAndShapeIsReadAsItWasWritten) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const auto type = static_cast<DataType>(1 + random() % 12);
    std::vector<int64_t> shape(random() % 5);
    for (int64_t& size : shape) size = static_cast<int64_t>(random() % 4);
    std::string bytes(*tensor::ByteSize(type, shape), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const auto file = WriteNpy(type, shape, bytes);
    ASSERT_TRUE(file.ok());
    EXPECT_EQ((file->size() - bytes.size()) % 64, 0U) << "NumPy maps files at aligned places";
    const auto array = ReadNpy(*file);
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_EQ(array->type, type);
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(array->bytes, bytes);
  }
}

TEST(NpyFiles, TextsAreReadAsTheyWereWrittenButForZerosAtTheirEnds) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const auto count = static_cast<int64_t>(random() % 6);
    std::string bytes;
    for (int64_t i = 0; i < count; ++i) {
      std::string text(random() % 9, '\0');
      for (char& c : text) c = static_cast<char>(random());
      if (!text.empty() && text.back() == '\0') text.back() = 'x';
      AppendBytes(bytes, text);
    }
    const auto array = ReadNpy(*WriteNpy(DataType::kBytes, {count, 1}, bytes));
    ASSERT_TRUE(array.ok()) << array.status().message();
    EXPECT_THAT(array->shape, ElementsAre(count, 1));
    EXPECT_EQ(array->bytes, bytes);
  }
}

TEST(NpyFiles, HeadersAreThoseThatNumpyWrites) {
  const std::string vector = *WriteNpy(DataType::kFp32, {3}, std::string(12, '\0'));
  EXPECT_THAT(vector, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
  EXPECT_THAT(*WriteNpy(DataType::kUint8, {}, "x"), HasSubstr("'descr': '|u1'"));
  EXPECT_THAT(*WriteNpy(DataType::kUint8, {}, "x"), HasSubstr("'shape': (), }"));
  EXPECT_THAT(*WriteNpy(DataType::kBool, {1, 2}, "xy"), HasSubstr("'shape': (1, 2), }"));
  EXPECT_EQ(vector[vector.size() - 13], '\n');
}

TEST(NpyFiles, OtherVersionsAndFormsOfTheHeaderAreRead) {
  const std::string header = HeaderOf("<i2", "(2, )");
  for (const char version : {'\1', '\2', '\3'}) {
    const auto array = ReadNpy(FileWith(header, "abcd", version));
    ASSERT_TRUE(array.ok()) << int{version};
    EXPECT_THAT(array->shape, ElementsAre(2));
  }
  EXPECT_EQ(WhyNot("{'shape':(1,),'fortran_order':False,'descr':'|i1'}", "x"), "");
  // An array of one dimension is the same in both orders.
  EXPECT_EQ(WhyNot("{'descr': '<i2', 'fortran_order': True, 'shape': (2,), }", "abcd"), "");
}

TEST(NpyFiles, ErrorsSayWhatIsWrongWithTheFile) {
  struct Case {
    std::string header;
    const char* why;
  };
  for (const Case& c : {
           Case{"{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "ascontiguousarray"},
           Case{"{'descr': [('a', '<f4')], 'shape': (1,), }", "records"},
           Case{HeaderOf(">f4", "(1,)"), "big-endian"},
           Case{HeaderOf("<c8", "(1,)"), "'c8' have no counterpart"},
           Case{HeaderOf("|O", "(1,)"), "no counterpart"},
           Case{HeaderOf("<M8[ns]", "(1,)"), "no counterpart"},
           Case{HeaderOf("<f4", "(2,)"), "size does not match"},
           Case{HeaderOf("<f4", "(-1,)"), "shape is not understood"},
           Case{HeaderOf("<f4", "(1"), "shape is not understood"},
           Case{HeaderOf("<f4", "1"), "shape is not understood"},
           Case{HeaderOf("<f4", "(99999999999999999999,)"), "shape is not understood"},
           Case{HeaderOf("<f4", "(4294967296, 4294967296, 4294967296)"), "does not match"},
           Case{HeaderOf("|S9999999999", "(1,)"), "does not match"},
           Case{HeaderOf("|S4294967295", "(4294967295, 4294967295)"), "does not match"},
           Case{HeaderOf("|S0", "(9,)"), "does not match"},
           Case{HeaderOf("|S", "(1,)"), "strings is not understood"},
           Case{HeaderOf("<U-1", "(1,)"), "strings is not understood"},
           Case{"", "records"},
           Case{"{}", "records"},
       }) {
    EXPECT_THAT(WhyNot(c.header, "1234"), HasSubstr(c.why)) << c.header;
  }
  EXPECT_THAT(std::string(ReadNpy("PK\3\4 an .npz file").status().message()),
              HasSubstr("it is no .npy file"));
  EXPECT_THAT(std::string(ReadNpy("\x93NUMPY\2\1\xFF\xFF\xFF\xFF").status().message()),
              HasSubstr("cut off"));
}

TEST(NpyFiles, DamageAnywhereInTheHeaderIsHarmless) {
  std::mt19937 random(3);
  std::string texts;
  for (const char* text : {"a", "bcd", ""}) AppendBytes(texts, text);
  const std::string files[] = {*WriteNpy(DataType::kInt32, {2, 1}, "12345678"),
                               *WriteNpy(DataType::kBytes, {3}, texts)};
  for (int round = 0; round < 20000; ++round) {
    std::string file = files[round % 2];
    for (size_t i = 0; i <= random() % 3; ++i) {
      constexpr std::string_view kBytes = "\x01\xFF'(),:<>|SUfi0123456789-TF ";
      file[random() % file.size()] = kBytes[random() % kBytes.size()];
    }
    const auto array = ReadNpy(file);
    if (!array.ok()) continue;
    // What is accepted is a whole tensor.
    const auto count = tensor::ElementCount(array->shape);
    ASSERT_TRUE(count.has_value());
    if (array->type == DataType::kBytes) {
      ASSERT_EQ(SplitBytes(array->bytes)->size(), static_cast<size_t>(*count));
    } else {
      ASSERT_EQ(tensor::ByteSize(array->type, array->shape), array->bytes.size());
    }
  }
}

TEST(NpyFiles, ByteStringsLoseOnlyTheZerosBehindThem) {
  EXPECT_THAT(Strings("|S3", 3, std::string_view("ab\0\0b\0\0\0\0", 9)),
              ElementsAre("ab", std::string("\0b", 2), ""));
}

TEST(NpyFiles, TextsBecomeUtf8) {
  const std::u32string texts = {U'a', U'\0', U'b', U'\0', U'é', U'€', U'😀', U'\0'};
  const std::string_view data(reinterpret_cast<const char*>(texts.data()), texts.size() * 4);
  EXPECT_THAT(Strings("<U4", 2, data), ElementsAre(std::string("a\0b", 3), "é€😀"));
}

TEST(NpyFiles, AFileMuchLargerThanItsTensorIsNotWritten) {
  std::string bytes;
  AppendBytes(bytes, std::string(1 << 20, 'x'));
  for (int i = 0; i < 10000; ++i) AppendBytes(bytes, "");
  EXPECT_THAT(std::string(WriteNpy(DataType::kBytes, {10001}, bytes).status().message()),
              HasSubstr("more than 4 GiB"));
}

TEST(NpyFiles, WhatIsNoTensorIsNotWritten) {
  EXPECT_FALSE(WriteNpy(DataType::kBytes, {1}, "12345").ok());
  EXPECT_FALSE(WriteNpy(DataType::kInvalid, {1}, "1").ok());
  EXPECT_FALSE(WriteNpy(DataType::kUint8, std::vector<int64_t>(40000, 1), "1").ok());
}

}  // namespace
}  // namespace nereid::cli
