// SPDX-License-Identifier: Apache-2.0
// `batch_input` and ragged batches: inputs of the model that describe how requests of different
// sizes form a batch, and outputs that are split by the shapes of an input (`batch_output`).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend_kit/config.h"
#include "backend_kit/shape.h"

namespace nereid::backend {

// The contents of a batch input, in the order of model_config.proto.
enum class BatchInputKind {
  kElementCount,                     // of each request's source
  kAccumulatedElementCount,          // running sums of these
  kAccumulatedElementCountWithZero,  // running sums with a zero before them
  kMaxElementCountAsShape,           // no data: the largest count is the size of the tensor
  kItemShape,         // the source's shape without batch dimension, for each batch item
  kItemShapeFlatten,  // like kItemShape, in one dimension
};

// One entry of `batch_input`. Immutable.
struct BatchInput {
  BatchInputKind kind = BatchInputKind::kElementCount;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INT32;  // or FP32
  std::vector<std::string> targets;                          // inputs of the model
  std::string source;                                        // input of the requests
};

// Reads all entries of `batch_input`, which the server has validated.
inline Result<std::vector<BatchInput>> ReadBatchInputs(const ModelConfig& config) {
  using Kind = BatchInputKind;
  constexpr std::array<std::pair<std::string_view, Kind>, 6> kKinds = {{
      {"BATCH_ELEMENT_COUNT", Kind::kElementCount},
      {"BATCH_ACCUMULATED_ELEMENT_COUNT", Kind::kAccumulatedElementCount},
      {"BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", Kind::kAccumulatedElementCountWithZero},
      {"BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", Kind::kMaxElementCountAsShape},
      {"BATCH_ITEM_SHAPE", Kind::kItemShape},
      {"BATCH_ITEM_SHAPE_FLATTEN", Kind::kItemShapeFlatten},
  }};
  std::vector<BatchInput> inputs;
  for (const rapidjson::Value& given : ArrayOf(config.json(), "batch_input")) {
    BatchInput input;
    // An absent kind is the first one, because protobuf omits it.
    const std::string_view kind = StringMember(given, "kind");
    const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                    [&](const auto& known) { return known.first == kind; });
    if (found != kKinds.end()) {
      input.kind = found->second;
    } else if (!kind.empty()) {
      return Error::Unsupported(StrCat("batch input of kind '", kind, "' is not supported"));
    }
    input.datatype = StringMember(given, "data_type") == "TYPE_FP32" ? TRITONSERVER_TYPE_FP32
                                                                     : TRITONSERVER_TYPE_INT32;
    for (const rapidjson::Value& name : ArrayOf(given, "target_name")) {
      input.targets.emplace_back(name.GetString(), name.GetStringLength());
    }
    const auto sources = ArrayOf(given, "source_input");
    if (sources.Size() != 1) {
      return Error::InvalidArgument("a batch input needs exactly one source input");
    }
    input.source.assign(sources[0].GetString(), sources[0].GetStringLength());
    inputs.push_back(std::move(input));
  }
  return inputs;
}

// Shape and data of a batch input for one batch; `sources` are the shapes of the source input, with
// the batch dimension first, one for each request. The buffers are reused.
class BatchInputTensor {
 public:
  Error Make(const BatchInput& input, std::span<const std::span<const int64_t>> sources) {
    values_.clear();
    NEREID_KIT_TRY(Collect(input.kind, sources));
    size_ = static_cast<size_t>(shape_[0] * (shape_.size() > 1 ? shape_[1] : 1));
    if (input.kind == BatchInputKind::kMaxElementCountAsShape) {
      values_.assign(size_, 0);
    }
    data_.resize(std::max<size_t>(size_ * 4, 4));  // data must have an address
    for (size_t i = 0; i < size_; ++i) {
      char* const to = data_.data() + i * 4;
      if (input.datatype == TRITONSERVER_TYPE_FP32) {
        const auto value = static_cast<float>(values_[i]);
        std::memcpy(to, &value, sizeof(value));
      } else {
        if (values_[i] > INT32_MAX) {
          return Error::InvalidArgument(
              StrCat("batch input '", input.targets[0], "' is beyond INT32: ", values_[i]));
        }
        const auto value = static_cast<int32_t>(values_[i]);
        std::memcpy(to, &value, sizeof(value));
      }
    }
    return {};
  }

  std::span<const int64_t> shape() const { return shape_; }
  std::span<const char> data() const { return {data_.data(), size_ * 4}; }

 private:
  Error Collect(BatchInputKind kind, std::span<const std::span<const int64_t>> sources) {
    using Kind = BatchInputKind;
    if (kind == Kind::kItemShape || kind == Kind::kItemShapeFlatten) {
      return CollectShapes(kind == Kind::kItemShapeFlatten, sources);
    }
    int64_t sum = 0;
    int64_t largest = 0;
    if (kind == Kind::kAccumulatedElementCountWithZero) {
      values_.push_back(0);
    }
    for (const std::span<const int64_t> source : sources) {
      NEREID_KIT_ASSIGN(const int64_t count, ElementCount(source));
      if (__builtin_add_overflow(sum, count, &sum)) {
        return Error::InvalidArgument("unexpected integer overflow in a batch input");
      }
      largest = std::max(largest, count);
      values_.push_back(kind == Kind::kElementCount ? count : sum);
    }
    shape_.assign(
        1, kind == Kind::kMaxElementCountAsShape ? largest : static_cast<int64_t>(values_.size()));
    return {};
  }

  Error CollectShapes(bool flatten, std::span<const std::span<const int64_t>> sources) {
    int64_t items = 0;
    int64_t rank = -1;
    for (const std::span<const int64_t> source : sources) {
      const int64_t dims = static_cast<int64_t>(source.size()) - 1;
      if (dims < 0 || (!flatten && rank >= 0 && rank != dims)) {
        return Error::InvalidArgument("sources of a batch input differ in their dimensions");
      }
      rank = dims;
      for (int64_t item = 0; item < source[0]; ++item) {
        values_.insert(values_.end(), source.begin() + 1, source.end());
      }
      items += source[0];
    }
    shape_.assign(1, flatten ? static_cast<int64_t>(values_.size()) : items);
    if (!flatten) {
      shape_.push_back(std::max<int64_t>(rank, 0));
    }
    return {};
  }

  std::vector<int64_t> values_;
  std::vector<int64_t> shape_;
  std::vector<char> data_;
  size_t size_ = 0;
};

// An output that is split among the requests by the shape of one of their inputs. Immutable.
struct BatchOutput {
  std::string source;          // input of the requests
  std::vector<int64_t> shape;  // -1, batch dimension included: as in the source
};

// Returns the entry of `batch_output` for an output, if there is one; `io` is the output's own
// entry.
inline std::optional<BatchOutput> FindBatchOutput(const ModelConfig& config,
                                                  const rapidjson::Value& io) {
  for (const rapidjson::Value& given : ArrayOf(config.json(), "batch_output")) {
    for (const rapidjson::Value& target : ArrayOf(given, "target_name")) {
      const auto sources = ArrayOf(given, "source_input");
      if (StringMember(io, "name") != target.GetString() || sources.Empty()) {
        continue;
      }
      BatchOutput output{.source = sources[0].GetString(), .shape = DimsMember(io, "dims")};
      if (config.max_batch_size() > 0) {
        output.shape.insert(output.shape.begin(), -1);
      }
      return output;
    }
  }
  return std::nullopt;
}

}  // namespace nereid::backend
