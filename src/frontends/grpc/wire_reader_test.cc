// SPDX-License-Identifier: Apache-2.0
#include "grpc/wire_reader.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "grpc/wire_writer.h"

namespace nereid::grpc {
namespace {

constexpr uint64_t kNumbers[] = {
    0,        1,          127,        128,       16'383,    16'384, (1u << 21) - 1,
    1u << 21, UINT32_MAX, 1ull << 35, INT64_MAX, UINT64_MAX};

TEST(WireFormat, ReadsTheNumbersThatItWrites) {
  for (const uint64_t number : kNumbers) {
    std::array<std::byte, 16> bytes;
    WireWriter writer(bytes.data());
    writer.VarintField(3, number);
    const auto size = static_cast<size_t>(writer.position() - bytes.data());
    EXPECT_EQ(size, 1 + VarintSize(number)) << number;
    WireReader reader({reinterpret_cast<const char*>(bytes.data()), size});
    WireTag tag;
    ASSERT_TRUE(reader.Next(&tag));
    EXPECT_TRUE(tag.Is(3, WireType::kVarint));
    EXPECT_EQ(reader.ReadVarint(), number);
    EXPECT_TRUE(reader.at_end());
    EXPECT_FALSE(reader.failed());
  }
}

TEST(WireFormat, CountsTheBytesOfWhatItWrites) {
  std::array<std::byte, 256> bytes;
  WireWriter writer(bytes.data());
  const std::string text(130, 'x');
  writer.TextField(1, text);
  writer.TextField(2, "");
  writer.Fixed64Field(4, 7);
  EXPECT_EQ(static_cast<size_t>(writer.position() - bytes.data()),
            TextFieldSize(text) + TextFieldSize("") + 9);
  EXPECT_EQ(TextFieldSize(text), 133u);
  EXPECT_EQ(TextFieldSize(""), 0u);
}

TEST(WireReader, FailsForGoodWhereAFieldIsCutOff) {
  const std::string_view broken[] = {
      "\x08",                       // a varint without bytes
      "\x08\x80",                   // an unfinished varint
      "\x0d\x01\x02\x03",           // three bytes of four
      "\x09\x01\x02",               // two bytes of eight
      "\x0a\x05xyz",                // three bytes of five
      "\x0b\x10\x01",               // a group without an end
      "\x0c",                       // an end without a group
      "\x0f",                       // an invalid wire type
      std::string_view("\0\1", 2),  // field 0
  };
  for (const std::string_view bytes : broken) {
    WireReader reader(bytes);
    WireTag tag;
    while (reader.Next(&tag)) reader.Skip(tag);
    EXPECT_TRUE(reader.failed()) << testing::PrintToString(bytes);
    EXPECT_EQ(reader.ReadVarint(), 0u);
    EXPECT_EQ(reader.ReadFixed32(), 0u);
    EXPECT_EQ(reader.ReadBytes(), "");
    EXPECT_FALSE(reader.Next(&tag));
  }
}

TEST(WireReader, RefusesNumbersOfMoreThanTenBytes) {
  WireReader longest(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10));
  EXPECT_EQ(longest.ReadVarint(), UINT64_MAX);
  WireReader longer(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11));
  longer.ReadVarint();
  EXPECT_TRUE(longer.failed());
}

TEST(WireReader, PassesOverGroupsAsDeepAsProtobufDoes) {
  const auto nested = [](int depth) {
    std::string bytes;
    for (int i = 0; i < depth; ++i) bytes += '\x0b';
    for (int i = 0; i < depth; ++i) bytes += '\x0c';
    WireReader reader(bytes);
    WireTag tag;
    while (reader.Next(&tag)) reader.Skip(tag);
    return !reader.failed();
  };
  EXPECT_TRUE(nested(1));
  EXPECT_TRUE(nested(100));
  EXPECT_FALSE(nested(102));
}

TEST(WireReader, RefusesAGroupThatEndsAsAnother) {
  WireReader reader("\x0b\x14");
  WireTag tag;
  ASSERT_TRUE(reader.Next(&tag));
  reader.Skip(tag);
  EXPECT_TRUE(reader.failed());
}

TEST(WireReader, RefusesTextThatIsNotUtf8) {
  WireReader reader(std::string_view("\x02\xc3\x28", 3));
  EXPECT_EQ(reader.ReadText(), "");
  EXPECT_TRUE(reader.failed());
}

}  // namespace
}  // namespace nereid::grpc
