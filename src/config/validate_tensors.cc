// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "config/errors.h"
#include "config/validate.h"
#include "config/validate_parts.h"
#include "tensor/data_type.h"

namespace nereid::config {
namespace {

constexpr std::string_view kTensorRtPlatform = "tensorrt_plan";

std::string Printed(const std::vector<int64_t>& dims) {
  return dims.empty() ? "[ ]" : fmt::format("[ {} ]", fmt::join(dims, ", "));
}

// Returns the element count of a shape whose dimensions are all >= 1 or -1: kWildcardDim if a
// dimension may have any size, nothing if the count exceeds 64 bits. The empty shape counts 0,
// because its meaning, one element, is handled by the caller.
std::optional<int64_t> ElementCount(const std::vector<int64_t>& dims) {
  if (dims.empty()) return 0;
  int64_t count = 1;
  for (const int64_t dim : dims) {
    if (dim == kWildcardDim) return kWildcardDim;
    if (__builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  }
  return count;
}

// Returns the element counts of the stretches between dimensions of any size: [2, 4, -1, 6] gives
// {8, 6}. Nothing if one exceeds 64 bits.
std::optional<std::vector<int64_t>> StretchCounts(const std::vector<int64_t>& dims) {
  std::vector<int64_t> counts = {1};
  for (const int64_t dim : dims) {
    if (dim == kWildcardDim) {
      counts.push_back(1);
    } else if (__builtin_mul_overflow(counts.back(), dim, &counts.back())) {
      return std::nullopt;
    }
  }
  return counts;
}

// Collects the errors about inputs or outputs.
class TensorCheck {
 public:
  explicit TensorCheck(const ModelConfig& config) : config_(config) {}

  ErrorList Run() {
    for (size_t i = 0; i < config_.input.size(); ++i) {
      field_ = fmt::format("input[{}]", i);
      kind_ = "input";
      Input(config_.input[i]);
    }
    for (size_t i = 0; i < config_.output.size(); ++i) {
      field_ = fmt::format("output[{}]", i);
      kind_ = "output";
      Output(config_.output[i]);
    }
    for (size_t i = 0; i < config_.batch_input.size(); ++i) {
      field_ = fmt::format("batch_input[{}]", i);
      BatchIn(config_.batch_input[i]);
    }
    for (size_t i = 0; i < config_.batch_output.size(); ++i) {
      field_ = fmt::format("batch_output[{}]", i);
      BatchOut(config_.batch_output[i]);
    }
    return std::move(errors_);
  }

 private:
  void Add(const std::string& text, std::string_view member, std::string found,
           std::string expected, std::string_view kind) {
    errors_.Add({kInvalid, fmt::format("{} for {}", text, config_.name),
                 fmt::format("{}.{}", field_, member), std::move(found), std::move(expected),
                 kind});
  }

  void Input(const ModelInput& input) {
    Tensor(input);
    if (input.format != ModelInput::Format::kNone && input.dims.size() != 3) {
      Add("model input NHWC/NCHW require 3 dims", "dims", Printed(input.dims), "3 dimensions",
          "format-dims");
    }
    Flags(input);
  }

  void Output(const ModelOutput& output) {
    Tensor(output);
    Flags(output);
  }

  // Checks the flags that only one framework supports.
  template <typename Io>
  void Flags(const Io& io) {
    const bool tensorrt = config_.platform == kTensorRtPlatform;
    if (io.is_shape_tensor && !tensorrt) {
      Add("shape tensors are only supported for TensorRT platform", "is_shape_tensor", "true",
          "false", "shape-tensor-platform");
    }
    if (!io.is_non_linear_format_io) return;
    if (!tensorrt) {
      Add("Non-linear IO format is only supported for the TensorRT platform",
          "is_non_linear_format_io", "true", "false", "non-linear-format");
    } else if (io.dims.size() != 3) {
      Add(fmt::format("Non-linear IO format {} requires 3 dims", kind_), "dims", Printed(io.dims),
          "3 dimensions", "non-linear-format");
    }
  }

  template <typename Io>
  void Tensor(const Io& io) {
    const std::string prefix = fmt::format("model {} ", kind_);
    if (io.name.empty()) {
      Add(prefix + "must specify 'name'", "name", "nothing", "the name of the tensor",
          "tensor-name");
    }
    // Without a name, the field's position alone identifies the tensor.
    const std::string subject = io.name.empty() ? prefix : fmt::format("{}'{}' ", prefix, io.name);
    if (io.data_type == tensor::DataType::kInvalid) {
      Add(subject + "must specify 'data_type'", "data_type", "nothing", "a type such as TYPE_FP32",
          "tensor-type");
    }
    if (io.dims.empty()) {
      Add(subject + "must specify 'dims'", "dims", "nothing", "at least one dimension",
          "tensor-dims");
    }
    if (io.reshape && io.reshape->empty() && config_.max_batch_size == 0) {
      Add(subject +
              "cannot have empty reshape for non-batching model as scalar tensors are not "
              "supported",
          "reshape.shape", "[ ]", "at least one dimension", "reshape-empty");
    }
    const bool dims_fit = Dimensions(io.dims, subject + "dimension", "dims");
    if (!io.reshape) return;
    const bool reshape_fits =
        Dimensions(*io.reshape, subject + "reshape dimensions", "reshape.shape");
    if (dims_fit && reshape_fits && !io.dims.empty())
      Reshape(io.name, subject, io.dims, *io.reshape);
  }

  bool Dimensions(const std::vector<int64_t>& dims, const std::string& what,
                  std::string_view member) {
    const bool fit = std::all_of(dims.begin(), dims.end(),
                                 [](int64_t dim) { return dim >= 1 || dim == kWildcardDim; });
    if (!fit) {
      Add(fmt::format("{} must be integer >= 1, or -1 to indicate a variable-size dimension", what),
          member, Printed(dims), "numbers >= 1, or -1 for any size", "dims-range");
    }
    return fit;
  }

  void Reshape(const std::string& name, const std::string& subject,
               const std::vector<int64_t>& dims, const std::vector<int64_t>& reshape) {
    const std::optional<int64_t> from = Count(dims, name + " dims", "dims");
    const std::optional<int64_t> to = Count(reshape, name + " reshape", "reshape.shape");
    if (!from || !to) return;
    const bool to_scalar = *to == 0 && *from == 1;
    if (*from != *to && !to_scalar) {
      DifferentSize(subject, dims, reshape);
    } else if (*from == kWildcardDim) {
      Stretches(subject, dims, reshape);
    }
  }

  std::optional<int64_t> Count(const std::vector<int64_t>& dims, const std::string& name,
                               std::string_view member) {
    const std::optional<int64_t> count = ElementCount(dims);
    if (!count) {
      Add(fmt::format("element count for tensor '{}' exceeds maximum size of {}", name,
                      std::numeric_limits<int64_t>::max()),
          member, Printed(dims), "fewer elements", "tensor-size");
    }
    return count;
  }

  void Stretches(const std::string& subject, const std::vector<int64_t>& dims,
                 const std::vector<int64_t>& reshape) {
    const auto from = StretchCounts(dims);
    const auto to = StretchCounts(reshape);
    if (from && to && from->size() != to->size()) {
      Add(subject + "has different number of variable-size dimensions for dims and reshape",
          "reshape.shape", Printed(reshape), fmt::format("as many -1 as in dims {}", Printed(dims)),
          "reshape-variable");
    } else if (!from || !to || *from != *to) {
      DifferentSize(subject, dims, reshape);
    }
  }

  void DifferentSize(const std::string& subject, const std::vector<int64_t>& dims,
                     const std::vector<int64_t>& reshape) {
    Add(subject + "has different size for dims and reshape", "reshape.shape", Printed(reshape),
        fmt::format("as many elements as dims {}", Printed(dims)), "reshape-size");
  }

  void BatchIn(const BatchInput& input) {
    if (KindName(input.kind).empty()) {
      Add("unknown batch input kind ''", "kind", std::to_string(static_cast<int>(input.kind)),
          "a known kind", "batch-kind");
    } else if (input.source_input.size() != 1) {
      Add(fmt::format("batch input kind '{}' expects 1 source input, got {}", KindName(input.kind),
                      input.source_input.size()),
          "source_input", fmt::format("{} inputs", input.source_input.size()), "1 input",
          "batch-source-count");
    }
    if (input.data_type != tensor::DataType::kInt32 && input.data_type != tensor::DataType::kFp32) {
      Add("batch input data type must be TYPE_INT32 or TYPE_FP32", "data_type",
          std::string(tensor::ConfigName(input.data_type)), "TYPE_INT32 or TYPE_FP32",
          "batch-input-type");
    }
    Sources(input.source_input);
  }

  void BatchOut(const BatchOutput& output) {
    if (KindName(output.kind).empty()) {
      Add("unknown batch output kind ''", "kind", std::to_string(static_cast<int>(output.kind)),
          "a known kind", "batch-kind");
    } else if (output.source_input.size() != 1) {
      Add(fmt::format("batch output kind '{}' expects 1 source input, got {}",
                      KindName(output.kind), output.source_input.size()),
          "source_input", fmt::format("{} inputs", output.source_input.size()), "1 input",
          "batch-source-count");
    }
    Sources(output.source_input);
    std::set<std::string_view> targets;
    for (const std::string& name : output.target_name) {
      if (config_.FindOutput(name) == nullptr) {
        Add(fmt::format("unknown target output name '{}'", name), "target_name", "'" + name + "'",
            "the name of an output", "batch-output-unknown");
      }
      if (!targets.insert(name).second) {
        Add(fmt::format("target output name '{}' can only be specified once", name), "target_name",
            "'" + name + "' again", "each output once", "batch-output-twice");
      }
    }
  }

  void Sources(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (config_.FindInput(name) != nullptr) continue;
      Add(fmt::format("unknown source input name '{}'", name), "source_input", "'" + name + "'",
          "the name of an input", "batch-source-unknown");
    }
  }

  const ModelConfig& config_;
  std::string field_;
  std::string_view kind_;
  ErrorList errors_;
};

}  // namespace

ErrorList TensorErrors(const ModelConfig& config) { return TensorCheck(config).Run(); }

base::Status ValidateTensors(const ModelConfig& config, std::string_view file) {
  return TensorErrors(config).ToStatus(file);
}

}  // namespace nereid::config
