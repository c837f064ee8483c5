// SPDX-License-Identifier: Apache-2.0
#include "common/infer_request_builder.h"

#include <array>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace nereid::common {
namespace {

using base::StatusCode;
using tensor::DataType;

class NoSink final : public core::ResponseSink {
  void Send(core::ResponsePtr /*response*/, bool /*is_final*/) override {}
};

class InferRequestBuilderTest : public testing::Test {
 protected:
  InferRequestBuilderTest() { Begin(Protocol::kHttp); }

  // Begins a new request of that protocol.
  void Begin(Protocol protocol, TextKind texts = TextKind::kOfReader) {
    builder_.reset();
    regions_.Clear();
    request_ = core::Request::Create(sink_);
    builder_ = std::make_unique<InferRequestBuilder>(protocol, texts, *request_, regions_);
  }
  // Returns the message of the error; empty on success.
  std::string Set(std::string_view name, const ParameterValue& value) {
    status_ = builder_->SetParameter(name, value);
    return std::string(status_.message());
  }
  template <typename Result>
  std::string Message(const Result& result) {
    status_ = result.status();
    return std::string(status_.message());
  }
  RegionTensor Region(const RegionParameters& parameters) {
    const auto region = builder_->ReadRegion("T", parameters);
    EXPECT_TRUE(region.ok()) << region.status().message();
    EXPECT_TRUE(region->has_value());
    return region->value_or(RegionTensor{});
  }
  OutputOptions Options(const OutputParameters& parameters) {
    const auto output = builder_->AddOutput("OUT");
    EXPECT_TRUE(output.ok());
    const auto options = builder_->ReadOutputOptions(**output, parameters);
    EXPECT_TRUE(options.ok()) << options.status().message();
    return options.ok() ? *options : OutputOptions{};
  }

