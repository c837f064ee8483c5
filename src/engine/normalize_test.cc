// SPDX-License-Identifier: Apache-2.0
#include "engine/normalize.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "core/testing/fakes.h"

namespace nereid::engine {
namespace {

using tensor::DataType;

core::ModelTensor Tensor(std::string name, DataType type, std::initializer_list<int64_t> dims) {
  core::ModelTensor tensor;
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.dims = dims;
  tensor.model_dims = dims;
  return tensor;
}

class NormalizeTest : public testing::Test {
 protected:
  void Make(int64_t max_batch_size, std::vector<core::ModelTensor> inputs) {
    core::ModelOptions options;
    options.name = "m";
    options.version = 1;
    options.config = std::make_shared<config::ModelConfig>();
    options.max_batch_size = max_batch_size;
    options.inputs = std::move(inputs);
    options.outputs = {Tensor("OUT", DataType::kFp32, {4})};
    model_ = std::make_unique<core::Model>(std::move(options));
    request_ = core::Request::Create(sink_);
    ASSERT_TRUE(model_->TryPin());
    request_->model = core::ModelHandle(*model_);
  }
  core::RequestInput& Add(std::string_view name, DataType type,
                          std::initializer_list<int64_t> shape, size_t bytes) {
    core::RequestInput& input = request_->AddInput(name, type);
    input.shape = shape;
    if (bytes > 0) input.Append({data_.data(), bytes, {}});
    return input;
  }
  // Returns the error without the request's prefix, which all errors except those about unknown
  // names must have.
  std::string Error() {
    std::string error(NormalizeRequest(*request_).message());
    const std::string prefix = "[request id: <id_unknown>] ";
    if (error.starts_with("unexpected inference ")) return error;
    EXPECT_TRUE(error.empty() || error.starts_with(prefix)) << error;
    return error.substr(error.empty() ? 0 : prefix.size());
  }
  void TearDown() override { request_.reset(); }

