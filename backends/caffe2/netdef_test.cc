// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/netdef.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "caffe2_backend/wire.h"

namespace nereid::caffe2 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Refusal(const std::string& bytes) {
  auto parsed = NetDef::Parse(bytes, "m");
  return parsed.ok() ? std::string("accepted") : std::string(parsed.TakeError().message());
}

// The message of an argument called "a" with the fields that `write` adds.
template <typename Write>
std::string ArgumentMessage(Write&& write) {
  WireWriter message;
  message.Bytes(1, "a");
  write(message);
  return message.Take();
}

// A network of one operator "Clip" from x to y with one argument.
std::string OneOperator(const std::string& argument) {
  WireWriter operation;
  operation.Bytes(1, "x");
  operation.Bytes(2, "y");
  operation.Bytes(4, "Clip");
  operation.Bytes(5, argument);
  WireWriter net;
  net.Bytes(1, "n");
  net.Bytes(2, operation.bytes());
  net.Bytes(7, "x");
  net.Bytes(8, "y");
  return net.Take();
}

TEST(NetDef, HasOperatorsWithInputsOutputsAndArguments) {
  const std::string bytes =
      OneOperator(ArgumentMessage([](WireWriter& message) { message.Number(3, -5); }));
  const NetDef net = NetDef::Parse(bytes, "m").value();
  EXPECT_EQ(net.name, "n");
  EXPECT_THAT(net.external_inputs, ElementsAre("x"));
  EXPECT_THAT(net.external_outputs, ElementsAre("y"));
  ASSERT_EQ(net.operators.size(), 1U);
  EXPECT_EQ(net.operators[0].type, "Clip");
  EXPECT_THAT(net.operators[0].inputs, ElementsAre("x"));
  EXPECT_THAT(net.operators[0].outputs, ElementsAre("y"));
  ASSERT_NE(net.operators[0].Find("a"), nullptr);
  EXPECT_EQ(net.operators[0].Find("a")->integer(), -5);
  EXPECT_EQ(net.operators[0].Find("a")->real(), std::nullopt);
  EXPECT_EQ(net.operators[0].Find("b"), nullptr);
}

TEST(NetDef, ReadsListsPackedOrNot) {
  const std::string single = ArgumentMessage([](WireWriter& message) {
    message.Number(6, 1);
    message.Number(6, -2);
    message.Float(5, 0.5F);
    message.Bytes(7, "t");
  });
  const std::string packed = ArgumentMessage([](WireWriter& message) {
    using namespace std::string_view_literals;
    message.Bytes(6, "\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv);
    message.Bytes(5, "\0\0\0\x3f"sv);
    message.Bytes(7, "t");
  });
  for (const std::string& message : {single, packed}) {
    const std::optional<Argument> argument = Argument::Parse(message);
    ASSERT_TRUE(argument.has_value());
    EXPECT_THAT(argument->Integers(), ElementsAre(1, -2));
    EXPECT_THAT(argument->Reals(), ElementsAre(0.5F));
    EXPECT_THAT(argument->Texts(), ElementsAre("t"));
  }
}

TEST(NetDef, IsRefusedWhereverItIsCutOffInsideAField) {
  const std::string bytes =
      OneOperator(ArgumentMessage([](WireWriter& message) { message.Float(2, 1.0F); }));
  const size_t end_of_name = 3;
  const size_t end_of_operator = bytes.size() - 6;
  for (size_t size = end_of_name + 1; size < end_of_operator; ++size) {
    EXPECT_THAT(Refusal(bytes.substr(0, size)), HasSubstr("is not a Caffe2 NetDef")) << size;
  }
}

TEST(NetDef, IsRefusedWithDamagedLists) {
  for (const uint32_t field : {5U, 6U}) {
    const std::string damaged = ArgumentMessage([field](WireWriter& message) {
      message.Bytes(field, "\xff\xff");  // neither a float nor a whole number
    });
    EXPECT_THAT(Refusal(OneOperator(damaged)), HasSubstr("operator #0 cannot be read")) << field;
  }
}

TEST(NetDef, IsToldFromOtherFiles) {
  EXPECT_THAT(Refusal(""), HasSubstr("the file is empty"));
  EXPECT_THAT(Refusal(std::string(99, '\0')), HasSubstr("nothing but zeros"));
  EXPECT_THAT(Refusal("name: \"net\"\nop { }\n"), HasSubstr("SerializeToString"));
  EXPECT_THAT(Refusal("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("Git LFS"));
}

TEST(NetDef, MayLookLikeAText) {
  WireWriter net;
  net.Bytes(1, "nine_long");  // a line break and a tab, then letters
  EXPECT_EQ(Refusal(net.bytes()), "accepted");
}

}  // namespace
}  // namespace nereid::caffe2
