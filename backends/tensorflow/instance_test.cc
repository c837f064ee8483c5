// SPDX-License-Identifier: Apache-2.0
// Tests executions from requests to responses, with a fake server and a request that needs no
// TensorFlow.
#include "tensorflow_backend/instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "backend_kit/testing/fake_host.h"

// The functions of the server that these tests need besides the kit's fakes.
extern "C" TRITONSERVER_DataType TRITONSERVER_StringToDataType(const char* name) {
  return std::string_view(name) == "FP32"    ? TRITONSERVER_TYPE_FP32
         : std::string_view(name) == "INT32" ? TRITONSERVER_TYPE_INT32
                                             : TRITONSERVER_TYPE_INVALID;
}
extern "C" const char* TRITONSERVER_DataTypeString(TRITONSERVER_DataType type) {
  return type == TRITONSERVER_TYPE_FP32    ? "FP32"
         : type == TRITONSERVER_TYPE_INT32 ? "INT32"
                                           : "<invalid>";
}

namespace nereid::tensorflow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Returns its input, once for each output.
class EchoRequest : public Request {
 public:
  backend::Error Run(std::span<const CallInput> inputs, std::span<const char> wanted) override {
    ++runs;
    last_wanted.assign(wanted.begin(), wanted.end());
    shape_.assign(inputs[0].shape.begin(), inputs[0].shape.end());
    data_.assign(inputs[0].data.begin(), inputs[0].data.end());
    return failure.empty() ? backend::Error() : backend::Error::Internal(failure);
  }
  CallOutput Output(size_t) override { return {.shape = shape_, .data = data_.data()}; }
  void Clear() override { ++clears; }

  int runs = 0;
  int clears = 0;
  std::vector<char> last_wanted;
  std::string failure;

 private:
  std::vector<int64_t> shape_;
  std::vector<char> data_;
};

class TensorFlowExecution : public testing::Test {
 protected:
  TensorFlowExecution() {
    auto config = backend::ModelConfig::Parse(
        R"({"max_batch_size":8,"input":[{"name":"x","data_type":"TYPE_FP32","dims":[2]}],
            "output":[{"name":"y","data_type":"TYPE_FP32","dims":[2]},
                      {"name":"z","data_type":"TYPE_FP32","dims":[2]}]})");
    auto ports = backend::Ports::FromConfig(config.value());
    ports_ = std::move(ports).value();
    auto request = std::make_unique<EchoRequest>();
    request_ = request.get();
    instance_ = std::make_unique<Instance>(&handle_, "m_0", ports_, 8, nullptr, std::move(request));
  }

  void Run(std::vector<TRITONBACKEND_Request>& requests) {
    std::vector<TRITONBACKEND_Request*> pointers;
    for (TRITONBACKEND_Request& request : requests) pointers.push_back(&request);
    instance_->Execute(pointers.data(), static_cast<uint32_t>(pointers.size()));
    for (const TRITONBACKEND_Request& request : requests) {
      EXPECT_EQ(request.answer.times_sent, 1);
      EXPECT_EQ(request.answer.times_released, 1);
    }
    EXPECT_GE(request_->clears, request_->runs);
  }

  static TRITONBACKEND_Request MakeRequest(std::vector<int64_t> shape,
                                           const std::vector<float>& values,
                                           std::vector<std::string> wanted = {"y"}) {
    return {.inputs = {{.name = "x",
                        .datatype = TRITONSERVER_TYPE_FP32,
                        .shape = std::move(shape),
                        .buffers = {Floats(values)}}},
            .wanted = std::move(wanted),
            .answer = {}};
  }

  TRITONBACKEND_ModelInstance handle_;
  backend::Ports ports_;
  EchoRequest* request_ = nullptr;
  std::unique_ptr<Instance> instance_;
};

TEST_F(TensorFlowExecution, RunsABatchTogetherAndGivesEachRequestItsRows) {
  std::vector<TRITONBACKEND_Request> requests = {MakeRequest({1, 2}, {1, 2}),
                                                 MakeRequest({2, 2}, {3, 4, 5, 6}, {"z"})};
  Run(requests);
  EXPECT_EQ(request_->runs, 1);
  EXPECT_THAT(request_->last_wanted, ElementsAre(1, 1));
  EXPECT_EQ(requests[0].answer.outputs["y"].bytes, Floats({1, 2}));
  EXPECT_FALSE(requests[0].answer.outputs.contains("z"));
  EXPECT_EQ(requests[1].answer.outputs["z"].bytes, Floats({3, 4, 5, 6}));
  EXPECT_EQ(handle_.executed_batches, std::vector<uint64_t>{3});
}

TEST_F(TensorFlowExecution, AsksOnlyForOutputsThatSomebodyWants) {
  std::vector<TRITONBACKEND_Request> requests = {MakeRequest({1, 2}, {1, 2}, {"z"})};
  Run(requests);
  EXPECT_THAT(request_->last_wanted, ElementsAre(0, 1));
}

TEST_F(TensorFlowExecution, FailsOnlyTheRequestWhoseDataIsTooShort) {
  std::vector<TRITONBACKEND_Request> requests = {MakeRequest({1, 2}, {1}),
                                                 MakeRequest({1, 2}, {3, 4})};
  Run(requests);
  EXPECT_THAT(requests[0].answer.error, HasSubstr("total byte size"));
  EXPECT_EQ(requests[1].answer.error, "");
  EXPECT_EQ(requests[1].answer.outputs["y"].bytes, Floats({3, 4}));
}

TEST_F(TensorFlowExecution, ReportsTheFailureOfAModelToEveryRequestOfTheBatch) {
  request_->failure = "INVALID_ARGUMENT: no";
  std::vector<TRITONBACKEND_Request> requests = {MakeRequest({1, 2}, {1, 2}),
                                                 MakeRequest({1, 2}, {3, 4})};
  Run(requests);
  for (const TRITONBACKEND_Request& request : requests) {
    EXPECT_EQ(request.answer.error, "INVALID_ARGUMENT: no");
  }
}

}  // namespace
}  // namespace nereid::tensorflow
