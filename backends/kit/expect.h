// SPDX-License-Identifier: Apache-2.0
// Checks of a model's configuration, for backends that serve only one kind of model.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/config.h"
#include "backend_kit/shape.h"

namespace nereid::backend {

// A tensor that a backend requires. Immutable.
struct ExpectedTensor {
  const char* name;
  const char* type;  // "TYPE_INT32", ...
  // The only valid shape; empty: any with one dimension.
  std::vector<int64_t> dims;
};

// Checks that the array `key` ("input" or "output") has exactly these tensors, in this order.
inline Error ExpectTensors(const ModelConfig& config, const char* key,
                           std::initializer_list<ExpectedTensor> expected) {
  const auto found = ArrayOf(config.json(), key);
  if (found.Size() != expected.size()) {
    return Error::InvalidArgument(StrCat("expected ", expected.size(), " ", key,
                                         expected.size() == 1 ? "" : "s", ", got ", found.Size()));
  }
  rapidjson::SizeType i = 0;
  for (const ExpectedTensor& tensor : expected) {
    const rapidjson::Value& given = found[i++];
    if (StringMember(given, "name") != tensor.name) {
      return Error::InvalidArgument(StrCat("expected ", key, " ", i, " to be called '", tensor.name,
                                           "', got '", StringMember(given, "name"), "'"));
    }
    if (StringMember(given, "data_type") != tensor.type) {
      return Error::InvalidArgument(StrCat("expected ", tensor.name, " to be ", tensor.type,
                                           ", got ", StringMember(given, "data_type")));
    }
    const std::vector<int64_t> dims = DimsMember(given, "dims");
    if (tensor.dims.empty() ? dims.size() != 1 : dims != tensor.dims) {
      return Error::InvalidArgument(
          StrCat("expected ", tensor.name, " shape to ",
                 tensor.dims.empty() ? "have one dimension" : "be " + ShapeToString(tensor.dims),
                 ", got ", ShapeToString(dims)));
    }
  }
  return {};
}

// Checks that sequence_batching has exactly these control inputs, in any order.
inline Error ExpectControls(const ModelConfig& config,
                            std::initializer_list<std::string_view> expected) {
  std::string names;
  for (const std::string_view name : expected) {
    names += StrCat(names.empty() ? "'" : ", '", name, "'");
  }
  const Error error =
      Error::InvalidArgument(StrCat(names, " must be configured as the control inputs"));
  const rapidjson::Value* sequences = Find(config.json(), "sequence_batching");
  size_t present = 0;
  if (sequences != nullptr && ArrayOf(*sequences, "control_input").Size() == expected.size()) {
    for (const std::string_view name : expected) {
      for (const rapidjson::Value& input : ArrayOf(*sequences, "control_input")) {
        present += StringMember(input, "name") == name ? 1 : 0;
      }
    }
  }
  if (present == expected.size()) {
    return {};
  }
  return Error::InvalidArgument(error.message());
}

}  // namespace nereid::backend
