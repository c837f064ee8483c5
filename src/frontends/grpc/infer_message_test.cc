// SPDX-License-Identifier: Apache-2.0
// The hand-written reader against protobuf's own: both read the same from all bytes, and refuse the
// same.
#include "grpc/infer_message.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "grpc/wire_reader.h"
#include "grpc_service.pb.h"

namespace nereid::grpc {
namespace {

using Random = std::mt19937_64;

std::string RandomText(Random& random) {
  static const std::string kPieces[] = {"a", "INPUT0", "ä", "€", "\U0001F600", "x y", ""};
  std::string text;
  for (uint64_t n = random() % 4; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
  return text;
}

std::string RandomBytes(Random& random, size_t limit) {
  std::string bytes(random() % limit, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

// Returns small, large and negative numbers alike.
uint64_t RandomNumber(Random& random) { return random() >> (random() % 64); }

void FillParameter(Random& random, inference::InferParameter& parameter) {
  switch (random() % 6) {
    case 0:
      parameter.set_bool_param(random() % 2 == 0);
      break;
    case 1:
      parameter.set_int64_param(static_cast<int64_t>(RandomNumber(random)));
      break;
    case 2:
      parameter.set_string_param(RandomText(random));
      break;
    case 3:
      parameter.set_double_param(static_cast<double>(random() % 1000) / 7);
      break;
    case 4:
      parameter.set_uint64_param(RandomNumber(random));
      break;
    default:
      break;
  }
}

void FillContents(Random& random, inference::InferTensorContents& contents) {
  for (uint64_t n = random() % 20; n > 0; --n) {
    switch (random() % 8) {
      case 0:
        contents.add_bool_contents(random() % 2 == 0);
        break;
      case 1:
        contents.add_int_contents(static_cast<int32_t>(RandomNumber(random)));
        break;
      case 2:
        contents.add_int64_contents(static_cast<int64_t>(RandomNumber(random)));
        break;
      case 3:
        contents.add_uint_contents(static_cast<uint32_t>(RandomNumber(random)));
        break;
      case 4:
        contents.add_uint64_contents(RandomNumber(random));
        break;
      case 5:
        contents.add_fp32_contents(static_cast<float>(random() % 100) / 3);
        break;
      case 6:
        contents.add_fp64_contents(static_cast<double>(random() % 100) / 3);
        break;
      default:
        contents.add_bytes_contents(RandomBytes(random, 9));
    }
  }
}

inference::ModelInferRequest RandomRequest(Random& random) {
  inference::ModelInferRequest request;
  request.set_model_name(RandomText(random));
  request.set_model_version(RandomText(random));
  request.set_id(RandomText(random));
  for (uint64_t n = random() % 4; n > 0; --n) {
    FillParameter(random, (*request.mutable_parameters())[RandomText(random)]);
  }
  for (uint64_t n = random() % 4; n > 0; --n) {
    auto& input = *request.add_inputs();
    input.set_name(RandomText(random));
    input.set_datatype(RandomText(random));
    for (uint64_t d = random() % 12; d > 0; --d) {
      input.add_shape(static_cast<int64_t>(RandomNumber(random)));
    }
    if (random() % 3 == 0) FillParameter(random, (*input.mutable_parameters())[RandomText(random)]);
    if (random() % 2 == 0) FillContents(random, *input.mutable_contents());
  }
  for (uint64_t n = random() % 4; n > 0; --n) {
    auto& output = *request.add_outputs();
    output.set_name(RandomText(random));
    FillParameter(random, (*output.mutable_parameters())["classification"]);
  }
  for (uint64_t n = random() % 4; n > 0; --n) {
    request.add_raw_input_contents(RandomBytes(random, 300));
  }
  return request;
}

bool SameValue(const WireValue& ours, const inference::InferParameter& theirs) {
  using Case = inference::InferParameter::ParameterChoiceCase;
  switch (theirs.parameter_choice_case()) {
    case Case::kBoolParam:
      return ours == WireValue(theirs.bool_param());
    case Case::kInt64Param:
      return ours == WireValue(static_cast<int64_t>(theirs.int64_param()));
    case Case::kStringParam:
      return ours == WireValue(std::string_view(theirs.string_param()));
    case Case::kDoubleParam: {
      const auto* value = std::get_if<double>(&ours);
      return value != nullptr &&
             std::bit_cast<uint64_t>(*value) == std::bit_cast<uint64_t>(theirs.double_param());
    }
    case Case::kUint64Param:
      return ours == WireValue(static_cast<uint64_t>(theirs.uint64_param()));
    case Case::PARAMETER_CHOICE_NOT_SET:
      return std::holds_alternative<std::monostate>(ours);
  }
  return false;
}

template <typename Map>
void ExpectSameParameters(std::span<const WireParameter> ours, const Map& theirs) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (const WireParameter& parameter : ours) {
    const auto found = theirs.find(std::string(parameter.name));
    ASSERT_NE(found, theirs.end()) << parameter.name;
    EXPECT_TRUE(SameValue(parameter.value, found->second)) << parameter.name;
  }
}

std::string Written(const InferMessage& message, const WireInput& input, ContentsKind kind,
                    size_t element_size) {
  const size_t count = input.element_counts[static_cast<size_t>(kind)];
  std::string data(
      count * element_size + (kind == ContentsKind::kBytes ? input.bytes_contents_size : 0), '\0');
  auto* out = reinterpret_cast<std::byte*>(data.data());
  for (uint32_t i = 0; i < input.contents.count; ++i) {
    out = WriteContents(message.contents_bodies[input.contents.first + i], kind, element_size, out);
  }
  EXPECT_EQ(out, reinterpret_cast<std::byte*>(data.data()) + data.size());
  return data;
}

template <typename Repeated>
std::string Raw(const Repeated& values) {
  if (values.empty()) return {};
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(*values.data())};
}

void ExpectSameContents(const InferMessage& message, const WireInput& ours,
                        const inference::InferTensorContents& theirs) {
  EXPECT_EQ(Written(message, ours, ContentsKind::kBool, 1), Raw(theirs.bool_contents()));
  EXPECT_EQ(Written(message, ours, ContentsKind::kInt, 4), Raw(theirs.int_contents()));
  EXPECT_EQ(Written(message, ours, ContentsKind::kInt64, 8), Raw(theirs.int64_contents()));
  EXPECT_EQ(Written(message, ours, ContentsKind::kUint, 4), Raw(theirs.uint_contents()));
  EXPECT_EQ(Written(message, ours, ContentsKind::kUint64, 8), Raw(theirs.uint64_contents()));
  EXPECT_EQ(Written(message, ours, ContentsKind::kFp32, 4), Raw(theirs.fp32_contents()));
  EXPECT_EQ(Written(message, ours, ContentsKind::kFp64, 8), Raw(theirs.fp64_contents()));
  std::string bytes;
  for (const std::string& element : theirs.bytes_contents()) {
    const auto size = static_cast<uint32_t>(element.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes += element;
  }
  EXPECT_EQ(Written(message, ours, ContentsKind::kBytes, 4), bytes);
}

std::span<const WireParameter> Slice(const InferMessage& message, WireRange range) {
  return std::span(message.tensor_parameters).subspan(range.first, range.count);
}

void ExpectSame(const InferMessage& ours, const inference::ModelInferRequest& theirs) {
  EXPECT_EQ(ours.model_name, theirs.model_name());
  EXPECT_EQ(ours.model_version, theirs.model_version());
  EXPECT_EQ(ours.id, theirs.id());
  ExpectSameParameters(ours.parameters, theirs.parameters());
  ASSERT_EQ(ours.inputs.size(), static_cast<size_t>(theirs.inputs_size()));
  for (size_t i = 0; i < ours.inputs.size(); ++i) {
    const WireInput& input = ours.inputs[i];
    const auto& expected = theirs.inputs(static_cast<int>(i));
    EXPECT_EQ(input.name, expected.name());
    EXPECT_EQ(input.datatype, expected.datatype());
    EXPECT_TRUE(std::ranges::equal(input.shape.dims(), expected.shape()));
    ExpectSameParameters(Slice(ours, input.parameters), expected.parameters());
    ASSERT_EQ(input.has_contents, expected.has_contents());
    if (input.has_contents) ExpectSameContents(ours, input, expected.contents());
  }
  ASSERT_EQ(ours.outputs.size(), static_cast<size_t>(theirs.outputs_size()));
  for (size_t i = 0; i < ours.outputs.size(); ++i) {
    const auto& expected = theirs.outputs(static_cast<int>(i));
    EXPECT_EQ(ours.outputs[i].name, expected.name());
    ExpectSameParameters(Slice(ours, ours.outputs[i].parameters), expected.parameters());
  }
  ASSERT_EQ(ours.raw_input_contents.size(), static_cast<size_t>(theirs.raw_input_contents_size()));
  for (size_t i = 0; i < ours.raw_input_contents.size(); ++i) {
    EXPECT_EQ(ours.raw_input_contents[i], theirs.raw_input_contents(static_cast<int>(i)));
  }
}

void ExpectSameVerdict(const std::string& bytes) {
  inference::ModelInferRequest theirs;
  const bool accepted = theirs.ParseFromString(bytes);
  // A copy without slack, so that a sanitizer sees every read beyond it.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  InferMessage ours;
  ASSERT_EQ(ours.Parse({exact.data(), exact.size()}), accepted) << testing::PrintToString(exact);
  if (accepted) ExpectSame(ours, theirs);
}

TEST(InferMessage, ReadsWhatProtobufWrites) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) ExpectSameVerdict(RandomRequest(random).SerializeAsString());
}

TEST(InferMessage, MergesConcatenatedMessagesAsProtobufDoes) {
  Random random(2);
  for (int i = 0; i < 1000; ++i) {
    ExpectSameVerdict(RandomRequest(random).SerializeAsString() +
                      RandomRequest(random).SerializeAsString());
  }
}

TEST(InferMessage, AgreesWithProtobufOnDamagedBytes) {
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = RandomRequest(random).SerializeAsString();
    for (uint64_t n = 1 + random() % 3; n > 0 && !bytes.empty(); --n) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.resize(at);
          break;
        default:
          bytes.insert(at, 1, static_cast<char>(random()));
      }
    }
    ExpectSameVerdict(bytes);
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "round " << i;
  }
}

