// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/completion.h"

#include <algorithm>
#include <set>

#include "backend_kit/completion.h"
#include "backend_kit/ports.h"

namespace nereid::openvino {

using backend::ConfiguredName;
using backend::Error;
using backend::ModelConfig;
using backend::StrCat;

namespace {

rapidjson::Value::ConstArray List(const ModelConfig& config, const char* key) {
  return backend::ArrayOf(config.json(), key);
}

// Tensors of the model that another part of the configuration names.
std::set<std::string, std::less<>> NamedElsewhere(const ModelConfig& config) {
  std::set<std::string, std::less<>> names;
  if (const rapidjson::Value* sequences = backend::Find(config.json(), "sequence_batching")) {
    for (const rapidjson::Value& control : backend::ArrayOf(*sequences, "control_input")) {
      names.emplace(backend::StringMember(control, "name"));
    }
    for (const rapidjson::Value& state : backend::ArrayOf(*sequences, "state")) {
      names.emplace(backend::StringMember(state, "input_name"));
      names.emplace(backend::StringMember(state, "output_name"));
    }
  }
  return names;
}

Error CompleteList(const char* key, const std::vector<TensorInfo>& tensors,
                   const std::string& model, ModelConfig* config) {
  if (List(*config, key).Size() > 0) {
    return {};
  }
  const auto elsewhere = NamedElsewhere(*config);
  const size_t first = config->max_batch_size() > 0 ? 1 : 0;
  for (const TensorInfo& tensor : tensors) {
    if (std::any_of(tensor.names.begin(), tensor.names.end(),
                    [&](const std::string& name) { return elsewhere.contains(name); })) {
      continue;
    }
    if (!tensor.has_rank || tensor.datatype == TRITONSERVER_TYPE_INVALID) {
      return Error::InvalidArgument(
          StrCat("unable to load model '", model, "', ", key, " '", tensor.name, "' has ",
                 tensor.has_rank ? StrCat("the type ", tensor.type)
                                 : std::string("any number of dimensions"),
                 ", so its configuration cannot be completed: list the tensor in config.pbtxt"));
    }
    std::vector<int64_t> dims(
        tensor.dims.begin() + static_cast<std::ptrdiff_t>(std::min(first, tensor.dims.size())),
        tensor.dims.end());
    // No dimensions cannot be expressed; one of size one has as many elements.
    if (dims.empty()) {
      dims.push_back(1);
    }
    config->AddTensor(key, tensor.name, ConfiguredName(tensor.datatype), dims);
    if (first == 1 && tensor.dims.size() == 1) {
      auto& allocator = config->mutable_json().GetAllocator();
      rapidjson::Value reshape(rapidjson::kObjectType);
      reshape.AddMember("shape", rapidjson::Value(rapidjson::kArrayType), allocator);
      auto list = config->mutable_json()[key].GetArray();
      list[list.Size() - 1].AddMember("reshape", reshape, allocator);
    }
  }
  return {};
}

// Whether all inputs and outputs have what `has` asks for.
template <typename Predicate>
bool HaveAll(const Signature& signature, Predicate has) {
  return std::all_of(signature.inputs.begin(), signature.inputs.end(), has) &&
         std::all_of(signature.outputs.begin(), signature.outputs.end(), has);
}

}  // namespace

bool NeedsCompletion(const ModelConfig& config) {
  return List(config, "input").Size() + List(config, "batch_input").Size() == 0 ||
         List(config, "output").Size() == 0;
}

bool HasBatchLayout(const Signature& signature) {
  return HaveAll(signature, [](const TensorInfo& tensor) { return tensor.has_batch_layout; });
}

bool HasBatchOf(const Signature& signature, int64_t rows) {
  return HaveAll(signature, [rows](const TensorInfo& tensor) {
    return tensor.has_rank && !tensor.dims.empty() && tensor.dims[0] == rows;
  });
}

Error Complete(const Signature& signature, int64_t max_batch_size, const std::string& model,
               ModelConfig* config) {
  const bool adds_size = config->max_batch_size() == 0;
  if (adds_size) {
    config->SetMaxBatchSize(max_batch_size);
  }
  if (config->max_batch_size() > 1 && (adds_size || HasBatchLayout(signature))) {
    backend::AddDynamicBatching(*config);
  }
  if (List(*config, "batch_input").Size() == 0) {
    NEREID_KIT_TRY(CompleteList("input", signature.inputs, model, config));
  }
  return CompleteList("output", signature.outputs, model, config);
}

}  // namespace nereid::openvino