  NoSink sink_;
  RequestRegions regions_;
  core::RequestPtr request_;
  std::unique_ptr<InferRequestBuilder> builder_;
  base::Status status_;
};

TEST_F(InferRequestBuilderTest, SetsWhatTheServerUnderstandsInBothProtocols) {
  for (const Protocol protocol : {Protocol::kHttp, Protocol::kGrpc}) {
    Begin(protocol);
    EXPECT_EQ(Set("sequence_id", int64_t{42}), "");
    EXPECT_EQ(Set("sequence_start", true), "");
    EXPECT_EQ(Set("sequence_end", false), "");
    EXPECT_EQ(Set("priority", int64_t{3}), "");
    EXPECT_EQ(Set("timeout", int64_t{7}), "");
    EXPECT_EQ(request_->correlation_id, core::CorrelationId(uint64_t{42}));
    EXPECT_EQ(request_->flags, core::kSequenceStart);
    EXPECT_EQ(request_->priority, 3u);
    EXPECT_EQ(request_->timeout_us, 7u);
    EXPECT_TRUE(request_->parameters.empty());
    EXPECT_EQ(Set("priority", UINT64_MAX), "");
    EXPECT_EQ(request_->priority, UINT64_MAX);
    EXPECT_EQ(Set("sequence_id", std::string_view("abc")), "");
    EXPECT_EQ(request_->correlation_id, core::CorrelationId(std::string_view("abc")));
  }
}

TEST_F(InferRequestBuilderTest, HandsOtherParametersToTheModel) {
  for (const Protocol protocol : {Protocol::kHttp, Protocol::kGrpc}) {
    Begin(protocol);
    EXPECT_EQ(Set("text", std::string_view("v")), "");
    EXPECT_EQ(Set("int", int64_t{-1}), "");
    EXPECT_EQ(Set("flag", true), "");
    EXPECT_EQ(Set("headers", 1.5), "");
    ASSERT_EQ(request_->parameters.size(), 4u);
    EXPECT_EQ(request_->parameters[0].name, "text");
    EXPECT_EQ(std::get<std::string_view>(request_->parameters[0].value), "v");
    EXPECT_EQ(std::get<int64_t>(request_->parameters[1].value), -1);
    EXPECT_EQ(std::get<bool>(request_->parameters[2].value), true);
    EXPECT_EQ(std::get<double>(request_->parameters[3].value), 1.5);
  }
}

TEST_F(InferRequestBuilderTest, BinaryDataOutputMeansSomethingToHttpOnly) {
  EXPECT_EQ(Set("binary_data_output", true), "");
  EXPECT_TRUE(builder_->is_binary_by_default());
  EXPECT_TRUE(request_->parameters.empty());
  Begin(Protocol::kGrpc);
  EXPECT_EQ(Set("binary_data_output", true), "");
  EXPECT_FALSE(builder_->is_binary_by_default());
  EXPECT_EQ(request_->parameters.size(), 1u);
}

TEST_F(InferRequestBuilderTest, WordsWrongTypesAsTritonsHttpFrontendDoes) {
  EXPECT_EQ(Set("priority", int64_t{-1}),
            "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as "
            "unsigned-integer");
  EXPECT_EQ(status_.code(), StatusCode::kInternal);
  EXPECT_EQ(Set("timeout", 1.0),
            "Unable to parse 'timeout': attempt to access JSON non-unsigned-integer as "
            "unsigned-integer");
  EXPECT_EQ(Set("sequence_id", int64_t{-1}),
            "Unable to parse 'sequence_id': attempt to access JSON non-string as string");
  EXPECT_EQ(Set("sequence_start", int64_t{1}),
            "Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean");
  EXPECT_EQ(Set("binary_data_output", int64_t{1}),
            "Unable to parse 'binary_data_output': attempt to access JSON non-boolean as boolean");
  EXPECT_EQ(Set("a", std::monostate()),
            "parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.");
  EXPECT_EQ(status_.code(), StatusCode::kInvalidArgument);
}

TEST_F(InferRequestBuilderTest, WordsWrongTypesAsTritonsGrpcFrontendDoes) {
  Begin(Protocol::kGrpc);
  EXPECT_EQ(Set("priority", int64_t{-1}), "invalid value for 'priority', expected value >= 0.");
  EXPECT_EQ(status_.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Set("priority", true),
            "invalid value type for 'priority' parameter, expected int64_param or uint64_param.");
  EXPECT_EQ(Set("timeout", uint64_t{1}),
            "invalid value type for 'timeout' parameter, expected int64_param.");
  EXPECT_EQ(
      Set("sequence_id", uint64_t{1}),
      "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.");
  EXPECT_EQ(Set("sequence_end", int64_t{1}),
            "invalid value type for 'sequence_end' parameter, expected bool_param.");
  EXPECT_EQ(Set("a", uint64_t{1}),
            "invalid value type for 'a' parameter, expected int64_param, bool_param, or "
            "string_param.");
  EXPECT_EQ(Set("triton_enable_empty_final_response", int64_t{1}),
            "invalid value type for 'triton_enable_empty_final_response' parameter, expected "
            "bool_param.");
}

TEST_F(InferRequestBuilderTest, RefusesReservedNamesButForTheOneOfGrpc) {
  EXPECT_EQ(Set("triton_enable_empty_final_response", true),
            "parameter keys starting with 'triton_' are reserved for Triton usage and should not "
            "be specified.");
  EXPECT_EQ(builder_->ForwardParameter("triton_x", true).message(), status_.message());
  Begin(Protocol::kGrpc);
  EXPECT_EQ(Set("triton_enable_empty_final_response", true), "");
  EXPECT_TRUE(builder_->wants_empty_final_response());
  EXPECT_EQ(Set("triton_x", true),
            "parameter keys starting with 'triton_' are reserved for Triton usage. Only the "
            "following keys starting with 'triton_' are allowed: "
            "triton_enable_empty_final_response");
}

TEST_F(InferRequestBuilderTest, ForwardsWhatTheServerWouldUnderstandWhenToldSo) {
  EXPECT_TRUE(builder_->ForwardParameter("priority", int64_t{1}).ok());
  EXPECT_EQ(request_->priority, 0u);
  ASSERT_EQ(request_->parameters.size(), 1u);
  EXPECT_EQ(request_->parameters[0].name, "priority");
}

TEST_F(InferRequestBuilderTest, GivesTheModelNumbersThatFitNoIntegerAsDoubles) {
  EXPECT_EQ(Set("big", UINT64_MAX), "");
  EXPECT_EQ(std::get<double>(request_->parameters[0].value), 18446744073709551615.0);
}

TEST_F(InferRequestBuilderTest, LimitsTheNumberOfParametersOfEveryKind) {
  for (size_t i = 0; i < kMaxParameters; ++i) {
    ASSERT_EQ(Set(i % 2 == 0 ? "timeout" : "p" + std::to_string(i), int64_t{1}), "");
  }
  EXPECT_EQ(Set("timeout", int64_t{1}), "a request may have at most 1024 parameters");
  EXPECT_EQ(status_.code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(builder_->ForwardParameter("p", true).ok());
}

TEST_F(InferRequestBuilderTest, LimitsTheLengthOfSequenceIds) {
  EXPECT_EQ(Set("sequence_id", std::string_view(std::string(128, 'x'))), "");
  EXPECT_EQ(Set("sequence_id", std::string_view(std::string(129, 'x'))),
            "string correlation ID cannot be longer than 128 characters");
}

TEST_F(InferRequestBuilderTest, NoticesParametersThatAreSetTwice) {
  EXPECT_EQ(Set("a", true) + Set("b", true) + Set("timeout", int64_t{1}), "");
  EXPECT_FALSE(builder_->has_parameter_twice());
  EXPECT_EQ(Set("a", false), "");
  EXPECT_TRUE(builder_->has_parameter_twice());
  Begin(Protocol::kHttp);
  EXPECT_EQ(Set("timeout", int64_t{1}) + Set("timeout", int64_t{1}), "");
  EXPECT_TRUE(builder_->has_parameter_twice());
}

TEST_F(InferRequestBuilderTest, RefusesTensorsGivenTwiceAndNamesTheRequest) {
  constexpr std::array<int64_t, 2> kDims{2, 3};
  builder_->SetId("7");
  const auto input = builder_->AddInput("A", DataType::kInt8, kDims);
  ASSERT_TRUE(input.ok());
  EXPECT_EQ((*input)->shape, tensor::Shape({2, 3}));
  EXPECT_EQ((*input)->type, DataType::kInt8);
  EXPECT_EQ(Message(builder_->AddInput("A", DataType::kInt8, kDims)),
            "[request id: 7] input 'A' already exists in request");
  EXPECT_EQ(status_.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(builder_->AddOutput("A").ok());
  EXPECT_EQ(Message(builder_->AddOutput("A")),
            "[request id: 7] output 'A' already exists in request");
}

TEST_F(InferRequestBuilderTest, CutsTextsAtTheirFirstZeroByte) {
  using std::string_view_literals::operator""sv;
  for (const TextKind texts : {TextKind::kOfReader, TextKind::kOfMessage}) {
    Begin(Protocol::kGrpc, texts);
    builder_->SetId("id\0x"sv);
    EXPECT_EQ(request_->id, "id");
    EXPECT_EQ(Set("a\0x"sv, "b\0x"sv), "");
    EXPECT_EQ(request_->parameters[0].name, "a");
    EXPECT_EQ(std::get<std::string_view>(request_->parameters[0].value), "b");
    EXPECT_EQ(Set("timeout\0x"sv, int64_t{5}), "");
    EXPECT_EQ(request_->timeout_us, 5u);
    EXPECT_TRUE(builder_->AddInput("in\0x"sv, DataType::kInt8, {}).ok());
    EXPECT_FALSE(builder_->AddInput("in\0y"sv, DataType::kInt8, {}).ok());
    EXPECT_EQ(request_->inputs[0].name, "in");
    EXPECT_TRUE(builder_->AddOutput("out\0x"sv).ok());
    EXPECT_EQ(request_->outputs[0].name, "out");
  }
  EXPECT_EQ(ParseDataType("INT8\0x"sv), DataType::kInt8);
  EXPECT_EQ(ParseDataType("INT9"), DataType::kInvalid);
}

TEST_F(InferRequestBuilderTest, KeepsTextsThatTheReaderForgets) {
  std::string text = "name";
  EXPECT_EQ(Set(text, std::string_view(text)), "");
  ASSERT_TRUE(builder_->AddInput(text, DataType::kInt8, {}).ok());
  text.assign(4, '?');
  EXPECT_EQ(request_->parameters[0].name, "name");
  EXPECT_EQ(std::get<std::string_view>(request_->parameters[0].value), "name");
  EXPECT_EQ(request_->inputs[0].name, "name");
}

TEST_F(InferRequestBuilderTest, ReadsWhereATensorLies) {
  const RegionParameters whole{
      .region = std::string_view("r"), .offset = int64_t{8}, .byte_size = int64_t{64}};
  for (const Protocol protocol : {Protocol::kHttp, Protocol::kGrpc}) {
    Begin(protocol);
    const RegionTensor where = Region(whole);
    EXPECT_EQ(where.region, "r");
    EXPECT_EQ(where.offset, 8u);
    EXPECT_EQ(where.byte_size, 64u);
    const auto nowhere = builder_->ReadRegion("T", {});
    ASSERT_TRUE(nowhere.ok());
    EXPECT_FALSE(nowhere->has_value());
  }
}

TEST_F(InferRequestBuilderTest, OnlyGrpcInsistsOnWholeDescriptionsOfSharedMemory) {
  EXPECT_EQ(Region({.region = std::string_view("r")}).byte_size, 0u);
  EXPECT_EQ(Message(builder_->ReadRegion("T", {.offset = int64_t{1}})), "");
  EXPECT_EQ(Message(builder_->ReadRegion("T", {.offset = int64_t{-1}})),
            "Unable to parse 'shared_memory_offset': attempt to access JSON non-unsigned-integer "
            "as unsigned-integer");
  EXPECT_EQ(Message(builder_->ReadRegion("T", {.region = int64_t{1}})),
            "Unable to parse 'shared_memory_region': attempt to access JSON non-string as string");
  Begin(Protocol::kGrpc);
  EXPECT_EQ(Message(builder_->ReadRegion("T", {.region = std::string_view("r")})),
            "'shared_memory_byte_size' must be specified along with 'shared_memory_region' "
            "parameter for tensor 'T'");
  EXPECT_EQ(Message(builder_->ReadRegion("T", {.offset = int64_t{1}})),
            "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter "
            "for tensor 'T'");
  EXPECT_EQ(Message(builder_->ReadRegion("T", {.region = true})),
            "invalid value type for 'shared_memory_region' parameter for tensor 'T', expected "
            "string_param.");
  EXPECT_EQ(Message(builder_->ReadRegion(
                "T", {.region = std::string_view("r"), .byte_size = uint64_t{1}})),
            "invalid value type for 'shared_memory_byte_size' parameter for tensor 'T', expected "
            "int64_param.");
}

TEST_F(InferRequestBuilderTest, ReadsHowAnOutputIsWanted) {
  EXPECT_TRUE(Options({.binary_data = true}).is_binary);
  Begin(Protocol::kHttp);
  EXPECT_EQ(Options({.classification = int64_t{2}}).class_count, 2u);
  Begin(Protocol::kHttp);
  EXPECT_EQ(Options({.classification = UINT64_MAX}).class_count, UINT32_MAX - 1);
  Begin(Protocol::kGrpc);
  EXPECT_EQ(Options({.classification = INT64_MAX}).class_count, UINT32_MAX - 1);
}

TEST_F(InferRequestBuilderTest, RefusesOutputsThatContradictThemselves) {
  const RegionParameters region{.region = std::string_view("r"), .byte_size = int64_t{8}};
  const OutputParameters classes{.region = region, .classification = int64_t{1}};
  EXPECT_EQ(builder_->CheckOutputParameters(classes).message(),
            "Output can't set both 'shared_memory_region' and 'classification'");
  EXPECT_EQ(builder_->CheckOutputParameters({.region = region, .binary_data = true}).message(),
            "Output can't set both 'shared_memory_region' and 'binary_data'");
  EXPECT_TRUE(builder_->CheckOutputParameters({.region = region, .binary_data = false}).ok());
  EXPECT_EQ(
      builder_->CheckOutputParameters({.region = region, .binary_data = int64_t{1}}).message(),
      "Unable to set 'binary_data': attempt to access JSON non-boolean as boolean");
  EXPECT_EQ(Message(builder_->ReadOutputOptions({}, {.binary_data = int64_t{1}})),
            "Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean");
  EXPECT_EQ(Message(builder_->ReadOutputOptions({}, {.classification = int64_t{-1}})),
            "Unable to set 'classification': attempt to access JSON non-unsigned-integer as "
            "unsigned-integer");
  Begin(Protocol::kGrpc);
  EXPECT_EQ(Message(builder_->ReadOutputOptions({}, classes)),
            "output can't set both 'shared_memory_region' and 'classification'");
  EXPECT_EQ(Message(builder_->ReadOutputOptions({}, {.classification = true})),
            "invalid value type for 'classification' parameter, expected int64_param");
  EXPECT_EQ(Message(builder_->ReadOutputOptions({}, {.classification = int64_t{0}})),
            "invalid value for 'classification' parameter, expected >= 0");
}

}  // namespace
}  // namespace nereid::common
