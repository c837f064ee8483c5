// SPDX-License-Identifier: Apache-2.0
// Tests executions from requests to responses, with a real session of ONNX Runtime and a fake
// server.
#include "onnxruntime_backend/instance.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backend_kit/bytes.h"
#include "backend_kit/testing/fake_host.h"
#include "onnxruntime_backend/testing/messages.h"

namespace nereid::onnxruntime {
namespace {

// -1 is a variable dimension with a name of its own.
std::string Tensor(const std::string& name, int type, const std::vector<int64_t>& dims) {
  std::string shape;
  for (size_t i = 0; i < dims.size(); ++i) {
    shape += Bytes(1, dims[i] < 0 ? Bytes(2, name + static_cast<char>('a' + i))
                                  : Number(1, static_cast<uint64_t>(dims[i])));
  }
  return Bytes(1, name) +
         Bytes(2, Bytes(1, Number(1, static_cast<uint64_t>(type)) + Bytes(2, shape)));
}
std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                 const std::string& output) {
  std::string node;
  for (const std::string& input : inputs) {
    node += Bytes(1, input);
  }
  return Bytes(1, node + Bytes(2, output) + Bytes(4, op));
}
std::string Model(const std::string& nodes_and_tensors) {
  return Number(1, 8) + Bytes(7, nodes_and_tensors + Bytes(2, "g")) + Bytes(8, Number(2, 13));
}

// A constant of the graph.
std::string Int64Constant(const std::string& name, const std::vector<int64_t>& values) {
  std::string data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  return Bytes(5, Number(1, values.size()) + Number(2, 7) + Bytes(8, name) + Bytes(9, data));
}

constexpr int kOnnxFloat = 1;
constexpr int kOnnxInt32 = 6;
constexpr int kOnnxInt64 = 7;
constexpr int kOnnxString = 8;

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
std::string Int64s(const std::vector<int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
}
std::string Strings(const std::vector<std::string>& values) {
  std::string data;
  for (const std::string& value : values) {
    std::string element(4 + value.size(), '\0');
    backend::StoreString(element.data(), value);
    data += element;
  }
  return data;
}

class Execution : public testing::Test {
 protected:
  void Load(const std::string& model, const char* config_json) {
    const std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) /
        (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".onnx");
    std::ofstream(path, std::ios::binary) << model;
    auto config = backend::ModelConfig::Parse(config_json);
    ASSERT_TRUE(config.ok());
    auto environment = Environment::Create(CommandLine());
    ASSERT_TRUE(environment.ok());
    environment_ = std::move(environment).value();
    auto session = Session::Load(*environment_, path.string(), {.intra_op_threads = 1}, {}, "m");
    std::filesystem::remove(path);
    ASSERT_TRUE(session.ok()) << session.TakeError().message();
    auto instance = Instance::Create(&handle_, "m_0", config.value(), Settings(), session.value());
    ASSERT_TRUE(instance.ok());
    instance_ = std::move(instance).value();
  }

  // Loads Y = X + X over [batch, 3].
  void LoadDouble() {
    Load(Model(Node("Add", {"X", "X"}, "Y") + Bytes(11, Tensor("X", kOnnxFloat, {-1, 3})) +
               Bytes(12, Tensor("Y", kOnnxFloat, {-1, 3}))),
         R"({"max_batch_size":8,"input":[{"name":"X","dims":[3]}],
             "output":[{"name":"Y","dims":[3]}]})");
  }

  static TRITONBACKEND_Request Doubling(const std::vector<float>& x) {
    return {.inputs = {{"X",
                        TRITONSERVER_TYPE_FP32,
                        {static_cast<int64_t>(x.size() / 3), 3},
                        {Floats(x)}}},
            .wanted = {"Y"},
            .answer = {}};
  }

  void Execute(std::vector<TRITONBACKEND_Request>& requests) {
    std::vector<TRITONBACKEND_Request*> pointers;
    for (TRITONBACKEND_Request& request : requests) {
      request.answer = {};
      pointers.push_back(&request);
    }
    instance_->Execute(pointers.data(), static_cast<uint32_t>(pointers.size()));
    for (const TRITONBACKEND_Request& request : requests) {
      const Answer& answer = request.answer;
      EXPECT_EQ(answer.times_sent, 1);
      EXPECT_EQ(answer.times_released, 1);
      EXPECT_EQ(answer.successes_reported, answer.error.empty() ? 1 : 0) << answer.error;
      EXPECT_EQ(answer.failures_reported, answer.error.empty() ? 0 : 1);
    }
  }

  TRITONBACKEND_ModelInstance handle_;
  std::unique_ptr<Environment> environment_;
  std::unique_ptr<Instance> instance_;
};

