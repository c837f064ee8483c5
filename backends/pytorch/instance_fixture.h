// SPDX-License-Identifier: Apache-2.0
// For tests: a program that needs no PyTorch, and an instance that runs it for a fake server.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend_kit/bytes.h"
#include "backend_kit/testing/fake_host.h"
#include "pytorch_backend/instance.h"
#include "pytorch_backend/validate.h"

namespace nereid::pytorch {

inline std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Texts as requests carry them.
inline std::string Texts(const std::vector<std::string>& values) {
  std::string data;
  for (const std::string& value : values) {
    std::string element(4 + value.size(), '\0');
    backend::StoreString(element.data(), value);
    data += element;
  }
  return data;
}

// The result of a FakeProgram, which owns what it describes.
struct FakeResults : Results {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::vector<float>> numbers;

  void Add(std::vector<int64_t> shape, std::vector<float> values, std::string path = "") {
    shapes.push_back(std::move(shape));
    numbers.push_back(std::move(values));
    tensors.push_back({.datatype = TRITONSERVER_TYPE_FP32,
                       .shape = shapes.back(),
                       .data = reinterpret_cast<const char*>(numbers.back().data()),
                       .byte_size = numbers.back().size() * sizeof(float),
                       .path = std::move(path)});
  }
};

// Calls a function instead of a model.
class FakeProgram : public Program {
 public:
  using Function = std::function<std::shared_ptr<FakeResults>(std::span<const CallInput>)>;
  FakeProgram(Signature signature, Function function)
      : signature_(std::move(signature)), function_(std::move(function)) {}
  const Signature& signature() const override { return signature_; }
  std::vector<backend::MemoryUse> weights() const override { return {}; }
  backend::Result<std::shared_ptr<const Results>> Run(std::span<const ValueNode>,
                                                      std::span<const CallInput> inputs,
                                                      bool) const override {
    ++calls;
    std::shared_ptr<const Results> results = function_(inputs);
    if (results == nullptr) return backend::Error::Internal("PyTorch execute failure: no");
    return results;
  }
  mutable int calls = 0;

 private:
  const Signature signature_;
  const Function function_;
};

inline std::vector<float> Numbers(const CallInput& input) {
  int64_t count = 1;
  for (const int64_t dim : input.shape) count *= dim;
  const auto* data = reinterpret_cast<const float*>(input.data);
  return {data, data + count};
}

// The program returns its first input.
inline std::shared_ptr<FakeResults> Echo(std::span<const CallInput> inputs) {
  auto results = std::make_shared<FakeResults>();
  results->Add({inputs[0].shape.begin(), inputs[0].shape.end()}, Numbers(inputs[0]));
  return results;
}

class Execution : public ::testing::Test {
 protected:
  void Load(const char* config_json, FakeProgram::Function function, Signature signature = One()) {
    auto config = backend::ModelConfig::Parse(config_json);
    ASSERT_TRUE(config.ok());
    auto ports = backend::Ports::FromConfig(config.value());
    ASSERT_TRUE(ports.ok());
    ports_ = std::move(ports).value();
    auto program = std::make_shared<FakeProgram>(std::move(signature), std::move(function));
    program_ = program.get();
    auto bound = std::make_shared<BoundProgram>();
    bound->program = program;
    auto arguments = BindInputs(program->signature(), InputNames(ports_), "m");
    ASSERT_TRUE(arguments.ok()) << arguments.TakeError().message();
    bound->arguments = std::move(arguments).value();
    std::vector<std::string> names;
    for (const backend::OutputPort& output : ports_.outputs) names.push_back(output.name);
    auto outputs = BindOutputs(program->signature(), names);
    ASSERT_TRUE(outputs.ok()) << outputs.TakeError().message();
    bound->outputs = std::move(outputs).value();
    instance_ =
        std::make_unique<Instance>(&handle_, "m_0", ports_, config.value().max_batch_size(), bound);
  }

  static Signature One() {
    return {.arguments = {{"x", {.kind = ValueType::Kind::kTensor, .text = "Tensor"}}},
            .result = {.kind = ValueType::Kind::kTensor, .text = "Tensor"}};
  }

  void Run(std::vector<TRITONBACKEND_Request>& requests) {
    std::vector<TRITONBACKEND_Request*> pointers;
    for (TRITONBACKEND_Request& request : requests) pointers.push_back(&request);
    instance_->Execute(pointers.data(), static_cast<uint32_t>(pointers.size()));
    for (const TRITONBACKEND_Request& request : requests) {
      EXPECT_EQ(request.answer.times_sent, 1);
      EXPECT_EQ(request.answer.times_released, 1);
    }
  }

  static TRITONBACKEND_Request Request(std::vector<TRITONBACKEND_Input> inputs) {
    return {.inputs = std::move(inputs), .wanted = {"y"}, .answer = {}};
  }
  static TRITONBACKEND_Input Tensor(const std::string& name, std::vector<int64_t> shape,
                                    const std::vector<float>& values) {
    return {.name = name,
            .datatype = TRITONSERVER_TYPE_FP32,
            .shape = std::move(shape),
            .buffers = {Floats(values)}};
  }

  TRITONBACKEND_ModelInstance handle_;
  backend::Ports ports_;
  const FakeProgram* program_ = nullptr;
  std::unique_ptr<Instance> instance_;
};

}  // namespace nereid::pytorch
