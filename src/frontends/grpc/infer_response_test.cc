// SPDX-License-Identifier: Apache-2.0
// The hand-written encoder, read back by protobuf's own parser.
#include "grpc/infer_response.h"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/fakes.h"
#include "grpc/infer_request.h"
#include "grpc_service.pb.h"
#include "service/testing/fake_service.h"

namespace nereid::grpc {
namespace {

using tensor::DataType;
using testing::ElementsAre;
using testing::IsEmpty;

std::string BytesOf(const http2::GrpcMessage& message) {
  std::string bytes;
  for (size_t i = 0; i < message.segment_count(); ++i) {
    const auto& segment = message.segment(i);
    bytes.append(reinterpret_cast<const char*>(segment.data), segment.size);
  }
  EXPECT_EQ(bytes.size(), message.size());
  return bytes;
}

template <typename Message>
Message Parse(const http2::GrpcMessage& message) {
  Message parsed;
  EXPECT_TRUE(parsed.ParseFromString(BytesOf(message)));
  return parsed;
}

class InferResponses : public testing::Test {
 protected:
  explicit InferResponses(std::vector<DataType> types = {DataType::kFp32, DataType::kBytes},
                          int64_t max_batch_size = 0)
      : model_(service::MakeModel(types, max_batch_size)) {}
  ~InferResponses() override {
    response_.reset();
    request_.reset();
  }

  // Begins a response to a request with this id.
  core::Response& Begin(std::string_view id = "") {
    request_ = core::Request::Create(sink_);
    request_->model = service::Pin(*model_);
    request_->id = id;
    response_ = core::Response::Create(*request_);
    return *response_;
  }

  void AddOutput(std::string_view name, DataType type, const tensor::Shape& shape,
                 std::string_view data) {
    core::ResponseOutput* const output = response_->AddOutput(name, type, shape.dims());
    ASSERT_NE(output, nullptr);
    ASSERT_TRUE(response_->AllocateBuffer(*output, data.size(), {}, false).ok());
    if (!data.empty()) std::memcpy(output->data, data.data(), data.size());
  }

  inference::ModelInferResponse Encode() {
    const auto message = EncodeInferResponse(response_);
    EXPECT_TRUE(message.ok()) << message.status().message();
    return Parse<inference::ModelInferResponse>(**message);
  }