TEST_F(Execution, DividesABatchAmongItsRequests) {
  LoadDouble();
  for (int again = 0; again < 3;
       ++again) {  // first with ONNX Runtime's memory, then with the plan's
    std::vector<TRITONBACKEND_Request> requests = {Doubling({1, 2, 3}),
                                                   Doubling({4, 5, 6, 7, 8, 9})};
    requests[1].inputs[0].buffers = {Floats({4, 5}), Floats({6, 7, 8, 9})};
    Execute(requests);
    EXPECT_EQ(requests[0].answer.outputs.at("Y").bytes, Floats({2, 4, 6}));
    EXPECT_EQ(requests[1].answer.outputs.at("Y").bytes, Floats({8, 10, 12, 14, 16, 18}));
    EXPECT_EQ(requests[1].answer.outputs.at("Y").shape, (std::vector<int64_t>{2, 3}));
  }
  EXPECT_EQ(handle_.executed_batches, (std::vector<uint64_t>{3, 3, 3}));
}

TEST_F(Execution, FailsOnlyTheRequestWhoseBytesAreTooFew) {
  LoadDouble();
  std::vector<TRITONBACKEND_Request> requests = {Doubling({1, 2, 3}), Doubling({4, 5, 6})};
  requests[0].inputs[0].buffers = {Floats({1, 2})};
  Execute(requests);
  EXPECT_EQ(requests[0].answer.error, "unexpected total byte size 8 for input 'X', expecting 12");
  EXPECT_EQ(requests[1].answer.outputs.at("Y").bytes, Floats({8, 10, 12}));
  EXPECT_EQ(handle_.executed_batches, std::vector<uint64_t>{1});
}

TEST_F(Execution, FailsARequestOfAnotherShapeThanTheRest) {
  LoadDouble();
  std::vector<TRITONBACKEND_Request> requests = {Doubling({1, 2, 3}), Doubling({4, 5, 6})};
  requests[1].inputs[0].shape = {3, 1};
  Execute(requests);
  EXPECT_TRUE(requests[0].answer.error.empty());
  EXPECT_FALSE(requests[1].answer.error.empty());
}

TEST_F(Execution, RespondsToEveryRequestWhenTheRunFails) {
  Load(Model(Node("Reshape", {"X", "S"}, "Y") + Bytes(11, Tensor("X", kOnnxFloat, {4})) +
             Bytes(11, Tensor("S", kOnnxInt64, {2})) + Bytes(12, Tensor("Y", kOnnxFloat, {2, 2}))),
       R"({"input":[{"name":"X","dims":[4]},{"name":"S","dims":[2]}],
           "output":[{"name":"Y","dims":[2,2]}]})");
  std::vector<TRITONBACKEND_Request> requests = {
      {.inputs = {{"X", TRITONSERVER_TYPE_FP32, {4}, {Floats({1, 2, 3, 4})}},
                  {"S", TRITONSERVER_TYPE_INT64, {2}, {Int64s({3, 3})}}},
       .wanted = {"Y"},
       .answer = {}}};
  Execute(requests);
  EXPECT_EQ(requests[0].answer.error.rfind("onnx runtime error", 0), 0u);
  EXPECT_TRUE(handle_.executed_batches.empty());
}

TEST_F(Execution, AcceptsAnOutputWhoseShapeDiffersFromItsDeclaration) {
  // Small enough for the plan's memory, and large enough for the response's.
  for (const int64_t half : {int64_t{2}, int64_t{2048}}) {
    const std::vector<int64_t> square = {2, half};
    Load(
        Model(Node("Reshape", {"X", "S"}, "Y") + Bytes(11, Tensor("X", kOnnxFloat, {2 * half})) +
              Bytes(11, Tensor("S", kOnnxInt64, {2})) + Bytes(12, Tensor("Y", kOnnxFloat, square))),
        R"({"input":[{"name":"X","dims":[-1]},{"name":"S","dims":[2]}],
             "output":[{"name":"Y","dims":[-1,-1]}]})");
    const std::string x = Floats(std::vector<float>(static_cast<size_t>(2 * half), 1.5F));
    for (const std::vector<int64_t>& shape :
         {square, square, {1, 2 * half}, square, {2 * half, 1}}) {
      std::vector<TRITONBACKEND_Request> requests = {
          {.inputs = {{"X", TRITONSERVER_TYPE_FP32, {2 * half}, {x}},
                      {"S", TRITONSERVER_TYPE_INT64, {2}, {Int64s(shape)}}},
           .wanted = {"Y"},
           .answer = {}}};
      Execute(requests);
      EXPECT_EQ(requests[0].answer.error, "");
      EXPECT_EQ(requests[0].answer.outputs.at("Y").shape, shape);
      EXPECT_EQ(requests[0].answer.outputs.at("Y").bytes, x);
    }
  }
}