  core::FakeSink sink_;
  std::unique_ptr<core::Model> model_;
  core::RequestPtr request_;
  std::array<std::byte, 4096> data_{};
};

TEST_F(NormalizeTest, AcceptsAGoodRequestAndFindsItsBatchSize) {
  Make(8, {Tensor("A", DataType::kFp32, {4}), Tensor("B", DataType::kInt8, {-1})});
  Add("B", DataType::kInt8, {3, 7}, 21);
  Add("A", DataType::kFp32, {3, 4}, 48);
  request_->outputs.push_back({.name = "OUT"});
  EXPECT_EQ(Error(), "");
  EXPECT_EQ(request_->batch_size, 3u);
  EXPECT_EQ(request_->inputs[0].name, "A");  // in the model's order
  EXPECT_EQ(request_->inputs[1].model_index, 1u);
}

TEST_F(NormalizeTest, NamesMissingAndSurplusInputs) {
  Make(0, {Tensor("A", DataType::kFp32, {4}), Tensor("B", DataType::kFp32, {4})});
  Add("A", DataType::kFp32, {4}, 16);
  EXPECT_EQ(Error(),
            "expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['A'], but missing "
            "required input(s) ['B']. Please provide all required input(s).");
  Add("X", DataType::kFp32, {4}, 16);
  EXPECT_EQ(Error(), "unexpected inference input 'X' for model 'm'");
}

TEST_F(NormalizeTest, AnOptionalInputDoesNotStandInForARequiredOne) {
  auto optional = Tensor("B", DataType::kFp32, {4});
  optional.is_optional = true;
  Make(0, {Tensor("A", DataType::kFp32, {4}), optional});
  Add("B", DataType::kFp32, {4}, 16);
  EXPECT_EQ(
      Error(),
      "expected number of inputs between 1 and 2 but got 1 inputs for model 'm'. Got input(s) "
      "['B'], but missing required input(s) ['A']. Please provide all required input(s).");
}

TEST_F(NormalizeTest, CountsOptionalInputs) {
  auto optional = Tensor("B", DataType::kFp32, {4});
  optional.is_optional = true;
  Make(0, {Tensor("A", DataType::kFp32, {4}), optional});
  EXPECT_EQ(
      Error(),
      "expected number of inputs between 1 and 2 but got 0 inputs for model 'm'. Got input(s) "
      "[], but missing required input(s) ['A']. Please provide all required input(s).");
  Add("A", DataType::kFp32, {4}, 16);
  EXPECT_EQ(Error(), "");
}

TEST_F(NormalizeTest, RefusesAnInputGivenTwice) {
  Make(0, {Tensor("A", DataType::kFp32, {4}), Tensor("B", DataType::kFp32, {4})});
  Add("B", DataType::kFp32, {4}, 16);
  Add("B", DataType::kFp32, {4}, 16);
  EXPECT_EQ(Error(), "input 'B' already exists in request");
  Add("A", DataType::kFp32, {4}, 16);
  EXPECT_EQ(Error(), "input 'B' already exists in request");
}

TEST_F(NormalizeTest, RefusesAnOutputGivenTwice) {
  Make(0, {Tensor("A", DataType::kFp32, {4})});
  Add("A", DataType::kFp32, {4}, 16);
  request_->outputs.push_back({.name = "OUT"});
  EXPECT_EQ(Error(), "");
  request_->outputs.push_back({.name = "OUT"});
  EXPECT_EQ(Error(), "output 'OUT' already exists in request");
}

TEST_F(NormalizeTest, RefusesUnknownOutputsAndWrongTypes) {
  Make(0, {Tensor("A", DataType::kFp32, {4})});
  Add("A", DataType::kInt32, {4}, 16);
  EXPECT_EQ(Error(), "inference input 'A' data-type is 'INT32', but model 'm' expects 'FP32'");
  request_->outputs.push_back({.name = "NONE"});
  EXPECT_EQ(Error(), "unexpected inference output 'NONE' for model 'm'");
}

TEST_F(NormalizeTest, ExplainsShapes) {
  Make(8, {Tensor("A", DataType::kFp32, {4})});
  core::RequestInput& input = Add("A", DataType::kFp32, {4}, 16);
  EXPECT_EQ(
      Error(),
      "unexpected shape for input 'A' for model 'm'. Expected [-1,4], got [4]. NOTE: Setting a "
      "non-zero max_batch_size in the model config requires a batch dimension to be prepended "
      "to each input shape. If you want to specify the full shape including the batch dim in "
      "your input dims config, try setting max_batch_size to zero. See the model "
      "configuration docs for more info on max_batch_size.");
  input.shape = {1, -1};
  EXPECT_EQ(Error(),
            "All input dimensions should be specified for input 'A' for model 'm', got [1,-1]");
  input.shape = {9, 4};
  EXPECT_EQ(Error(),
            "inference request batch-size must be <= 8 for 'm', got 9; the limit is max_batch_size "
            "in the model's configuration");
  input.shape = {int64_t{1} << 40, 4};
  EXPECT_EQ(Error(),
            "inference request batch-size must be <= 8 for 'm', got 1099511627776; the limit is "
            "max_batch_size "
            "in the model's configuration");
  input.shape = {-5, 4};
  EXPECT_EQ(
      Error(),
      "inference request batch-size must be <= 8 for 'm', got -5; the limit is max_batch_size "
      "in the model's configuration");
  input.shape.Clear();
  EXPECT_EQ(Error(), "input 'A' has no shape but model requires batch dimension for 'm'");
}

TEST_F(NormalizeTest, RefusesBatchesThatDiffer) {
  Make(8, {Tensor("A", DataType::kFp32, {4}), Tensor("B", DataType::kFp32, {4})});
  Add("A", DataType::kFp32, {2, 4}, 32);
  Add("B", DataType::kFp32, {3, 4}, 48);
  EXPECT_EQ(Error(), "input 'B' batch size does not match other inputs for 'm'");
}

TEST_F(NormalizeTest, ComparesBytesWithTheShapeWithoutOverflowing) {
  Make(0, {Tensor("A", DataType::kFp32, {-1, -1})});
  core::RequestInput& input = Add("A", DataType::kFp32, {2, 2}, 12);
  EXPECT_EQ(Error(), "input byte size mismatch for input 'A' for model 'm'. Expected 16, got 12");
  input.shape = {int64_t{1} << 62, 16};
  EXPECT_NE(Error().find("exceed maximum size of"), std::string::npos);
}

TEST_F(NormalizeTest, AppliesReshapeWithWildcardsInOrder) {
  auto reshaped = Tensor("A", DataType::kInt8, {-1, 1, -1});
  reshaped.has_reshape = true;
  reshaped.model_dims = {-1, -1};
  Make(4, {reshaped});
  core::RequestInput& input = Add("A", DataType::kInt8, {2, 3, 1, 5}, 30);
  EXPECT_EQ(Error(), "");
  EXPECT_EQ(input.shape, (tensor::Shape{2, 3, 5}));
}

TEST_F(NormalizeTest, ReshapesToAScalarPerBatchItem) {
  auto reshaped = Tensor("A", DataType::kInt8, {1});
  reshaped.has_reshape = true;
  reshaped.model_dims.Clear();
  Make(4, {reshaped});
  core::RequestInput& input = Add("A", DataType::kInt8, {4, 1}, 4);
  EXPECT_EQ(Error(), "");
  EXPECT_EQ(input.shape, (tensor::Shape{4}));
}

class BytesTest : public NormalizeTest {
 protected:
  void Put(std::initializer_list<std::string> elements) {
    bytes_.clear();
    for (const std::string& element : elements) {
      const auto size = static_cast<uint32_t>(element.size());
      bytes_.append(reinterpret_cast<const char*>(&size), 4);
      bytes_ += element;
    }
  }
  std::string ErrorFor(size_t bytes, int64_t count) {
    core::RequestInput& input = Add("A", DataType::kBytes, {count}, 0);
    input.Append({reinterpret_cast<const std::byte*>(bytes_.data()), bytes, {}});
    std::string error = Error();
    request_->inputs.clear();
    return error;
  }
  std::string bytes_;
};

TEST_F(BytesTest, WalksEveryElement) {
  Make(0, {Tensor("A", DataType::kBytes, {-1})});
  Put({"hello", "", "x"});
  EXPECT_EQ(ErrorFor(bytes_.size(), 3), "");
  EXPECT_EQ(ErrorFor(bytes_.size(), 2),
            "unexpected number of string elements 3 for inference input 'A' for model 'm', "
            "expecting 2");
  EXPECT_EQ(ErrorFor(bytes_.size(), 4),
            "expected 4 string elements for inference input 'A' for model 'm', got 3");
  EXPECT_EQ(ErrorFor(7, 3),
            "incomplete string data for inference input 'A', expecting string of length 5 but only "
            "3 bytes available");
  EXPECT_EQ(ErrorFor(11, 3),
            "incomplete string length indicator for inference input 'A' for model 'm', expecting 4 "
            "bytes but only 2 bytes available. Please make sure the string length indicator is in "
            "one buffer.");
}

}  // namespace
}  // namespace nereid::engine
