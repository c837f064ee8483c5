// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "caffe2_backend/ctc.h"
#include "caffe2_backend/custom_operator.h"
#include "caffe2_backend/graph.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;
using backend::StrCat;
using onnxruntime::Api;

namespace {

constexpr ONNXTensorElementDataType kFloats = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
constexpr ONNXTensorElementDataType kInt32s = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
constexpr ONNXTensorElementDataType kInt64s = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
constexpr ONNXTensorElementDataType kAnything = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;

// Lengths of segments must be at least 0 and together use up all that there is.
Error CheckLengths(std::span<const int64_t> lengths, size_t available) {
  uint64_t sum = 0;
  for (const int64_t length : lengths) {
    if (length < 0 || static_cast<uint64_t>(length) > available - sum) {
      return Error::InvalidArgument(StrCat("the lengths do not fit: one is ", length, ", where ",
                                           available - sum, " of ", available,
                                           " elements are left"));
    }
    sum += static_cast<uint64_t>(length);
  }
  return sum == available
             ? Error()
             : Error::InvalidArgument(StrCat("the lengths sum up to ", sum, ", but there are ",
                                             available, " elements"));
}

// The number that 16 bits are (IEEE 754, half).
float FromHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU;
  const uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// The rows of a table, of whatever kind, as numbers.
class Table {
 public:
  static Result<Table> Open(const InputTensor& data, const InputTensor& scale_bias, int64_t bits) {
    Table table(data, scale_bias, bits);
    if (data.dims.empty()) {
      return Error::InvalidArgument("a table needs at least one dimension");
    }
    table.rows_ = static_cast<size_t>(data.dims.front());
    table.stride_ = table.rows_ == 0 ? 0 : data.size / table.rows_;
    table.width_ = table.stride_;
    const bool is_bytes = data.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
    if (bits == 0 && !scale_bias) {
      return data.type == kFloats ? Result<Table>(table)
                                  : Error::InvalidArgument("the table is not of type FP32");
    }
    if (!is_bytes || (scale_bias && scale_bias.size != 2 * table.rows_)) {
      return Error::InvalidArgument("the table is not of type UINT8, or not all rows have a scale");
    }
    if (bits != 0) {
      const size_t tail = bits == 8 ? 2 * sizeof(float) : 2 * sizeof(uint16_t);
      if (data.dims.size() != 2 || data.dims.back() < static_cast<int64_t>(tail)) {
        return Error::InvalidArgument("the rows of the table are too short for scale and bias");
      }
      table.stride_ = static_cast<size_t>(data.dims.back());
      table.width_ = (table.stride_ - tail) * (8 / static_cast<size_t>(bits));
    }
    return table;
  }

  size_t rows() const { return rows_; }
  size_t width() const { return width_; }

  // Calls combine(place in the row, number) for each element. REQUIRES: row < rows().
  template <typename Combine>
  void ForEach(size_t row, Combine&& combine) const {
    if (bits_ == 0 && !scale_bias_) {
      const float* const numbers = data_.as<float>().data() + row * stride_;
      for (size_t i = 0; i < width_; ++i) {
        combine(i, numbers[i]);
      }
      return;
    }
    const uint8_t* const bytes = data_.as<uint8_t>().data() + row * stride_;
    const auto [scale, bias] = ScaleOf(row, bytes);
    const size_t bits = bits_ == 0 ? 8 : static_cast<size_t>(bits_);
    const size_t per_byte = 8 / bits;
    const unsigned mask = (1U << bits) - 1;
    for (size_t i = 0; i < width_; ++i) {
      const unsigned quantum = bytes[i / per_byte] >> (bits * (i % per_byte)) & mask;
      combine(i, scale * static_cast<float>(quantum) + bias);
    }
  }

 private:
  Table(const InputTensor& data, const InputTensor& scale_bias, int64_t bits)
      : data_(data), scale_bias_(scale_bias), bits_(bits) {}