TEST_F(Execution, CopiesStringsWithAnyByteAndFailsOnlyMalformedRequests) {
  Load(Model(Node("Identity", {"X"}, "Y") + Bytes(11, Tensor("X", kOnnxString, {-1, 2})) +
             Bytes(12, Tensor("Y", kOnnxString, {-1, 2}))),
       R"({"max_batch_size":4,"input":[{"name":"X","dims":[2]}],
           "output":[{"name":"Y","dims":[2]}]})");
  const std::string good = Strings({std::string("a\0b", 3), ""});
  const auto request = [](const std::string& data) {
    return TRITONBACKEND_Request{
        .inputs = {{"X", TRITONSERVER_TYPE_BYTES, {1, 2}, {data}}}, .wanted = {"Y"}, .answer = {}};
  };
  std::vector<TRITONBACKEND_Request> requests = {request(good), request(good.substr(0, 6)),
                                                 request(Strings({"x", "yz"}))};
  Execute(requests);
  EXPECT_EQ(requests[0].answer.outputs.at("Y").bytes, good);
  EXPECT_EQ(requests[1].answer.error,
            "incomplete string data for inference input 'X', expecting string of length 3 but only "
            "2 bytes available");
  EXPECT_EQ(requests[2].answer.outputs.at("Y").bytes, Strings({"x", "yz"}));
}

TEST_F(Execution, GivesAScalarTheShapeOfTheConfiguration) {
  Load(Model(Node("Add", {"X", "X"}, "Y") + Bytes(11, Tensor("X", kOnnxFloat, {})) +
             Bytes(12, Tensor("Y", kOnnxFloat, {}))),
       R"({"input":[{"name":"X","dims":[1]}],"output":[{"name":"Y","dims":[1]}]})");
  for (int again = 0; again < 2; ++again) {
    std::vector<TRITONBACKEND_Request> requests = {
        {.inputs = {{"X", TRITONSERVER_TYPE_FP32, {1}, {Floats({3})}}},
         .wanted = {"Y"},
         .answer = {}}};
    Execute(requests);
    EXPECT_EQ(requests[0].answer.outputs.at("Y").shape, std::vector<int64_t>{1});
    EXPECT_EQ(requests[0].answer.outputs.at("Y").bytes, Floats({6}));
  }
}

TEST_F(Execution, ExecutesAnEmptyBatch) {
  LoadDouble();
  std::vector<TRITONBACKEND_Request> requests = {Doubling({})};
  Execute(requests);
  EXPECT_EQ(requests[0].answer.error, "");
  EXPECT_EQ(requests[0].answer.outputs.at("Y").shape, (std::vector<int64_t>{0, 3}));
}

