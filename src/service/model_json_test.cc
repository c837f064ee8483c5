// SPDX-License-Identifier: Apache-2.0
#include "service/model_json.h"

#include <array>

#include <gtest/gtest.h>

namespace nereid::service {
namespace {

TEST(ServerJson, NamesTheServerAndItsExtensions) {
  EXPECT_EQ(ToJson(ServerMetadata{"a\"b", "2.73.0", {"trace", "logging"}}),
            R"({"name":"a\"b","version":"2.73.0","extensions":["trace","logging"]})");
  EXPECT_EQ(ToJson(ServerMetadata{}), R"({"name":"","version":"","extensions":[]})");
}

TEST(ModelJson, DescribesTensorsAsClientsSeeThem) {
  const ModelMetadata metadata{
      .name = "m",
      .versions = {"1", "3"},
      .platform = "onnxruntime_onnx",
      .inputs = {{"IN", tensor::DataType::kFp32, {-1, 16}}, {"S", tensor::DataType::kBytes, {}}},
      .outputs = {}};
  EXPECT_EQ(ToJson(metadata),
            R"({"name":"m","versions":["1","3"],"platform":"onnxruntime_onnx","inputs":[)"
            R"({"name":"IN","datatype":"FP32","shape":[-1,16]},)"
            R"({"name":"S","datatype":"BYTES","shape":[]}],"outputs":[]})");
}

TEST(IndexJson, LeavesOutWhatIsNotKnown) {
  const std::array<IndexEntry, 3> index = {
      {{.name = "never"},
       {.name = "m", .version = "1", .state = "READY"},
       {.name = "bad", .version = "2", .state = "UNAVAILABLE", .reason = "line\nbreak"}}};
  EXPECT_EQ(ToJson(index),
            R"([{"name":"never"},{"name":"m","version":"1","state":"READY"},)"
            R"({"name":"bad","version":"2","state":"UNAVAILABLE","reason":"line\nbreak"}])");
  EXPECT_EQ(ToJson(std::span<const IndexEntry>()), "[]");
}

TEST(StatisticsJson, HasEachDurationUnderItsName) {
  core::StatisticsSnapshot statistics;
  statistics.last_inference_ms = 5;
  statistics.inference_count = 7;
  statistics.execution_count = 6;
  statistics.success = {1, 11};
  statistics.fail = {2, 12};
  statistics.queue = {3, 13};
  statistics.compute_input = {4, 14};
  statistics.compute_infer = {5, 15};
  statistics.compute_output = {6, 16};
  statistics.cache_hit = {7, 17};
  statistics.cache_miss = {8, 18};
  const std::string json = ToJson(std::array{ModelStatistics{"m", "1", statistics}});
  EXPECT_TRUE(json.starts_with(R"({"model_stats":[{"name":"m","version":"1","last_inference":5,)"
                               R"("inference_count":7,"execution_count":6,"inference_stats":{)"
                               R"("success":{"count":1,"ns":11},"fail":{"count":2,"ns":12},)"
                               R"("queue":{"count":3,"ns":13},"compute_input":{"count":4,"ns":14},)"
                               R"("compute_infer":{"count":5,"ns":15},)"
                               R"("compute_output":{"count":6,"ns":16},)"
                               R"("cache_hit":{"count":7,"ns":17},)"
                               R"("cache_miss":{"count":8,"ns":18}},)"))
      << json;
  EXPECT_TRUE(json.ends_with(R"("response_stats":{},"batch_stats":[],"memory_usage":[]}]})"))
      << json;
}

TEST(StatisticsJson, ListsBatchesResponsesAndMemoryInOrder) {
  core::StatisticsSnapshot statistics;
  statistics.batches[4].compute_infer = {1, 40};
  statistics.batches[2].compute_input = {2, 20};
  statistics.responses[1].empty_response = {1, 9};
  statistics.responses[0].cancel = {2, 8};
  statistics.memory.push_back({.where = {memory::MemoryType::kGpu, 1}, .bytes = 64});
  const std::string json =
      ToJson(std::array{ModelStatistics{"m", "1", statistics}, ModelStatistics{"m", "2", {}}});
  EXPECT_NE(json.find(R"("batch_stats":[{"batch_size":2,"compute_input":{"count":2,"ns":20},)"),
            std::string::npos)
      << json;
  EXPECT_LT(json.find(R"("batch_size":2)"), json.find(R"("batch_size":4)"));
  EXPECT_LT(json.find(R"("0":{)"), json.find(R"("1":{)"));
  EXPECT_NE(json.find(R"("cancel":{"count":2,"ns":8})"), std::string::npos);
  EXPECT_NE(json.find(R"("empty_response":{"count":1,"ns":9})"), std::string::npos);
  EXPECT_NE(json.find(R"("memory_usage":[{"type":"GPU","id":1,"byte_size":64}])"),
            std::string::npos);
  EXPECT_NE(json.find(R"(},{"name":"m","version":"2")"), std::string::npos);
}

TEST(StatisticsJson, IsEmptyWithoutModels) {
  EXPECT_EQ(ToJson(std::span<const ModelStatistics>()), R"({"model_stats":[]})");
}

}  // namespace
}  // namespace nereid::service
