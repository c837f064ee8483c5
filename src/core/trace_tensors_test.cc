// SPDX-License-Identifier: Apache-2.0
#include "core/trace_tensors.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "core/model.h"
#include "core/testing/fakes.h"

namespace nereid::core {
namespace {

// Records the tensors that are reported to it.
class TensorRecorder final : public observe::TraceRecorder {
 public:
  uint32_t levels() const override { return observe::kTraceTensors; }
  uint64_t NextId() override { return 1; }
  void Report(observe::Trace&, observe::TraceActivity, std::string_view, uint64_t) override {}
  void ReportTensor(const observe::Trace&, observe::TraceActivity activity,
                    const observe::TensorView& tensor) override {
    shown.push_back(std::string(observe::TraceActivityName(activity)) + " " +
                    std::string(tensor.name) + " " + std::string(tensor.bytes) + " in " +
                    std::to_string(tensor.memory_type));
  }

  std::vector<std::string> shown;
};

class TraceTensorsTest : public testing::Test {
 protected:
  TraceTensorsTest() { request_->trace = trace_; }
  static DataChunk Chunk(std::string_view bytes, memory::MemoryType type = {}) {
    return {.data = reinterpret_cast<const std::byte*>(bytes.data()),
            .size = bytes.size(),
            .where = {type, 0}};
  }

  const std::shared_ptr<TensorRecorder> recorder_ = std::make_shared<TensorRecorder>();
  const std::shared_ptr<observe::Trace> trace_ = std::make_shared<observe::Trace>(recorder_, 1, 0);
  FakeSink sink_;
  RequestPtr request_ = Request::Create(sink_);
};

TEST_F(TraceTensorsTest, ShowsTheInputsOfTheClientWhole) {
  RequestInput& whole = request_->AddInput("A", tensor::DataType::kInt8);
  whole.Append(Chunk("one"));
  RequestInput& parts = request_->AddInput("B", tensor::DataType::kInt8);
  for (const char* part : {"t", "w", "o"}) parts.Append(Chunk(part));
  request_->AddServerInput("START", tensor::DataType::kInt8, {}, Chunk("1"));
  request_->MarkQueued(1);
  EXPECT_EQ(recorder_->shown, (std::vector<std::string>{"TENSOR_QUEUE_INPUT A one in 0",
                                                        "TENSOR_QUEUE_INPUT B two in 0"}));
}

TEST_F(TraceTensorsTest, ReadsNoMemoryOfAGpu) {
  RequestInput& input = request_->AddInput("A", tensor::DataType::kInt8);
  input.Append(Chunk("here"));
  input.Append({.data = nullptr, .size = 4, .where = {memory::MemoryType::kGpu, 0}});
  TraceInputs(*request_);
  EXPECT_TRUE(recorder_->shown.empty());
}

TEST_F(TraceTensorsTest, ShowsOutputsThatHaveData) {
  const ResponsePtr response = Response::Create(*request_);
  ResponseOutput& output =
      *response->AddOutput("OUT", tensor::DataType::kInt8, std::array<int64_t, 1>{4});
  ASSERT_TRUE(response->AllocateBuffer(output, 4, {}, false).ok());
  std::memcpy(output.data, "data", 4);
  response->AddOutput("NONE", tensor::DataType::kInt8, {});
  request_->NoteResponse(*response);
  EXPECT_EQ(recorder_->shown, (std::vector<std::string>{"TENSOR_BACKEND_OUTPUT OUT data in 0"}));
}

}  // namespace
}  // namespace nereid::core
