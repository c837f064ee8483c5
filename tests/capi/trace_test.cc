// SPDX-License-Identifier: Apache-2.0
// Tests traces that report to functions of the embedder.
#include <algorithm>

#include "embedding.h"

namespace embedding {
namespace {

// The reports, with the ids of the traces.
class Reports {
 public:
  static void OnActivity(TRITONSERVER_InferenceTrace* trace,
                         TRITONSERVER_InferenceTraceActivity activity, uint64_t, void* self) {
    static_cast<Reports*>(self)->Add(trace, TRITONSERVER_InferenceTraceActivityString(activity));
  }
  static void OnTensor(TRITONSERVER_InferenceTrace* trace,
                       TRITONSERVER_InferenceTraceActivity activity, const char* name,
                       TRITONSERVER_DataType type, const void*, size_t size, const int64_t* shape,
                       uint64_t rank, TRITONSERVER_MemoryType, int64_t, void* self) {
    std::string line = std::string(TRITONSERVER_InferenceTraceActivityString(activity)) + " " +
                       name + " " + TRITONSERVER_DataTypeString(type) + " " + std::to_string(size);
    for (uint64_t i = 0; i < rank; ++i) line += " " + std::to_string(shape[i]);
    static_cast<Reports*>(self)->Add(trace, line);
  }
  static void OnRelease(TRITONSERVER_InferenceTrace* trace, void* self) {
    static_cast<Reports*>(self)->Add(trace, "released");
    EXPECT_OK(TRITONSERVER_InferenceTraceDelete(trace));
  }

  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  void WaitForRelease(int count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [&] {
      return std::count_if(lines_.begin(), lines_.end(), [](const std::string& line) {
               return line.ends_with("released");
             }) == count;
    }));
  }
  bool Has(const std::string& line) const {
    const std::vector<std::string> all = lines();
    return std::find(all.begin(), all.end(), line) != all.end();
  }

 private:
  void Add(TRITONSERVER_InferenceTrace* trace, const std::string& what) {
    uint64_t parent = 0;
    const char* model = nullptr;
    EXPECT_OK(TRITONSERVER_InferenceTraceParentId(trace, &parent));
    EXPECT_OK(TRITONSERVER_InferenceTraceModelName(trace, &model));
    const std::lock_guard lock(mutex_);
    lines_.push_back((parent == 0 ? "" : "child ") + std::string(model) + " " + what);
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

TRITONSERVER_InferenceTrace* NewTrace(Reports& reports, int levels) {
  TRITONSERVER_InferenceTrace* trace = nullptr;
  EXPECT_OK(TRITONSERVER_InferenceTraceTensorNew(
      &trace, static_cast<TRITONSERVER_InferenceTraceLevel>(levels), 0, Reports::OnActivity,
      Reports::OnTensor, Reports::OnRelease, &reports));
  return trace;
}

const std::vector<float> kValues = {1, 2};

TEST(Trace, TellsWhatHappensToARequestAndIsReleasedOnce) {
  Repository repository;
  Server server(repository.AddIdentity("model").path());
  Allocator allocator;
  Reports reports;
  Outcome outcome;
  Request request(server, "model");
  request.SendResponsesTo(outcome, allocator)
      .Input("INPUT0", TRITONSERVER_TYPE_FP32, {1, 2}, kValues);
  OK(TRITONSERVER_ServerInferAsync(
      server.get(), request.get(),
      NewTrace(reports, TRITONSERVER_TRACE_LEVEL_MAX | TRITONSERVER_TRACE_LEVEL_TENSORS)));
  outcome.Wait();
  reports.WaitForRelease(1);
  for (const char* name : {"REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END",
                           "COMPUTE_OUTPUT_START", "COMPUTE_END", "REQUEST_END"}) {
    EXPECT_TRUE(reports.Has(std::string("model ") + name)) << name;
  }
  EXPECT_TRUE(reports.Has("model TENSOR_QUEUE_INPUT INPUT0 FP32 8 1 2"));
  EXPECT_TRUE(reports.Has("model TENSOR_BACKEND_OUTPUT OUTPUT0 FP32 8 1 2"));
  EXPECT_EQ(reports.lines().back(), "model released");
}

TEST(Trace, StepsOfAnEnsembleAreChildren) {
  Repository repository;
  repository.AddIdentity("step").Add("whole", R"(
    platform: "ensemble" max_batch_size: 8
    input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]
    output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
    ensemble_scheduling { step [ { model_name: "step" model_version: -1
      input_map { key: "INPUT0" value: "IN" } output_map { key: "OUTPUT0" value: "OUT" } } ] })");
  Server server(repository.path());
  Allocator allocator;
  Reports reports;
  Outcome outcome;
  Request request(server, "whole");
  request.SendResponsesTo(outcome, allocator).Input("IN", TRITONSERVER_TYPE_FP32, {1, 2}, kValues);
  OK(TRITONSERVER_ServerInferAsync(server.get(), request.get(),
                                   NewTrace(reports, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS)));
  EXPECT_EQ(outcome.Wait()[0].outputs.at(0).As<float>(), kValues);
  reports.WaitForRelease(2);
  EXPECT_TRUE(reports.Has("whole REQUEST_START"));
  EXPECT_TRUE(reports.Has("child step COMPUTE_START"));
}

TEST(Trace, IsReleasedWhenTheRequestIsRefused) {
  Repository repository;
  Server server(repository.AddIdentity("model").path());
  Allocator allocator;
  Reports reports;
  Outcome outcome;
  Request request(server, "model");
  request.SendResponsesTo(outcome, allocator);
  EXPECT_NE(
      Take(TRITONSERVER_ServerInferAsync(server.get(), request.get(),
                                         NewTrace(reports, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS))),
      "");
  EXPECT_EQ(reports.lines(), std::vector<std::string>{"model released"});
}

TEST(Trace, KeepsTheNamesOfABackendsOwnActivitiesInItsContext) {
  Reports reports;
  TRITONSERVER_InferenceTrace* const trace = NewTrace(reports, TRITONSERVER_TRACE_LEVEL_TIMESTAMPS);
  OK(TRITONSERVER_InferenceTraceReportActivity(trace, 5, "MINE"));
  OK(TRITONSERVER_InferenceTraceReportActivity(trace, 6, "OTHER"));
  const char* context = nullptr;
  OK(TRITONSERVER_InferenceTraceContext(trace, &context));
  EXPECT_STREQ(context, R"({"5":"MINE","6":"OTHER"})");
  TRITONSERVER_InferenceTrace* child = nullptr;
  OK(TRITONSERVER_InferenceTraceSpawnChildTrace(trace, &child));
  uint64_t id = 0, parent = 0;
  OK(TRITONSERVER_InferenceTraceId(trace, &id));
  OK(TRITONSERVER_InferenceTraceParentId(child, &parent));
  EXPECT_EQ(id, parent);
  OK(TRITONSERVER_InferenceTraceDelete(child));
  OK(TRITONSERVER_InferenceTraceDelete(trace));
}

}  // namespace
}  // namespace embedding