TEST_F(Execution, ReturnsStatesInResponsesOnlyIfRequested) {
  Load(Model(Node("Add", {"X", "SI"}, "Y") + Node("Identity", {"Y"}, "SO") +
             Bytes(11, Tensor("X", kOnnxFloat, {-1, 1})) +
             Bytes(11, Tensor("SI", kOnnxFloat, {-1, 1})) +
             Bytes(12, Tensor("Y", kOnnxFloat, {-1, 1})) +
             Bytes(12, Tensor("SO", kOnnxFloat, {-1, 1}))),
       R"({"max_batch_size":4,"input":[{"name":"X","dims":[1]}],
           "output":[{"name":"Y","dims":[1]}],
           "sequence_batching":{"state":[{"input_name":"SI","output_name":"SO","dims":[1]}]}})");
  const auto request = [](float x, float state) {
    return TRITONBACKEND_Request{
        .inputs = {{"X", TRITONSERVER_TYPE_FP32, {1, 1}, {Floats({x})}},
                   {"SI", TRITONSERVER_TYPE_FP32, {1, 1}, {Floats({state})}}},
        .wanted = {"Y"},
        .answer = {}};
  };
  for (int again = 0; again < 2; ++again) {
    std::vector<TRITONBACKEND_Request> requests = {request(1, 10), request(2, 20)};
    requests[1].wanted.clear();
    Execute(requests);
    EXPECT_EQ(requests[0].answer.outputs.size(), 1u);
    EXPECT_EQ(requests[0].answer.outputs.at("Y").bytes, Floats({11}));
    EXPECT_TRUE(requests[1].answer.outputs.empty());
    EXPECT_EQ(requests[0].answer.states.at("SO").bytes, Floats({11}));
    EXPECT_EQ(requests[1].answer.states.at("SO").bytes, Floats({22}));
    EXPECT_EQ(requests[1].answer.states.at("SO").shape, (std::vector<int64_t>{1, 1}));
    EXPECT_EQ(requests[1].answer.states.at("SO").times_updated, 1);
  }
}

TEST_F(Execution, ExecutesSequencesWithStatesOfDifferentSizesSeparately) {
  Load(Model(Node("Identity", {"X"}, "Y") + Node("Add", {"SI", "SI"}, "SO") +
             Bytes(11, Tensor("X", kOnnxFloat, {-1, 1})) +
             Bytes(11, Tensor("SI", kOnnxFloat, {-1, -1})) +
             Bytes(12, Tensor("Y", kOnnxFloat, {-1, 1})) +
             Bytes(12, Tensor("SO", kOnnxFloat, {-1, -1}))),
       R"({"max_batch_size":4,"input":[{"name":"X","dims":[1]}],
           "output":[{"name":"Y","dims":[1]},{"name":"SO","dims":[-1]}],
           "sequence_batching":{"state":[{"input_name":"SI","output_name":"SO","dims":[-1]}]}})");
  const auto request = [](const std::vector<float>& state) {
    return TRITONBACKEND_Request{.inputs = {{"X", TRITONSERVER_TYPE_FP32, {1, 1}, {Floats({1})}},
                                            {"SI",
                                             TRITONSERVER_TYPE_FP32,
                                             {1, static_cast<int64_t>(state.size())},
                                             {Floats(state)}}},
                                 .wanted = {"Y", "SO"},
                                 .answer = {}};
  };
  std::vector<TRITONBACKEND_Request> requests = {request({1}), request({2, 3}), request({4}),
                                                 request({5, 6})};
  Execute(requests);
  EXPECT_EQ(requests[0].answer.states.at("SO").bytes, Floats({2}));
  EXPECT_EQ(requests[1].answer.states.at("SO").bytes, Floats({4, 6}));
  EXPECT_EQ(requests[2].answer.outputs.at("SO").bytes, Floats({8}));
  EXPECT_EQ(requests[3].answer.outputs.at("SO").shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(handle_.executed_batches, std::vector<uint64_t>{4});
}

