// SPDX-License-Identifier: Apache-2.0
// Checks calls against the rules of input_rules.h.
#include <array>

#include "pytorch_backend/input_rules.h"

namespace nereid::pytorch {

using backend::Error;
using backend::StrCat;

namespace {

std::string Dims(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t dim : shape) {
    text += StrCat(text.size() > 1 ? ", " : "", dim);
  }
  return text + "]";
}

Error WrongShape(const InputRule& rule, const CallInput& input, const std::string& why) {
  return Error::InvalidArgument(StrCat("input '", input.name, "' has shape ", Dims(input.shape),
                                       ", but the model was compiled for ", ShapeText(rule), why));
}

}  // namespace

std::string ShapeText(const InputRule& rule) {
  std::vector<int64_t> shape;
  for (const DimRule& dim : rule.dims) {
    shape.push_back(dim.fixed);
  }
  return Dims(shape);
}

Error CheckInputs(std::span<const InputRule> rules, std::span<const CallInput> inputs) {
  // The size of each symbol, and the input where it was met first.
  std::array<int64_t, kMaxSymbols> sizes{};
  std::array<const CallInput*, kMaxSymbols> owners{};
  for (size_t i = 0; i < rules.size(); ++i) {
    const InputRule& rule = rules[i];
    const CallInput& input = inputs[i];
    if (input.datatype != rule.datatype) {
      return Error::InvalidArgument(
          StrCat("input '", input.name, "' has type ", TRITONSERVER_DataTypeString(input.datatype),
                 ", but the model was compiled for ", TRITONSERVER_DataTypeString(rule.datatype)));
    }
    if (input.shape.size() != rule.dims.size()) {
      return WrongShape(rule, input, "");
    }
    for (size_t d = 0; d < rule.dims.size(); ++d) {
      const DimRule& dim = rule.dims[d];
      const int64_t size = input.shape[d];
      if (dim.fixed >= 0 && size != dim.fixed) {
        return WrongShape(rule, input, "");
      }
      if (dim.fixed < 0 && (size < dim.smallest() || size > dim.most)) {
        return WrongShape(rule, input,
                          StrCat("; dimension ", d, " may be ", dim.smallest(), " to ", dim.most));
      }
      if (dim.symbol < 0) {
        continue;
      }
      const auto symbol = static_cast<size_t>(dim.symbol);
      if (owners[symbol] == nullptr) {
        owners[symbol] = &input;
        sizes[symbol] = size;
      } else if (sizes[symbol] != size) {
        return WrongShape(rule, input,
                          StrCat("; dimension ", d, " has to be ", sizes[symbol], " as in input '",
                                 owners[symbol]->name, "'"));
      }
    }
  }
  return {};
}

}  // namespace nereid::pytorch
