// SPDX-License-Identifier: Apache-2.0
// Requests from messages that protobuf wrote: data of every type, in every form, and errors. Tests
// of the rules about parameters are beside common::InferRequestBuilder.
#include "grpc/infer_request.h"

#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/testing/fakes.h"
#include "grpc_service.pb.h"

namespace nereid::grpc {
namespace {

using base::StatusCode;
using tensor::DataType;

class NoSink final : public core::ResponseSink {
  void Send(core::ResponsePtr /*response*/, bool /*is_final*/) override {}
};

class FillRequestTest : public testing::Test {
 protected:
  FillRequestTest() {
    message_.set_model_name("m");
    message_.set_id("7");
  }

  inference::ModelInferRequest::InferInputTensor& AddInput(const std::string& name,
                                                           const std::string& type,
                                                           std::vector<int64_t> shape) {
    auto& input = *message_.add_inputs();
    input.set_name(name);
    input.set_datatype(type);
    for (const int64_t dim : shape) input.add_shape(dim);
    return input;
  }
  // Reads `message_`; returns the error's text, empty on success.
  std::string Fill() {
    bytes_ = message_.SerializeAsString();
    EXPECT_TRUE(parsed_.Parse(bytes_));
    request_ = core::Request::Create(sink_);
    request_->model = Pin(*model_);
    const auto options = FillRequest(parsed_, *request_);
    status_ = options.status();
    if (options.ok()) options_ = *options;
    return std::string(status_.message());
  }
  // Returns the data of input `i`, all chunks together.
  std::string Data(size_t i) const {
    std::string data;
    const core::RequestInput& input = request_->inputs[i];
    for (size_t c = 0; c < input.chunk_count(); ++c) {
      const core::DataChunk& chunk = input.chunk(c);
      data.append(reinterpret_cast<const char*>(chunk.data), chunk.size);
    }
    return data;
  }
  static core::ModelHandle Pin(core::Model& model) {
    EXPECT_TRUE(model.TryPin());
    return core::ModelHandle(model);
  }

  std::unique_ptr<core::Model> model_ = core::MakeFakeModel(8, {-1});
  NoSink sink_;
  inference::ModelInferRequest message_;
  std::string bytes_;
  InferMessage parsed_;
  core::RequestPtr request_;
  InferOptions options_;
  base::Status status_;
};

// Returns the elements as a tensor contains them.
template <typename T>
std::string Raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T)};
}

TEST_F(FillRequestTest, TakesTypedContentsOfEveryType) {
  using Contents = inference::InferTensorContents;
  struct Case {
    const char* type;
    void (*fill)(Contents&);
    std::string data;
  };
  const Case kCases[] = {
      {"BOOL",
       [](Contents& c) {
         c.add_bool_contents(true);
         c.add_bool_contents(false);
       },
       std::string("\1\0", 2)},
      {"INT8", [](Contents& c) { c.add_int_contents(-2); }, Raw<int8_t>({-2})},
      {"INT16", [](Contents& c) { c.add_int_contents(-300); }, Raw<int16_t>({-300})},
      {"INT32", [](Contents& c) { c.add_int_contents(INT32_MIN); }, Raw<int32_t>({INT32_MIN})},
      {"INT64", [](Contents& c) { c.add_int64_contents(INT64_MIN); }, Raw<int64_t>({INT64_MIN})},
      {"UINT8", [](Contents& c) { c.add_uint_contents(300); }, Raw<uint8_t>({44})},
      {"UINT16", [](Contents& c) { c.add_uint_contents(65535); }, Raw<uint16_t>({65535})},
      {"UINT32", [](Contents& c) { c.add_uint_contents(UINT32_MAX); }, Raw<uint32_t>({UINT32_MAX})},
      {"UINT64", [](Contents& c) { c.add_uint64_contents(UINT64_MAX); },
       Raw<uint64_t>({UINT64_MAX})},
      {"FP32", [](Contents& c) { c.add_fp32_contents(1.5F); }, Raw<float>({1.5F})},
      {"FP64", [](Contents& c) { c.add_fp64_contents(-0.1); }, Raw<double>({-0.1})},
      {"BYTES",
       [](Contents& c) {
         c.add_bytes_contents("ab");
         c.add_bytes_contents("");
       },
       Raw<uint32_t>({2}) + "ab" + Raw<uint32_t>({0})},
  };
  for (const Case& one : kCases) {
    message_.clear_inputs();
    one.fill(*AddInput("I", one.type, {1}).mutable_contents());
    ASSERT_EQ(Fill(), "") << one.type;
    EXPECT_EQ(tensor::ProtocolName(request_->inputs[0].type), one.type);
    EXPECT_EQ(Data(0), one.data) << one.type;
  }
}