  std::pair<float, float> ScaleOf(size_t row, const uint8_t* bytes) const {
    if (scale_bias_) {
      const std::span<const float> all = scale_bias_.as<float>();
      return {all[2 * row], all[2 * row + 1]};
    }
    if (bits_ == 8) {
      float both[2];
      std::memcpy(both, bytes + stride_ - sizeof(both), sizeof(both));
      return {both[0], both[1]};
    }
    uint16_t both[2];
    std::memcpy(both, bytes + stride_ - sizeof(both), sizeof(both));
    return {FromHalf(both[0]), FromHalf(both[1])};
  }

  const InputTensor data_;
  const InputTensor scale_bias_;
  const int64_t bits_;
  size_t rows_ = 0;
  size_t stride_ = 0;  // of a row in the table
  size_t width_ = 0;   // numbers in a row
};

// What replaces indices where a table has only some of the rows that there were. A mapping of one 0
// means that it has all.
Result<int64_t> Map(std::span<const int64_t> mapping, int64_t index) {
  if (mapping.empty() || (mapping.size() == 1 && mapping[0] == 0)) {
    return index;
  }
  if (index < 0 || static_cast<size_t>(index) >= mapping.size()) {
    return Error::InvalidArgument(
        StrCat("index ", index, " is not in a mapping of ", mapping.size()));
  }
  return mapping[static_cast<size_t>(index)];
}

// SegmentReduce of kernels.h.
class SegmentReduce {
 public:
  static constexpr const char* kName = "SegmentReduce";
  static constexpr OperatorTensor kInputs[] = {{kAnything},     {kInt64s, true}, {kInt64s},
                                               {kFloats, true}, {kInt64s, true}, {kFloats, true}};
  static constexpr OperatorTensor kOutputs[] = {{kFloats}};

  explicit SegmentReduce(const NodeAttributes& attributes)
      : reduction_(attributes.Int("reduction")),
        bits_(attributes.Int("fused_bits")),
        by_position_(attributes.Int("by_position") != 0) {}

  Error Compute(const Arguments& arguments) const {
    NEREID_KIT_ASSIGN(const InputTensor data, arguments.Input(0));
    NEREID_KIT_ASSIGN(const InputTensor indices, arguments.Input(1));
    NEREID_KIT_ASSIGN(const InputTensor lengths, arguments.Input(2));
    NEREID_KIT_ASSIGN(const InputTensor weights, arguments.Input(3));
    NEREID_KIT_ASSIGN(const InputTensor mapping, arguments.Input(4));
    NEREID_KIT_ASSIGN(const InputTensor scale_bias, arguments.Input(5));
    NEREID_KIT_ASSIGN(const Table table, Table::Open(data, scale_bias, bits_));
    const size_t picked = indices ? indices.size : table.rows();
    NEREID_KIT_TRY(CheckLengths(lengths.as<int64_t>(), picked));
    if (weights && !by_position_ && weights.size != picked) {
      return Error::InvalidArgument(
          StrCat("there are ", weights.size, " weights for ", picked, " rows"));
    }
    std::vector<int64_t> dims = data.dims;
    dims.front() = static_cast<int64_t>(lengths.size);
    if (bits_ != 0) {
      dims.back() = static_cast<int64_t>(table.width());
    }
    NEREID_KIT_ASSIGN(const std::span<float> result, arguments.Output<float>(0, dims));
    const Rows rows{table, indices, weights, mapping};
    size_t next = 0;
    for (size_t m = 0; m < lengths.size; ++m) {
      const auto length = static_cast<size_t>(lengths.as<int64_t>()[m]);
      NEREID_KIT_TRY(Reduce(rows, next, length, result.subspan(m * table.width(), table.width())));
      next += length;
    }
    return {};
  }

 private:
  struct Rows {
    const Table& table;
    const InputTensor& indices;
    const InputTensor& weights;
    const InputTensor& mapping;
  };