  core::FakeSink sink_;
  const std::unique_ptr<core::Model> model_;
  core::RequestPtr request_;
  core::ResponsePtr response_;
};

TEST_F(InferResponses, CarryNamesTypesShapesAndBytes) {
  Begin("request 1");
  AddOutput("OUT0", DataType::kFp32, {2, 1}, "12345678");
  AddOutput("OUT1", DataType::kBytes, {1}, std::string_view("\3\0\0\0abc", 7));
  const inference::ModelInferResponse reply = Encode();
  EXPECT_EQ(reply.model_name(), "m");
  EXPECT_EQ(reply.model_version(), "3");
  EXPECT_EQ(reply.id(), "request 1");
  ASSERT_EQ(reply.outputs_size(), 2);
  EXPECT_EQ(reply.outputs(0).name(), "OUT0");
  EXPECT_EQ(reply.outputs(0).datatype(), "FP32");
  EXPECT_THAT(reply.outputs(0).shape(), ElementsAre(2, 1));
  EXPECT_EQ(reply.outputs(1).datatype(), "BYTES");
  EXPECT_THAT(reply.raw_output_contents(),
              ElementsAre("12345678", std::string_view("\3\0\0\0abc", 7)));
}

TEST_F(InferResponses, MayHaveNoOutputsAndEmptyOnes) {
  Begin();
  EXPECT_EQ(Encode().outputs_size(), 0);
  Begin();
  AddOutput("OUT0", DataType::kFp32, {0, 4}, "");
  AddOutput("OUT1", DataType::kBytes, {}, "");
  const inference::ModelInferResponse reply = Encode();
  EXPECT_EQ(reply.id(), "");
  EXPECT_THAT(reply.outputs(0).shape(), ElementsAre(0, 4));
  EXPECT_THAT(reply.outputs(1).shape(), IsEmpty());
  EXPECT_THAT(reply.raw_output_contents(), ElementsAre("", ""));
}

TEST_F(InferResponses, CarryEveryKindOfParameter) {
  core::Response& response = Begin();
  response.AddParameter({.name = "text", .value = std::string_view("value")});
  response.AddParameter({.name = "number", .value = int64_t{-5}});
  response.AddParameter({.name = "truth", .value = true});
  response.AddParameter({.name = "share", .value = 0.25});
  const inference::ModelInferResponse reply = Encode();
  EXPECT_EQ(reply.parameters_size(), 4);
  EXPECT_EQ(reply.parameters().at("text").string_param(), "value");
  EXPECT_EQ(reply.parameters().at("number").int64_param(), -5);
  EXPECT_TRUE(reply.parameters().at("truth").bool_param());
  EXPECT_EQ(reply.parameters().at("share").double_param(), 0.25);
}

TEST_F(InferResponses, KeepTheOrderOfManyOutputs) {
  Begin();
  for (int i = 0; i < 40; ++i) {
    const std::string text = std::to_string(i);
    AddOutput("extra" + text, DataType::kUint8, {static_cast<int64_t>(text.size())}, text);
  }
  const inference::ModelInferResponse reply = Encode();
  ASSERT_EQ(reply.outputs_size(), 40);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(reply.outputs(i).name(), "extra" + std::to_string(i));
    EXPECT_EQ(reply.raw_output_contents(i), std::to_string(i));
  }
}

TEST_F(InferResponses, SendLargeTensorsFromWhereTheModelLeftThem) {
  const std::string data(100'000, 'x');
  core::Response& response = Begin();
  AddOutput("OUT0", DataType::kUint8, {100'000}, data);
  const std::byte* const place = response.output(0).data;
  const auto message = EncodeInferResponse(response_);
  ASSERT_TRUE(message.ok());
  bool is_there = false;
  for (size_t i = 0; i < (*message)->segment_count(); ++i) {
    is_there |= (*message)->segment(i).data == place;
  }
  EXPECT_TRUE(is_there);
  // Only the message keeps the tensor.
  request_.reset();
  EXPECT_EQ(Parse<inference::ModelInferResponse>(**message).raw_output_contents(0), data);
}

TEST_F(InferResponses, LeaveOutTheBytesOfOutputsInSharedMemory) {
  Begin();
  request_->outputs.push_back({.name = "OUT0", .tag = kInRegionTag});
  AddOutput("OUT0", DataType::kFp32, {1}, "1234");
  const inference::ModelInferResponse reply = Encode();
  EXPECT_THAT(reply.outputs(0).shape(), ElementsAre(1));
  EXPECT_THAT(reply.raw_output_contents(), ElementsAre(""));
}

TEST_F(InferResponses, SendTheBestClassesInPlaceOfTheTensor) {
  Begin();
  request_->outputs.push_back({.name = "OUT0", .tag = 1});
  const float values[] = {0.5F, 2.0F};
  AddOutput("OUT0", DataType::kFp32, {2}, {reinterpret_cast<const char*>(values), sizeof(values)});
  const inference::ModelInferResponse reply = Encode();
  EXPECT_EQ(reply.outputs(0).datatype(), "BYTES");
  EXPECT_THAT(reply.outputs(0).shape(), ElementsAre(1));
  const std::string text = "2.000000:1:one";
  EXPECT_EQ(reply.raw_output_contents(0),
            std::string({static_cast<char>(text.size()), 0, 0, 0}) + text);
}

class BatchedResponses : public InferResponses {
 protected:
  BatchedResponses() : InferResponses({DataType::kFp32}, 8) {}
};

TEST_F(BatchedResponses, HaveTheClassesOfEachRow) {
  Begin();
  request_->outputs.push_back({.name = "OUT0", .tag = 1});
  const float values[] = {3.0F, 1.0F, 1.0F, 4.0F};
  AddOutput("OUT0", DataType::kFp32, {2, 2},
            {reinterpret_cast<const char*>(values), sizeof(values)});
  const inference::ModelInferResponse reply = Encode();
  EXPECT_THAT(reply.outputs(0).shape(), ElementsAre(2, 1));
  const std::string& bytes = reply.raw_output_contents(0);
  EXPECT_NE(bytes.find("3.000000:0:zero"), std::string::npos);
  EXPECT_NE(bytes.find("4.000000:1:one"), std::string::npos);
}

TEST_F(InferResponses, SayOnAStreamWhetherTheyAreTheLast) {
  for (const bool is_final : {false, true}) {
    Begin("s");
    AddOutput("OUT0", DataType::kFp32, {1}, "1234");
    const auto message = EncodeStreamResponse(response_, is_final);
    ASSERT_TRUE(message.ok());
    const auto reply = Parse<inference::ModelStreamInferResponse>(**message);
    EXPECT_EQ(reply.error_message(), "");
    EXPECT_EQ(reply.infer_response().id(), "s");
    EXPECT_EQ(reply.infer_response().parameters().at("triton_final_response").bool_param(),
              is_final);
    EXPECT_THAT(reply.infer_response().raw_output_contents(), ElementsAre("1234"));
  }
}

TEST(StreamNotices, CarryAnErrorOrAnEmptyLastResponse) {
  const auto error = Parse<inference::ModelStreamInferResponse>(*EncodeStreamNotice(
      {.error = "broken", .id = "7", .model_name = {}, .model_version = {}, .is_final = {}}));
  EXPECT_EQ(error.error_message(), "broken");
  EXPECT_EQ(error.infer_response().id(), "7");
  EXPECT_EQ(error.infer_response().parameters_size(), 0);

  const auto last = Parse<inference::ModelStreamInferResponse>(*EncodeStreamNotice(
      {.error = {}, .id = "7", .model_name = "m", .model_version = "3", .is_final = true}));
  EXPECT_EQ(last.error_message(), "");
  EXPECT_EQ(last.infer_response().model_name(), "m");
  EXPECT_EQ(last.infer_response().model_version(), "3");
  EXPECT_TRUE(last.infer_response().parameters().at("triton_final_response").bool_param());
}

}  // namespace
}  // namespace nereid::grpc