TEST_F(FillRequestTest, TakesRawContentsOfEveryType) {
  for (const char* type : {"BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32",
                           "UINT64", "FP16", "BF16", "FP32", "FP64", "BYTES"}) {
    message_.Clear();
    AddInput("I", type, {1, 3});
    message_.add_raw_input_contents(std::string("\0raw\xff", 5));
    ASSERT_EQ(Fill(), "") << type;
    EXPECT_EQ(tensor::ProtocolName(request_->inputs[0].type), type);
    EXPECT_EQ(request_->inputs[0].shape, tensor::Shape({1, 3}));
    EXPECT_EQ(Data(0), std::string("\0raw\xff", 5)) << type;
  }
}

TEST_F(FillRequestTest, RefusesContentsOfAnotherType) {
  const char* const kNumbers[] = {"INT8", "UINT8", "INT64", "FP32", "FP16", "BYTES"};
  for (const char* type : kNumbers) {
    message_.clear_inputs();
    AddInput("I", type, {1}).mutable_contents()->add_fp64_contents(1);
    EXPECT_EQ(Fill(),
              std::string("unexpected explicit tensor data for input tensor 'I' for model 'm' of "
                          "type 'FP64', expected datatype '") +
                  type + "'");
    EXPECT_EQ(status_.code(), StatusCode::kInvalidArgument);
  }
}

TEST_F(FillRequestTest, RefusesTwoKindsOfContents) {
  auto& contents = *AddInput("I", "INT32", {2}).mutable_contents();
  contents.add_int_contents(1);
  contents.add_uint_contents(1);
  EXPECT_EQ(Fill(),
            "unexpected explicit tensor data for input tensor 'I' for model 'm', binary data was "
            "already supplied.");
}

TEST_F(FillRequestTest, GivesRawContentsToInputsInOrder) {
  AddInput("A", "INT8", {2});
  AddInput("B", "INT8", {3});
  message_.add_raw_input_contents("aa");
  message_.add_raw_input_contents("bbb");
  ASSERT_EQ(Fill(), "");
  EXPECT_EQ(Data(0), "aa");
  EXPECT_EQ(Data(1), "bbb");
}

TEST_F(FillRequestTest, SaysWhichInputHasNoRawContents) {
  AddInput("A", "INT8", {1});
  AddInput("B", "INT8", {1});
  message_.add_raw_input_contents("a");
  EXPECT_EQ(Fill(), "unable to find data for input tensor 'B' for model 'm' in request.");
}

TEST_F(FillRequestTest, RefusesRawAndTypedContentsInOneRequest) {
  AddInput("A", "INT8", {1}).mutable_contents()->add_int_contents(1);
  message_.add_raw_input_contents("a");
  EXPECT_EQ(Fill(),
            "contents field must not be specified when using raw_input_contents for 'A' for model "
            "'m'");
}

TEST_F(FillRequestTest, TakesEmptyTensors) {
  AddInput("A", "INT8", {0}).mutable_contents();
  ASSERT_EQ(Fill(), "");
  EXPECT_EQ(Data(0), "");
  message_.Clear();
  AddInput("A", "INT8", {0});
  message_.add_raw_input_contents("");
  ASSERT_EQ(Fill(), "");
  EXPECT_EQ(Data(0), "");
}