TEST(InferMessage, AgreesWithProtobufOnNoise) {
  Random random(4);
  for (int i = 0; i < 20000; ++i) ExpectSameVerdict(RandomBytes(random, 24));
}

// Makes one field with a varint tag of `tag`, as raw bytes.
std::string Unpacked(const std::string& contents_fields) {
  const std::string input = std::string("\x0a\x01i") + "\x2a" +
                            static_cast<char>(contents_fields.size()) + contents_fields;
  return std::string("\x2a") + static_cast<char>(input.size()) + input;
}

TEST(InferMessage, TakesRepeatedNumbersThatAreNotPacked) {
  ExpectSameVerdict(Unpacked(std::string("\x10\x05\x10\x06\x12\x02\x07\x08", 8)));  // int_contents
  ExpectSameVerdict(Unpacked(std::string("\x35\x00\x00\x80\x3f", 5)));              // fp32_contents
  ExpectSameVerdict(Unpacked(std::string("\x08\x02\x0a\x02\x00\x81", 6)));  // truncated varint
}

TEST(InferMessage, PassesOverUnknownFieldsAndGroups) {
  ExpectSameVerdict(
      "\x0a\x01m"
      "\x98\x06\x01"
      "\xa3\x06\x08\x01\xa4\x06"
      "\x12\x01v");
  ExpectSameVerdict("\xa3\x06\x08\x01");        // a group without an end
  ExpectSameVerdict("\xa4\x06");                // an end without a group
  ExpectSameVerdict("\xa3\x06\xac\x06");        // the wrong end
  ExpectSameVerdict(std::string(300, '\xa3'));  // nested groups
  ExpectSameVerdict(std::string("\x00\x00", 2));
}

