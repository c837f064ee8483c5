// SPDX-License-Identifier: Apache-2.0
#include "cli/infer_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/json.h"

namespace nereid::cli {
namespace {

using testing::HasSubstr;

ModelMetadata ModelWith(std::vector<int64_t> shape) {
  return {.name = "m",
          .platform = "",
          .versions = {},
          .inputs = {{.name = "IN", .datatype = "FP32", .shape = std::move(shape)}},
          .outputs = {{.name = "OUT", .datatype = "FP32", .shape = {-1}}}};
}

// The shape that is sent for this input; the error if there is one.
std::string ShapeSent(std::vector<int64_t> expected, std::string input,
                      std::vector<std::string> shapes = {}) {
  InferArguments arguments;
  arguments.inputs = {std::move(input)};
  arguments.shapes = std::move(shapes);
  const auto body = MakeInferBody(arguments, ModelWith(std::move(expected)));
  if (!body.ok()) return std::string(body.status().message());
  rapidjson::Document document;
  ParseJson(body->body, document);
  return WriteJson(document["inputs"][0]["shape"]);
}

TEST(InferRequest, AShapeThatFitsIsSentAsItIs) {
  EXPECT_EQ(ShapeSent({-1, 2}, "IN=[[1,2],[3,4]]"), "[2,2]");
  EXPECT_EQ(ShapeSent({2}, "IN=[1,2]"), "[2]");
  EXPECT_EQ(ShapeSent({-1, -1}, "IN=[[],[]]"), "[2,0]");
}

TEST(InferRequest, AMissingBatchDimensionIsAdded) {
  EXPECT_EQ(ShapeSent({-1, 2}, "[1,2]"), "[1,2]");
  EXPECT_EQ(ShapeSent({-1, 2, 2}, "[[1,2],[3,4]]"), "[1,2,2]");
}

TEST(InferRequest, APlainListTakesTheShapeOfTheModel) {
  EXPECT_EQ(ShapeSent({-1, 2, 2}, "[1,2,3,4]"), "[1,2,2]");
  EXPECT_EQ(ShapeSent({-1, 2}, "[1,2,3,4]"), "[2,2]");
  EXPECT_EQ(ShapeSent({-1, 3, -1}, "[1,2,3,4,5,6]"), "[1,3,2]");
  EXPECT_EQ(ShapeSent({-1, 1}, "IN=7"), "[1,1]");
  EXPECT_EQ(ShapeSent({}, "IN=7"), "[]");
}

TEST(InferRequest, AShapeThatDoesNotFitIsLeftToTheServer) {
  EXPECT_EQ(ShapeSent({-1, 3}, "[1,2,3,4]"), "[4]");
  EXPECT_EQ(ShapeSent({-1, 0}, "[1]"), "[1]");
}

TEST(InferRequest, AGivenShapeWins) {
  EXPECT_EQ(ShapeSent({-1, -1}, "[1,2,3,4]", {"IN=2,2"}), "[2,2]");
  EXPECT_EQ(ShapeSent({-1, -1}, "[1]", {"IN="}), "[]");
  EXPECT_THAT(ShapeSent({-1}, "[1]", {"IN=2,"}),
              testing::AnyOf("[2]", HasSubstr("expected sizes")));
  EXPECT_THAT(ShapeSent({-1}, "[1]", {"IN=-2"}), HasSubstr("expected sizes such as"));
}

TEST(InferRequest, ParametersHaveTheTypeOfTheirText) {
  InferArguments arguments;
  arguments.filling = Filling::kZeros;
  arguments.parameters = {"a=1", "b=true", "c=text", "d=\"1\"", "e=0.5"};
  const auto body = MakeInferBody(arguments, ModelWith({1}));
  ASSERT_TRUE(body.ok());
  EXPECT_THAT(body->body, HasSubstr(R"({"a":1,"b":true,"c":"text","d":"1","e":0.5,)"));
}

// The header of a request with this argument of --parameter.
std::string SequenceHeader(const std::string& parameter) {
  InferArguments arguments;
  arguments.filling = Filling::kZeros;
  arguments.parameters = {parameter};
  const auto body = MakeInferBody(arguments, ModelWith({1}));
  if (!body.ok()) return "failed";
  const auto header = body->headers.find("x-sequence-id");
  return header == body->headers.end() ? "absent" : header->second;
}

TEST(InferRequest, BalancersSeeTheSequence) {
  EXPECT_EQ(SequenceHeader("sequence_id=7"), "7");
  EXPECT_EQ(SequenceHeader("sequence_id=18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(SequenceHeader("sequence_id=call-7"), "call-7");
  EXPECT_EQ(SequenceHeader("sequence_id=\"7\""), "7");
  EXPECT_EQ(SequenceHeader("sequence_id=0"), "absent");
  EXPECT_EQ(SequenceHeader("sequence_id="), "absent");
  EXPECT_EQ(SequenceHeader("sequence_id=a\nb: c"), "absent");
  EXPECT_EQ(SequenceHeader("priority=7"), "absent");
}

TEST(InferRequest, GeneratedDataStandBehindTheHead) {
  InferArguments arguments;
  arguments.filling = Filling::kZeros;
  const auto body = MakeInferBody(arguments, ModelWith({-1, 3}));
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(body->body.substr(body->body.size() - 13), "}" + std::string(12, '\0'));
  EXPECT_EQ(body->headers.at("inference-header-content-length"),
            std::to_string(body->body.size() - 12));
}

TEST(InferReply, DataAreSplitAsTheHeadSays) {
  const std::string head =
      R"({"model_name":"m","model_version":"1","outputs":[)"
      R"({"name":"A","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":2}},)"
      R"({"name":"B","datatype":"INT8","shape":[1],"data":[7]}]})";
  ServerReply reply{.headers = {{"inference-header-content-length", std::to_string(head.size())}},
                    .body = head + "\1\2"};
  const auto read = ReadInferReply(reply);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->outputs.at(0).bytes, "\1\2");
  EXPECT_EQ(read->outputs.at(1).json, "[7]");
  reply.body.pop_back();
  EXPECT_FALSE(ReadInferReply(reply).ok());
}

}  // namespace
}  // namespace nereid::cli
