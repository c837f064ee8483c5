// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/auto_complete.h"

#include <algorithm>
#include <set>

#include "backend_kit/completion.h"
#include "onnxruntime_backend/data_types.h"

namespace nereid::onnxruntime {

using backend::ArrayOf;
using backend::Error;
using backend::Find;
using backend::ModelConfig;
using backend::StrCat;

namespace {

using Allocator = rapidjson::Document::AllocatorType;

bool HasBatchDimension(const TensorInfo& tensor) {
  return !tensor.dims.empty() && tensor.dims[0] == -1;
}

bool CanBatch(const Signature& signature) {
  return std::all_of(signature.inputs.begin(), signature.inputs.end(), HasBatchDimension) &&
         std::all_of(signature.outputs.begin(), signature.outputs.end(), HasBatchDimension);
}

rapidjson::Value TensorToJson(const TensorInfo& tensor, bool batching, Allocator& allocator) {
  rapidjson::Value io(rapidjson::kObjectType);
  io.AddMember("name", rapidjson::Value(tensor.name.c_str(), allocator), allocator);
  const std::string_view type = ConfigName(tensor.type);
  io.AddMember(
      "data_type",
      rapidjson::Value(type.data(), static_cast<rapidjson::SizeType>(type.size()), allocator),
      allocator);
  rapidjson::Value dims(rapidjson::kArrayType);
  for (size_t i = batching ? 1 : 0; i < tensor.dims.size(); ++i) {
    dims.PushBack(rapidjson::Value(tensor.dims[i]), allocator);
  }
  if (dims.Empty()) {
    // A configuration can express "no dimensions" only as a reshape, and only with batching.
    dims.PushBack(rapidjson::Value(1), allocator);
    if (batching) {
      rapidjson::Value reshape(rapidjson::kObjectType);
      reshape.AddMember("shape", rapidjson::Value(rapidjson::kArrayType), allocator);
      io.AddMember("reshape", reshape, allocator);
    }
  }
  io.AddMember("dims", dims, allocator);
  return io;
}

// Returns the tensors of the model that are not in requests or responses, because another part of
// the configuration names them.
std::set<std::string> NamedElsewhere(const ModelConfig& config) {
  std::set<std::string> names;
  const auto add = [&names](std::string_view name) { names.emplace(name); };
  if (const rapidjson::Value* sequences = Find(config.json(), "sequence_batching")) {
    for (const rapidjson::Value& control : ArrayOf(*sequences, "control_input")) {
      add(backend::StringMember(control, "name"));
    }
    for (const rapidjson::Value& state : ArrayOf(*sequences, "state")) {
      add(backend::StringMember(state, "input_name"));
      add(backend::StringMember(state, "output_name"));
    }
  }
  return names;
}

void CompleteTensors(const char* key, const std::vector<TensorInfo>& tensors, ModelConfig* config) {
  rapidjson::Document& json = config->mutable_json();
  if (ArrayOf(json, key).Size() > 0) {
    return;
  }
  rapidjson::Value ios(rapidjson::kArrayType);
  const std::set<std::string> named_elsewhere = NamedElsewhere(*config);
  for (const TensorInfo& tensor : tensors) {
    if (named_elsewhere.contains(tensor.name)) {
      continue;
    }
    ios.PushBack(TensorToJson(tensor, config->max_batch_size() > 0, json.GetAllocator()),
                 json.GetAllocator());
  }
  config->SetMember(key, std::move(ios));
}

void CompleteBatching(int generated_max_batch_size, ModelConfig* config) {
  if (config->max_batch_size() == 0) {
    config->SetMaxBatchSize(generated_max_batch_size);
  }
  if (config->max_batch_size() > 1) {
    backend::AddDynamicBatching(*config);
  }
}

}  // namespace

bool NeedsCompletion(const ModelConfig& config) {
  const size_t inputs =
      ArrayOf(config.json(), "input").Size() + ArrayOf(config.json(), "batch_input").Size();
  return inputs == 0 || ArrayOf(config.json(), "output").Size() == 0;
}

Error Complete(const std::string& model_name, const Signature& signature,
               int generated_max_batch_size, ModelConfig* config) {
  if (CanBatch(signature)) {
    CompleteBatching(generated_max_batch_size, config);
  } else if (config->max_batch_size() != 0) {
    return Error::InvalidArgument(
        StrCat("autofill failed for model '", model_name,
               "': model does not support batching while non-zero max_batch_size is specified"));
  }
  if (ArrayOf(config->json(), "batch_input").Size() == 0) {
    CompleteTensors("input", signature.inputs, config);
  }
  CompleteTensors("output", signature.outputs, config);
  return {};
}

}  // namespace nereid::onnxruntime