  Error Reduce(const Rows& rows, size_t first, size_t length, std::span<float> to) const {
    std::fill(to.begin(), to.end(), 0.0F);
    bool is_begun = false;
    for (size_t i = 0; i < length; ++i) {
      int64_t row = static_cast<int64_t>(first + i);
      if (rows.indices) {
        row = rows.indices.as<int64_t>()[first + i];
        NEREID_KIT_ASSIGN(row, Map(rows.mapping.as<int64_t>(), row));
        if (row == -1 && rows.mapping) {
          continue;
        }
      }
      if (row < 0 || static_cast<size_t>(row) >= rows.table.rows()) {
        return Error::InvalidArgument(
            StrCat("index ", row, " is not in a table of ", rows.table.rows(), " rows"));
      }
      const size_t at = by_position_ ? i : first + i;
      if (rows.weights && at >= rows.weights.size) {
        return Error::InvalidArgument(
            StrCat("there are ", rows.weights.size, " weights for a segment of ", length, " rows"));
      }
      const float weight = rows.weights ? rows.weights.as<float>()[at] : 1.0F;
      rows.table.ForEach(static_cast<size_t>(row), [&](size_t e, float number) {
        to[e] = reduction_ == kMax && is_begun ? std::max(to[e], number * weight)
                : reduction_ == kMax           ? number * weight
                                               : to[e] + number * weight;
      });
      is_begun = true;
    }
    if (reduction_ == kMean && length > 0) {
      for (float& number : to) {
        number /= static_cast<float>(length);
      }
    }
    return {};
  }

  const int64_t reduction_;
  const int64_t bits_;
  const bool by_position_;
};

// SparseLookup of kernels.h.
class SparseLookup {
 public:
  static constexpr const char* kName = "SparseLookup";
  static constexpr OperatorTensor kInputs[] = {{kInt64s}, {kInt64s}, {kInt64s}, {kFloats, true}};
  static constexpr OperatorTensor kOutputs[] = {{kInt64s}, {kInt64s, true}, {kFloats, true}};

  explicit SparseLookup(const NodeAttributes&) {}

  Error Compute(const Arguments& arguments) const {
    NEREID_KIT_ASSIGN(const InputTensor indices, arguments.Input(0));
    NEREID_KIT_ASSIGN(const InputTensor lengths, arguments.Input(1));
    NEREID_KIT_ASSIGN(const InputTensor mapping, arguments.Input(2));
    NEREID_KIT_ASSIGN(const InputTensor weights, arguments.Input(3));
    NEREID_KIT_TRY(CheckLengths(lengths.as<int64_t>(), indices.size));
    if (weights && weights.size != indices.size) {
      return Error::InvalidArgument(
          StrCat("there are ", weights.size, " weights for ", indices.size, " indices"));
    }
    std::vector<int64_t> kept;
    std::vector<int64_t> counts;
    std::vector<float> factors;
    size_t next = 0;
    for (const int64_t length : lengths.as<int64_t>()) {
      const size_t before = kept.size();
      for (int64_t i = 0; i < length; ++i, ++next) {
        NEREID_KIT_ASSIGN(const int64_t index,
                          Map(mapping.as<int64_t>(), indices.as<int64_t>()[next]));
        if (index != -1) {
          kept.push_back(index);
          factors.push_back(weights ? weights.as<float>()[next] : 1.0F);
        }
      }
      counts.push_back(static_cast<int64_t>(kept.size() - before));
    }
    NEREID_KIT_TRY(Put<int64_t>(arguments, 0, kept));
    NEREID_KIT_TRY(Put<int64_t>(arguments, 1, counts));
    return Put<float>(arguments, 2, factors);
  }

