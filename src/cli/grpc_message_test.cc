// SPDX-License-Identifier: Apache-2.0
#include "cli/grpc_message.h"

#include <cstring>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

using testing::ElementsAre;

// The fields of a message by number, as protobuf's encoding has them.
struct Message {
  std::map<int, std::vector<std::string>> texts;  // and messages, and eight-byte numbers
  std::map<int, std::vector<uint64_t>> numbers;
};

uint64_t TakeVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

Message Decode(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const uint64_t tag = TakeVarint(bytes);
    const int field = static_cast<int>(tag >> 3);
    if ((tag & 7) == 0) {
      message.numbers[field].push_back(TakeVarint(bytes));
      continue;
    }
    const uint64_t size = (tag & 7) == 1 ? 8 : TakeVarint(bytes);
    EXPECT_LE(size, bytes.size());
    if (size > bytes.size()) return message;
    message.texts[field].emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return message;
}

// The value of the parameter "p" that is given as this text.
Message ParameterOf(const std::string& text) {
  const Message request = Decode(GrpcInferMessage("m", "", {"p=" + text}, {}));
  const Message entry = Decode(request.texts.at(4).at(0));
  EXPECT_EQ(entry.texts.at(1).at(0), "p");
  return Decode(entry.texts.at(2).at(0));
}

TEST(GrpcInferMessage, HasTheFieldsOfModelInferRequest) {
  const TensorMetadata a{.name = "A", .datatype = "FP32", .shape = {-1, 300}};
  const TensorMetadata b{.name = "B", .datatype = "BYTES", .shape = {}};
  std::vector<InferInput> inputs;
  inputs.push_back({&a, {1, 300}, std::nullopt, std::string(1200, 'x')});
  inputs.push_back({&b, {}, std::nullopt, std::string("\0\0", 2)});
  const Message request = Decode(GrpcInferMessage("net", "3", {}, inputs));
  EXPECT_THAT(request.texts.at(1), ElementsAre("net"));
  EXPECT_THAT(request.texts.at(2), ElementsAre("3"));
  EXPECT_THAT(request.texts.at(7), ElementsAre(inputs[0].bytes, inputs[1].bytes));
  ASSERT_EQ(request.texts.at(5).size(), 2U);
  const Message first = Decode(request.texts.at(5)[0]);
  EXPECT_THAT(first.texts.at(1), ElementsAre("A"));
  EXPECT_THAT(first.texts.at(2), ElementsAre("FP32"));
  std::string_view sizes = first.texts.at(3)[0];
  EXPECT_EQ(TakeVarint(sizes), 1U);
  EXPECT_EQ(TakeVarint(sizes), 300U);
  EXPECT_TRUE(sizes.empty());
}

TEST(GrpcInferMessage, WithoutAVersionTheServerChooses) {
  EXPECT_FALSE(Decode(GrpcInferMessage("m", "", {}, {})).texts.contains(2));
}

TEST(GrpcInferMessage, ParametersHaveTheTypeOfTheirText) {
  EXPECT_THAT(ParameterOf("true").numbers.at(1), ElementsAre(1));
  EXPECT_THAT(ParameterOf("false").numbers.at(1), ElementsAre(0));
  EXPECT_THAT(ParameterOf("300").numbers.at(2), ElementsAre(300));
  EXPECT_THAT(ParameterOf("-1").numbers.at(2), ElementsAre(UINT64_MAX));
  EXPECT_THAT(ParameterOf("-9223372036854775808").numbers.at(2), ElementsAre(uint64_t{1} << 63));
  EXPECT_THAT(ParameterOf("word").texts.at(3), ElementsAre("word"));
  EXPECT_THAT(ParameterOf("\"300\"").texts.at(3), ElementsAre("300"));
  EXPECT_THAT(ParameterOf("a=b").texts.at(3), ElementsAre("a=b"));
  EXPECT_THAT(ParameterOf("").texts.at(3), ElementsAre(""));
  EXPECT_THAT(ParameterOf("[1]").texts.at(3), ElementsAre("[1]"));
  double real = 0;
  std::memcpy(&real, ParameterOf("0.1").texts.at(4).at(0).data(), sizeof real);
  EXPECT_EQ(real, 0.1);
}

TEST(GrpcInferMessage, LargeIntegersKeepTheirLastDigit) {
  EXPECT_THAT(ParameterOf("18446744073709551615").numbers.at(5), ElementsAre(UINT64_MAX));
  EXPECT_THAT(ParameterOf("9223372036854775807").numbers.at(2), ElementsAre(INT64_MAX));
}

}  // namespace
}  // namespace nereid::cli