TEST_F(FillRequestTest, LeavesUnknownTypesToTheEngine) {
  AddInput("A", "FLOAT", {1});
  message_.add_raw_input_contents("a");
  ASSERT_EQ(Fill(), "");
  EXPECT_EQ(request_->inputs[0].type, DataType::kInvalid);
}

TEST_F(FillRequestTest, AlignsSmallRawContentsAndLeavesLargeOnesWhereTheyAre) {
  AddInput("A", "FP64", {1, 2});
  AddInput("B", "FP64", {1024});
  for (size_t shift = 0; shift < 16; ++shift) {
    message_.set_id(std::string(shift, 'x'));
    message_.clear_raw_input_contents();
    message_.add_raw_input_contents(std::string(16, 'a'));
    message_.add_raw_input_contents(std::string(8192, 'b'));
    ASSERT_EQ(Fill(), "");
    const auto* const small = request_->inputs[0].first.data;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(small) % 16, 0u);
    const auto* const large = reinterpret_cast<const char*>(request_->inputs[1].first.data);
    EXPECT_TRUE(large >= bytes_.data() && large < bytes_.data() + bytes_.size());
  }
}

TEST_F(FillRequestTest, JoinsContentsThatCameInPieces) {
  // protobuf merges repeated sub-messages.
  inference::ModelInferRequest::InferInputTensor first;
  first.set_name("I");
  first.set_datatype("INT32");
  first.add_shape(3);
  first.mutable_contents()->add_int_contents(1);
  inference::ModelInferRequest::InferInputTensor second;
  second.mutable_contents()->add_int_contents(2);
  second.mutable_contents()->add_int_contents(3);
  const std::string input = first.SerializeAsString() + second.SerializeAsString();
  const std::string bytes = std::string("\x0a\x01m\x2a") + static_cast<char>(input.size()) + input;
  ASSERT_TRUE(message_.ParseFromString(bytes));
  ASSERT_EQ(message_.inputs(0).contents().int_contents_size(), 3);
  ASSERT_TRUE(parsed_.Parse(bytes));
  request_ = core::Request::Create(sink_);
  request_->model = Pin(*model_);
  ASSERT_TRUE(FillRequest(parsed_, *request_).ok());
  EXPECT_EQ(Data(0), Raw<int32_t>({1, 2, 3}));
}

TEST_F(FillRequestTest, EndsNamesAndIdsAtAZeroByte) {
  using std::string_literals::operator""s;
  message_.set_id("id\0x"s);
  AddInput("A\0x"s, "INT8\0x"s, {1});
  message_.add_raw_input_contents("a");
  message_.add_outputs()->set_name("O\0x"s);
  (*message_.mutable_parameters())["p\0x"s].set_string_param("v\0x"s);
  ASSERT_EQ(Fill(), "");
  EXPECT_EQ(request_->id, "id");
  EXPECT_EQ(request_->inputs[0].name, "A");
  EXPECT_EQ(request_->inputs[0].type, DataType::kInt8);
  EXPECT_EQ(request_->outputs[0].name, "O");
  EXPECT_EQ(request_->parameters[0].name, "p");
  EXPECT_EQ(std::get<std::string_view>(request_->parameters[0].value), "v");
}

TEST_F(FillRequestTest, RefusesTensorsGivenTwiceBeforeItLooksForData) {
  AddInput("A", "INT8", {1});
  message_.add_outputs()->set_name("O");
  message_.add_outputs()->set_name("O");
  EXPECT_EQ(Fill(), "[request id: 7] output 'O' already exists in request");
  AddInput("A", "INT8", {1});
  EXPECT_EQ(Fill(), "[request id: 7] input 'A' already exists in request");
}

