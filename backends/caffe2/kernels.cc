// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/kernels.h"

#include <algorithm>
#include <initializer_list>

#include "caffe2_backend/ctc_kernels.h"
#include "caffe2_backend/custom_operator.h"
#include "caffe2_backend/graph.h"
#include "caffe2_backend/row_table.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;
using backend::StrCat;
using onnxruntime::Api;

namespace {

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
    NEREID_KIT_ASSIGN(const RowTable table, RowTable::Open(data, scale_bias, bits_));
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
    const RowTable& table;
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
    NEREID_KIT_TRY(arguments.Put<int64_t>(0, kept));
    NEREID_KIT_TRY(arguments.Put<int64_t>(1, counts));
    return arguments.Put<float>(2, factors);
  }
};

}  // namespace

Result<onnxruntime::Owned<OrtCustomOpDomain>> MakeDomain() {
  static const CustomOperator<SegmentReduce> segment_reduce;
  static const CustomOperator<SparseLookup> sparse_lookup;
  OrtCustomOpDomain* raw = nullptr;
  const std::string name(Graph::kOwnDomain);
  NEREID_ORT_TRY(Api().CreateCustomOpDomain(name.c_str(), &raw));
  onnxruntime::Owned<OrtCustomOpDomain> domain(raw);
  for (const OrtCustomOp* operation : std::initializer_list<const OrtCustomOp*>{
           &segment_reduce, &sparse_lookup, CtcGreedyOperator(), CtcBeamsOperator()}) {
    NEREID_ORT_TRY(Api().CustomOpDomain_Add(raw, operation));
  }
  return domain;
}

}  // namespace nereid::caffe2
