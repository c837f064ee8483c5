// SPDX-License-Identifier: Apache-2.0
#include "cli/model_numbers.h"

#include <gtest/gtest.h>

namespace nereid::cli {
namespace {

constexpr const char* kReply = R"({"model_stats":[{"name":"m","version":"1","last_inference":5,
    "inference_count":40,"execution_count":10,"inference_stats":{
    "success":{"count":20,"ns":2000},"fail":{"count":1,"ns":5},"queue":{"count":20,"ns":100},
    "compute_input":{"count":20,"ns":20},"compute_infer":{"count":20,"ns":400},
    "compute_output":{"count":20,"ns":40}},
    "batch_stats":[{"batch_size":4,"compute_infer":{"count":10,"ns":300}}]}]})";

ModelNumbers Read() {
  rapidjson::Document document;
  document.Parse(kReply);
  return ReadModelNumbers(document).at(0);
}

TEST(ModelNumbers, AreReadFromTheReplyOfAServer) {
  const ModelNumbers model = Read();
  EXPECT_EQ(model.requests(), 21);
  EXPECT_EQ(model.mean_batch(), 4);
  EXPECT_EQ(model.success.mean_ns(), 100);
  EXPECT_EQ(model.mean_compute_ns(), 1 + 20 + 2);
  EXPECT_EQ(model.batches.at(0).compute_infer.mean_ns(), 30);
}

TEST(ModelNumbers, TheDifferenceOfTwoReadingsIsWhatHappenedInBetween) {
  const ModelNumbers before = Read();
  ModelNumbers now = before;
  now.success = {.count = 25, .ns = 4000};
  now.inference_count += 5;
  const ModelNumbers since = Since(before, now);
  EXPECT_EQ(since.requests(), 5);
  EXPECT_EQ(since.success.mean_ns(), 400);
  EXPECT_EQ(since.inference_count, 5);
}

TEST(ModelNumbers, AModelThatWasLoadedAgainBeginsAnew) {
  const ModelNumbers before = Read();
  ModelNumbers now = before;
  now.success = {.count = 2, .ns = 10};
  EXPECT_EQ(Since(before, now).success.count, 2);
}

TEST(ModelNumbers, RepliesOfAnotherFormGiveNothing) {
  for (const char* text : {"[]", "{}", "3", R"({"model_stats":3})"}) {
    rapidjson::Document document;
    document.Parse(text);
    EXPECT_TRUE(ReadModelNumbers(document).empty()) << text;
  }
}

}  // namespace
}  // namespace nereid::cli