TEST_F(FillRequestTest, EncodesTheFormOfOutputsInTheirTags) {
  message_.add_outputs()->set_name("tensor");
  auto& classes = *message_.add_outputs();
  classes.set_name("classes");
  (*classes.mutable_parameters())["classification"].set_int64_param(3);
  auto& most = *message_.add_outputs();
  most.set_name("most");
  (*most.mutable_parameters())["classification"].set_int64_param(INT64_MAX);
  ASSERT_EQ(Fill(), "");
  EXPECT_EQ(request_->outputs[0].tag, 0u);
  EXPECT_EQ(request_->outputs[1].tag, 3u);
  EXPECT_EQ(request_->outputs[2].tag, kInRegionTag - 1);
  (*most.mutable_parameters())["classification"].set_int64_param(0);
  EXPECT_EQ(Fill(), "invalid value for 'classification' parameter, expected >= 0");
}

TEST_F(FillRequestTest, RefusesSharedMemoryThatIsNotRegisteredOrDescribed) {
  auto& parameters = *AddInput("A", "INT8", {1}).mutable_parameters();
  parameters["shared_memory_byte_size"].set_int64_param(1);
  EXPECT_EQ(Fill(),
            "'shared_memory_byte_size' can not be specified without 'shared_memory_region' "
            "parameter for tensor 'A'");
  parameters["shared_memory_region"].set_string_param("r");
  EXPECT_EQ(Fill(), "Unable to find shared memory region: 'r'");
  EXPECT_EQ(status_.code(), StatusCode::kNotFound);
  message_.mutable_inputs(0)->mutable_contents();
  EXPECT_EQ(Fill(),
            "unexpected 'content' provided when using shared memory for input tensor 'A' for model "
            "'m'");
}

TEST_F(FillRequestTest, ReadsTheParametersOfARequest) {
  auto& parameters = *message_.mutable_parameters();
  parameters["sequence_id"].set_string_param("s");
  parameters["sequence_start"].set_bool_param(true);
  parameters["priority"].set_uint64_param(2);
  parameters["timeout"].set_int64_param(3);
  parameters["mine"].set_double_param(0.5);
  parameters["triton_enable_empty_final_response"].set_bool_param(true);
  ASSERT_EQ(Fill(), "");
  EXPECT_EQ(request_->correlation_id, core::CorrelationId(std::string_view("s")));
  EXPECT_EQ(request_->flags, core::kSequenceStart);
  EXPECT_EQ(request_->priority, 2u);
  EXPECT_EQ(request_->timeout_us, 3u);
  ASSERT_EQ(request_->parameters.size(), 1u);
  EXPECT_EQ(std::get<double>(request_->parameters[0].value), 0.5);
  EXPECT_TRUE(options_.wants_empty_final_response);
  parameters["priority"].clear_parameter_choice();
  EXPECT_EQ(Fill(),
            "invalid value type for 'priority' parameter, expected int64_param or uint64_param.");
}

// Random contents, compared with what protobuf's own parser makes of the same bytes.
TEST_F(FillRequestTest, AgreesWithProtobufAboutRandomContents) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 500; ++round) {
    message_.clear_inputs();
    std::vector<std::string> expected;
    for (uint64_t i = 0; i < random() % 4; ++i) {
      auto& contents = *AddInput("I" + std::to_string(i), i % 2 == 0 ? "INT64" : "BYTES", {1})
                            .mutable_contents();
      std::string& data = expected.emplace_back();
      for (uint64_t n = random() % 30; n > 0; --n) {
        if (i % 2 == 0) {
          const auto value = static_cast<int64_t>(random() >> (random() % 64));
          contents.add_int64_contents(value);
          data += Raw<int64_t>({value});
        } else {
          const std::string value(random() % 5, static_cast<char>(random()));
          contents.add_bytes_contents(value);
          data += Raw<uint32_t>({static_cast<uint32_t>(value.size())}) + value;
        }
      }
    }
    ASSERT_EQ(Fill(), "");
    ASSERT_EQ(request_->inputs.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(Data(i), expected[i]);
  }
}

}  // namespace
}  // namespace nereid::grpc
