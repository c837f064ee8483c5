// SPDX-License-Identifier: Apache-2.0
// What a server says about a model: GET /v2/models/NAME.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rapidjson/document.h>

#include "base/status.h"

namespace nereid::cli {

// A dimension that a request may choose.
inline constexpr int64_t kAnySize = -1;

struct TensorMetadata {
  std::string name;
  std::string datatype;        // as in protocols: "FP32"
  std::vector<int64_t> shape;  // with the batch dimension, if the model has one; may be kAnySize
};

struct ModelMetadata {
  std::string name;
  std::string platform;
  std::vector<std::string> versions;
  std::vector<TensorMetadata> inputs;
  std::vector<TensorMetadata> outputs;
};

base::Result<ModelMetadata> ReadModelMetadata(const rapidjson::Value& document);

// The error for a reply that is JSON, but not that of an inference server.
base::Status UnknownReply();

// "[-1, 784]"; "[]" for a scalar.
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace nereid::cli
