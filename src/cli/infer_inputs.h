// SPDX-License-Identifier: Apache-2.0
// The inputs of a request, made from arguments and what the server says about the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rapidjson/document.h>

#include "base/status.h"
#include "cli/elements.h"
#include "cli/model_metadata.h"

namespace nereid::cli {

// What the arguments say.
struct InferArguments {
  std::vector<std::string> inputs;      // "NAME=JSON", "NAME=@FILE"
  std::vector<std::string> shapes;      // "NAME=1,28,28"
  std::vector<std::string> parameters;  // "NAME=VALUE"
  std::vector<std::string> outputs;     // names; empty: all
  std::optional<Filling> filling;       // of inputs that are not given
  int64_t seed = 0;
  std::string id;
  int classes = 0;  // the best classes instead of the values; 0: the values
};

// An input that is ready to be sent: as JSON or as bytes.
struct InferInput {
  const TensorMetadata* metadata;
  std::vector<int64_t> shape;
  std::optional<rapidjson::Document> json;
  std::string bytes;
};

// Reads the files that the arguments name. INVALID_ARGUMENT says what is wrong with the arguments.
// `model` outlives the inputs.
base::Result<std::vector<InferInput>> ReadInferInputs(const InferArguments& arguments,
                                                      const ModelMetadata& model);

// The error for an argument, and for the end of its text what names would be right.
base::Status RefuseArgument(std::string_view argument, std::string_view why);
std::string KnownNames(std::string_view name, const std::vector<TensorMetadata>& tensors);

}  // namespace nereid::cli
