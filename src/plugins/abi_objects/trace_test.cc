// SPDX-License-Identifier: Apache-2.0
// What a backend is told of a request's trace, and what it adds.
#include "abi_objects/trace.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace nereid::abi_objects {
namespace {

class NotingRecorder final : public observe::TraceRecorder {
 public:
  uint32_t levels() const override { return observe::kTraceTimestamps; }
  uint64_t NextId() override { return 9; }
  void Report(observe::Trace&, observe::TraceActivity, std::string_view name,
              uint64_t ns) override {
    reported.push_back(std::string(name) + " at " + std::to_string(ns));
  }
  void ReportTensor(const observe::Trace&, observe::TraceActivity,
                    const observe::TensorView&) override {}

  std::vector<std::string> reported;
};

class TraceOfABackend : public testing::Test {
 protected:
  const std::shared_ptr<NotingRecorder> recorder_ = std::make_shared<NotingRecorder>();
  observe::Trace trace_{recorder_, 7, 3};
  TRITONSERVER_InferenceTrace* const handle_ = ToHandle(&trace_);
};

TEST_F(TraceOfABackend, SaysWhoseItIs) {
  trace_.Describe("model", 4, "request");
  uint64_t id = 0, parent = 0;
  int64_t version = 0;
  const char *model = nullptr, *request = nullptr;
  EXPECT_EQ(TRITONSERVER_InferenceTraceId(handle_, &id), nullptr);
  EXPECT_EQ(TRITONSERVER_InferenceTraceParentId(handle_, &parent), nullptr);
  EXPECT_EQ(TRITONSERVER_InferenceTraceModelName(handle_, &model), nullptr);
  EXPECT_EQ(TRITONSERVER_InferenceTraceModelVersion(handle_, &version), nullptr);
  EXPECT_EQ(TRITONSERVER_InferenceTraceRequestId(handle_, &request), nullptr);
  EXPECT_EQ(id, 7u);
  EXPECT_EQ(parent, 3u);
  EXPECT_STREQ(model, "model");
  EXPECT_EQ(version, 4);
  EXPECT_STREQ(request, "request");
}

TEST_F(TraceOfABackend, TakesActivitiesOfItsOwn) {
  EXPECT_EQ(TRITONSERVER_InferenceTraceReportActivity(handle_, 12, "TOKENIZE"), nullptr);
  // A request that is not traced has none.
  EXPECT_EQ(TRITONSERVER_InferenceTraceReportActivity(nullptr, 13, "TOKENIZE"), nullptr);
  EXPECT_EQ(recorder_->reported, (std::vector<std::string>{"TOKENIZE at 12"}));
}

TEST_F(TraceOfABackend, KeepsContextsThatWereHandedOut) {
  const char *none = nullptr, *first = nullptr, *second = nullptr;
  EXPECT_EQ(TRITONSERVER_InferenceTraceContext(handle_, &none), nullptr);
  EXPECT_STREQ(none, "");
  EXPECT_EQ(TRITONSERVER_InferenceTraceSetContext(handle_, "first"), nullptr);
  EXPECT_EQ(TRITONSERVER_InferenceTraceContext(handle_, &first), nullptr);
  EXPECT_EQ(TRITONSERVER_InferenceTraceSetContext(handle_, "second"), nullptr);
  EXPECT_EQ(TRITONSERVER_InferenceTraceContext(handle_, &second), nullptr);
  EXPECT_STREQ(first, "first");
  EXPECT_STREQ(second, "second");
}

TEST(TraceNames, AreTritons) {
  EXPECT_STREQ(TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_TRACE_LEVEL_TIMESTAMPS),
               "TIMESTAMPS");
  EXPECT_STREQ(TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_TRACE_LEVEL_DISABLED),
               "DISABLED");
  EXPECT_STREQ(
      TRITONSERVER_InferenceTraceLevelString(static_cast<TRITONSERVER_InferenceTraceLevel>(99)),
      "<unknown>");
  const std::pair<TRITONSERVER_InferenceTraceActivity, const char*> activities[] = {
      {TRITONSERVER_TRACE_REQUEST_START, "REQUEST_START"},
      {TRITONSERVER_TRACE_QUEUE_START, "QUEUE_START"},
      {TRITONSERVER_TRACE_COMPUTE_START, "COMPUTE_START"},
      {TRITONSERVER_TRACE_COMPUTE_INPUT_END, "COMPUTE_INPUT_END"},
      {TRITONSERVER_TRACE_COMPUTE_OUTPUT_START, "COMPUTE_OUTPUT_START"},
      {TRITONSERVER_TRACE_COMPUTE_END, "COMPUTE_END"},
      {TRITONSERVER_TRACE_REQUEST_END, "REQUEST_END"},
      {TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT, "TENSOR_QUEUE_INPUT"},
      {TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT, "TENSOR_BACKEND_INPUT"},
      {TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT, "TENSOR_BACKEND_OUTPUT"},
      {TRITONSERVER_TRACE_CUSTOM_ACTIVITY, "CUSTOM_ACTIVITY"},
  };
  for (const auto& [activity, name] : activities) {
    EXPECT_STREQ(TRITONSERVER_InferenceTraceActivityString(activity), name);
  }
  EXPECT_STREQ(TRITONSERVER_InferenceTraceActivityString(
                   static_cast<TRITONSERVER_InferenceTraceActivity>(99)),
               "<unknown>");
}

}  // namespace
}  // namespace nereid::abi_objects
