// SPDX-License-Identifier: Apache-2.0
#include "cli/model_metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/json.h"

namespace nereid::cli {
namespace {

std::vector<TensorMetadata> ReadTensors(const rapidjson::Value& document, const char* name) {
  std::vector<TensorMetadata> tensors;
  for (const rapidjson::Value& value : ListOf(document, name)) {
    TensorMetadata tensor{.name = std::string(TextOf(value, "name")),
                          .datatype = std::string(TextOf(value, "datatype")),
                          .shape = {}};
    for (const rapidjson::Value& size : ListOf(value, "shape")) {
      tensor.shape.push_back(size.IsInt64() ? size.GetInt64() : -1);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

base::Status UnknownReply() {
  return {base::StatusCode::kUnknown, "the reply is not that of an inference server"};
}

base::Result<ModelMetadata> ReadModelMetadata(const rapidjson::Value& document) {
  ModelMetadata model{.name = std::string(TextOf(document, "name")),
                      .platform = std::string(TextOf(document, "platform")),
                      .versions = {},
                      .inputs = ReadTensors(document, "inputs"),
                      .outputs = ReadTensors(document, "outputs")};
  for (const rapidjson::Value& version : ListOf(document, "versions")) {
    if (version.IsString()) model.versions.emplace_back(version.GetString());
  }
  if (model.name.empty()) return UnknownReply();
  return model;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace nereid::cli
