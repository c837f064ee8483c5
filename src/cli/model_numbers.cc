// SPDX-License-Identifier: Apache-2.0
#include "cli/model_numbers.h"

#include "cli/json.h"

namespace nereid::cli {
namespace {

DurationSum ReadSum(const rapidjson::Value& object, const char* name) {
  const rapidjson::Value* const value = MemberOf(object, name);
  if (value == nullptr) return {};
  return {NumberOf(*value, "count"), NumberOf(*value, "ns")};
}

ModelNumbers ReadModel(const rapidjson::Value& value) {
  ModelNumbers model{.name = std::string(TextOf(value, "name")),
                     .version = std::string(TextOf(value, "version")),
                     .last_inference_ms = NumberOf(value, "last_inference"),
                     .inference_count = NumberOf(value, "inference_count"),
                     .execution_count = NumberOf(value, "execution_count")};
  if (const rapidjson::Value* const sums = MemberOf(value, "inference_stats")) {
    model.success = ReadSum(*sums, "success");
    model.fail = ReadSum(*sums, "fail");
    model.queue = ReadSum(*sums, "queue");
    model.compute_input = ReadSum(*sums, "compute_input");
    model.compute_infer = ReadSum(*sums, "compute_infer");
    model.compute_output = ReadSum(*sums, "compute_output");
    model.cache_hit = ReadSum(*sums, "cache_hit");
  }
  for (const rapidjson::Value& batch : ListOf(value, "batch_stats")) {
    model.batches.push_back({NumberOf(batch, "batch_size"), ReadSum(batch, "compute_input"),
                             ReadSum(batch, "compute_infer"), ReadSum(batch, "compute_output")});
  }
  return model;
}

}  // namespace

DurationSum operator-(const DurationSum& a, const DurationSum& b) {
  return {a.count - b.count, a.ns - b.ns};
}

double ModelNumbers::mean_batch() const {
  return execution_count == 0
             ? 0
             : static_cast<double>(inference_count) / static_cast<double>(execution_count);
}

double ModelNumbers::mean_compute_ns() const {
  return compute_input.mean_ns() + compute_infer.mean_ns() + compute_output.mean_ns();
}

std::vector<ModelNumbers> ReadModelNumbers(const rapidjson::Value& document) {
  std::vector<ModelNumbers> models;
  for (const rapidjson::Value& value : ListOf(document, "model_stats")) {
    models.push_back(ReadModel(value));
  }
  return models;
}

ModelNumbers Since(const ModelNumbers& before, const ModelNumbers& now) {
  const bool is_new =
      now.success.count < before.success.count || now.fail.count < before.fail.count ||
      now.execution_count < before.execution_count || now.queue.count < before.queue.count;
  if (is_new) return now;
  ModelNumbers since = now;
  since.inference_count -= before.inference_count;
  since.execution_count -= before.execution_count;
  since.success = now.success - before.success;
  since.fail = now.fail - before.fail;
  since.queue = now.queue - before.queue;
  since.compute_input = now.compute_input - before.compute_input;
  since.compute_infer = now.compute_infer - before.compute_infer;
  since.compute_output = now.compute_output - before.compute_output;
  since.cache_hit = now.cache_hit - before.cache_hit;
  return since;
}

}  // namespace nereid::cli