TEST_F(Execution, JoinsRaggedRequestsAndSplitsOutputsByTheirShapes) {
  Load(Model(Node("Add", {"X", "X"}, "Y") + Node("Identity", {"N"}, "C") +
             Bytes(11, Tensor("X", kOnnxFloat, {-1})) + Bytes(11, Tensor("N", kOnnxInt32, {-1})) +
             Bytes(12, Tensor("Y", kOnnxFloat, {-1})) + Bytes(12, Tensor("C", kOnnxInt32, {-1}))),
       R"({"max_batch_size":8,"input":[{"name":"X","dims":[-1],"allow_ragged_batch":true}],
           "output":[{"name":"Y","data_type":"TYPE_FP32","dims":[-1]},{"name":"C","dims":[]}],
           "batch_input":[{"kind":"BATCH_ELEMENT_COUNT","data_type":"TYPE_INT32",
                           "target_name":["N"],"source_input":["X"]}],
           "batch_output":[{"kind":"BATCH_SCATTER_WITH_INPUT_SHAPE",
                            "target_name":["Y"],"source_input":["X"]}]})");
  const auto request = [](const std::vector<float>& x) {
    return TRITONBACKEND_Request{
        .inputs = {{"X", TRITONSERVER_TYPE_FP32, {1, static_cast<int64_t>(x.size())}, {Floats(x)}}},
        .wanted = {"C", "Y"},
        .answer = {}};
  };
  for (int again = 0; again < 2; ++again) {
    std::vector<TRITONBACKEND_Request> requests = {request({1, 2, 3}), request({4}),
                                                   request({5, 6})};
    Execute(requests);
    EXPECT_EQ(requests[0].answer.outputs.at("Y").bytes, Floats({2, 4, 6}));
    EXPECT_EQ(requests[1].answer.outputs.at("Y").bytes, Floats({8}));
    EXPECT_EQ(requests[2].answer.outputs.at("Y").shape, (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(requests[2].answer.outputs.at("Y").bytes, Floats({10, 12}));
    EXPECT_EQ(requests[0].answer.outputs.at("C").bytes, std::string("\3\0\0\0", 4));
    EXPECT_EQ(requests[2].answer.outputs.at("C").bytes, std::string("\2\0\0\0", 4));
  }
}

// The model transposes, so that the rows of the output are the columns of the input.
TEST_F(Execution, FailsRatherThanCutsAnOutputWhoseRowsAreNotTheBatch) {
  Load(Model(Node("Transpose", {"X"}, "Y") + Bytes(11, Tensor("X", kOnnxFloat, {-1, 3})) +
             Bytes(12, Tensor("Y", kOnnxFloat, {-1, -1}))),
       R"({"max_batch_size":8,"input":[{"name":"X","dims":[3]}],
           "output":[{"name":"Y","dims":[-1]}]})");
  for (int again = 0; again < 2; ++again) {
    std::vector<TRITONBACKEND_Request> requests = {Doubling({1, 2, 3})};
    Execute(requests);
    EXPECT_EQ(requests[0].answer.error,
              "[request id: <id_unknown>] failed to split the output tensor 'Y' in responses: "
              "expected batch size of 1 in model output, got 3");
  }
  std::vector<TRITONBACKEND_Request> requests = {Doubling({1, 2, 3, 4, 5, 6}),
                                                 Doubling({1, 2, 3, 4, 5, 6})};
  Execute(requests);
  for (const TRITONBACKEND_Request& request : requests) {
    EXPECT_EQ(request.answer.error,
              "[request id: <id_unknown>] failed to split the output tensor 'Y' in responses: "
              "expected batch size of at least 4 in model output, got 3");
    EXPECT_TRUE(request.answer.outputs.empty());
  }
}

TEST_F(Execution, FailsRatherThanCutsAnOutputOfMoreThanTheShapesOfAnInput) {
  Load(Model(Node("Tile", {"X", "T"}, "Y") + Int64Constant("T", {2}) +
             Bytes(11, Tensor("X", kOnnxFloat, {-1})) + Bytes(12, Tensor("Y", kOnnxFloat, {-1}))),
       R"({"max_batch_size":8,"input":[{"name":"X","dims":[-1],"allow_ragged_batch":true}],
           "output":[{"name":"Y","data_type":"TYPE_FP32","dims":[-1]}],
           "batch_output":[{"kind":"BATCH_SCATTER_WITH_INPUT_SHAPE",
                            "target_name":["Y"],"source_input":["X"]}]})");
  const auto request = [](const std::vector<float>& x) {
    return TRITONBACKEND_Request{
        .inputs = {{"X", TRITONSERVER_TYPE_FP32, {1, static_cast<int64_t>(x.size())}, {Floats(x)}}},
        .wanted = {"Y"},
        .answer = {}};
  };
  std::vector<TRITONBACKEND_Request> requests = {request({1, 2}), request({3})};
  Execute(requests);
  EXPECT_EQ(requests[1].answer.error,
            "[request id: <id_unknown>] failed to split the output tensor 'Y' in responses: "
            "expected 3 elements by the shapes of input 'X' in model output, got 6");
  EXPECT_EQ(requests[0].answer.error, requests[1].answer.error);
}

TEST_F(Execution, FailsARequestWithMoreInputsThanTheRest) {
  LoadDouble();
  std::vector<TRITONBACKEND_Request> requests = {Doubling({1, 2, 3}), Doubling({4, 5, 6})};
  requests[1].inputs.push_back({"Z", TRITONSERVER_TYPE_FP32, {1, 1}, {Floats({1})}});
  Execute(requests);
  EXPECT_TRUE(requests[0].answer.error.empty());
  EXPECT_FALSE(requests[1].answer.error.empty());
}

}  // namespace
}  // namespace nereid::onnxruntime