 private:
  template <typename T>
  static Error Put(const Arguments& arguments, size_t o, const std::vector<T>& values) {
    NEREID_KIT_ASSIGN(const std::span<T> to,
                      arguments.Output<T>(o, {static_cast<int64_t>(values.size())}));
    std::copy_n(values.begin(), to.size(), to.begin());
    return {};
  }
};

// The decoders of kernels.h.
template <bool kIsBeam>
class Ctc {
 public:
  static constexpr const char* kName = kIsBeam ? "CtcBeams" : "CtcGreedy";
  static constexpr OperatorTensor kInputs[] = {{kFloats}, {kInt64s, true}};
  static constexpr auto kOutputs = [] {
    std::array<OperatorTensor, kIsBeam ? 3 : 2> outputs{};
    outputs[0] = {kInt32s};
    outputs[1] = {kInt32s};
    if constexpr (kIsBeam) {
      outputs[2] = {kFloats, true};
    }
    return outputs;
  }();

  explicit Ctc(const NodeAttributes& attributes)
      : merge_(attributes.Int("merge") != 0),
        search_{.width = static_cast<size_t>(attributes.Int("beam_width")),
                .candidates = static_cast<size_t>(attributes.Int("candidates")),
                .threshold = attributes.Real("threshold")} {}

  Error Compute(const Arguments& arguments) const {
    NEREID_KIT_ASSIGN(const InputTensor scores, arguments.Input(0));
    NEREID_KIT_ASSIGN(const InputTensor lengths, arguments.Input(1));
    if (scores.dims.size() != 3 || scores.dims[2] < 1) {
      return Error::InvalidArgument("scores need the dimensions time, batch and label");
    }
    const auto times = static_cast<size_t>(scores.dims[0]);
    const auto batch = static_cast<size_t>(scores.dims[1]);
    const auto labels = static_cast<size_t>(scores.dims[2]);
    if (lengths && lengths.size != batch) {
      return Error::InvalidArgument(
          StrCat("there are ", lengths.size, " lengths for a batch of ", batch));
    }
    CtcResult result;
    for (size_t n = 0; n < batch; ++n) {
      const int64_t length = lengths ? lengths.as<int64_t>()[n] : static_cast<int64_t>(times);
      if (length < 0 || static_cast<size_t>(length) > times) {
        return Error::InvalidArgument(
            StrCat("a sequence has the length ", length, ", where there are ", times, " times"));
      }
      const CtcScores one{.first = scores.as<float>().data() + n * labels,
                          .times = static_cast<size_t>(length),
                          .stride = batch * labels,
                          .labels = labels};
      if constexpr (kIsBeam) {
        SearchBeams(one, search_, &result);
      } else {
        DecodeGreedily(one, merge_, &result);
      }
    }
    NEREID_KIT_TRY(Put<int32_t>(arguments, 0, result.lengths));
    NEREID_KIT_TRY(Put<int32_t>(arguments, 1, result.labels));
    return kIsBeam ? Put<float>(arguments, 2, result.probabilities) : Error();
  }

 private:
  template <typename T>
  static Error Put(const Arguments& arguments, size_t o, const std::vector<T>& values) {
    NEREID_KIT_ASSIGN(const std::span<T> to,
                      arguments.Output<T>(o, {static_cast<int64_t>(values.size())}));
    std::copy_n(values.begin(), to.size(), to.begin());
    return {};
  }

  const bool merge_;
  const CtcSearch search_;
};

}  // namespace

Result<onnxruntime::Owned<OrtCustomOpDomain>> MakeDomain() {
  static const CustomOperator<SegmentReduce> segment_reduce;
  static const CustomOperator<SparseLookup> sparse_lookup;
  static const CustomOperator<Ctc<false>> ctc_greedy;
  static const CustomOperator<Ctc<true>> ctc_beams;
  OrtCustomOpDomain* raw = nullptr;
  const std::string name(Graph::kOwnDomain);
  NEREID_ORT_TRY(Api().CreateCustomOpDomain(name.c_str(), &raw));
  onnxruntime::Owned<OrtCustomOpDomain> domain(raw);
  for (const OrtCustomOp* operation : std::initializer_list<const OrtCustomOp*>{
           &segment_reduce, &sparse_lookup, &ctc_greedy, &ctc_beams}) {
    NEREID_ORT_TRY(Api().CustomOpDomain_Add(raw, operation));
  }
  return domain;
}

}  // namespace nereid::caffe2