TEST(InferMessage, RefusesTextThatIsNotUtf8) {
  for (const char* text : {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"}) {
    std::string bytes = "\x0a";
    bytes += static_cast<char>(std::strlen(text));
    bytes += text;
    ExpectSameVerdict(bytes);
    EXPECT_FALSE(InferMessage().Parse(bytes));
  }
}

TEST(InferMessage, BoundsTheNumberOfParameters) {
  inference::ModelInferRequest request;
  for (int i = 0; i < 1024; ++i) {
    (*request.mutable_parameters())["p" + std::to_string(i)].set_int64_param(i);
  }
  EXPECT_TRUE(InferMessage().Parse(request.SerializeAsString()));
  (*request.mutable_parameters())["one more"].set_int64_param(0);
  EXPECT_FALSE(InferMessage().Parse(request.SerializeAsString()));
}

TEST(InferMessage, ForgetsThePreviousMessage) {
  Random random(5);
  InferMessage ours;
  for (int i = 0; i < 200; ++i) {
    const inference::ModelInferRequest theirs = RandomRequest(random);
    const std::string bytes = theirs.SerializeAsString();
    ASSERT_TRUE(ours.Parse(bytes));
    ExpectSame(ours, theirs);
  }
}

}  // namespace
}  // namespace nereid::grpc
