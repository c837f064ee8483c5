// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/completion.h"

#include <algorithm>
#include <set>

#include "backend_kit/completion.h"
#include "backend_kit/ports.h"
#include "tensorflow_backend/types.h"

namespace nereid::tensorflow {

using backend::ArrayOf;
using backend::BoolMember;
using backend::ConfiguredName;
using backend::Error;
using backend::Find;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;
using backend::StringMember;

namespace {

using Tensors = std::map<std::string, TensorInfo>;

bool LacksType(const rapidjson::Value& io) {
  const std::string_view type = StringMember(io, "data_type");
  return type.empty() || type == "TYPE_INVALID";
}

bool LacksDims(const rapidjson::Value& io) { return ArrayOf(io, "dims").Empty(); }

std::string NameOf(const rapidjson::Value& io) { return std::string(StringMember(io, "name")); }

// Tensors of the model that other parts of the configuration name than its inputs and outputs.
std::set<std::string> NamedElsewhere(const ModelConfig& config) {
  std::set<std::string> names;
  if (const rapidjson::Value* sequences = Find(config.json(), "sequence_batching")) {
    for (const rapidjson::Value& control : ArrayOf(*sequences, "control_input")) {
      names.emplace(StringMember(control, "name"));
    }
    for (const rapidjson::Value& state : ArrayOf(*sequences, "state")) {
      names.emplace(StringMember(state, "input_name"));
      names.emplace(StringMember(state, "output_name"));
    }
  }
  for (const rapidjson::Value& input : ArrayOf(config.json(), "batch_input")) {
    for (const rapidjson::Value& target : ArrayOf(input, "target_name")) {
      names.emplace(target.GetString(), target.GetStringLength());
    }
  }
  return names;
}

// Names of the model's tensors that a list of the configuration should have and has not.
std::vector<std::string> Missing(const ModelConfig& config, const char* key,
                                 const Tensors& tensors) {
  std::set<std::string> named = NamedElsewhere(config);
  for (const rapidjson::Value& io : ArrayOf(config.json(), key)) {
    named.insert(NameOf(io));
  }
  std::vector<std::string> missing;
  for (const auto& [name, info] : tensors) {
    if (!named.contains(name)) {
      missing.push_back(name);
    }
  }
  return missing;
}

// Outputs that are not listed are not wanted, unless none is.
bool CompletesOutputs(const ModelConfig& config) {
  return ArrayOf(config.json(), "output").Empty();
}

// Fills what an entry of a list leaves out.
class EntryFiller {
 public:
  EntryFiller(const char* key, const std::string& model, ModelConfig* config)
      : key_(key), model_(model), config_(*config) {}

  Error Fill(const std::string& name, const TensorInfo& info, rapidjson::Value& io) {
    if (LacksType(io)) {
      if (OurType(info.type) == TRITONSERVER_TYPE_INVALID) {
        return Error::InvalidArgument(StrCat("unable to process ", key_, " '", name, "' for '",
                                             model_, "', unsupported datatype '",
                                             TheirName(info.type), "'"));
      }
      const std::string type = ConfiguredName(OurType(info.type));
      Set(io, "data_type", rapidjson::Value(type.c_str(), allocator()));
    }
    return LacksDims(io) ? FillDims(name, info, io) : Error();
  }

 private:
  rapidjson::Document::AllocatorType& allocator() { return config_.mutable_json().GetAllocator(); }

  void Set(rapidjson::Value& io, const char* member, rapidjson::Value value) {
    io.RemoveMember(member);
    io.AddMember(rapidjson::StringRef(member), value, allocator());
  }

  Error FillDims(const std::string& name, const TensorInfo& info, rapidjson::Value& io) {
    if (!info.has_rank || (IsScalar(info) && config_.max_batch_size() > 0)) {
      return Error::InvalidArgument(StrCat("Unable to autofill for '", model_,
                                           "': the rank of model tensor '", name,
                                           "' is 0 and dimensions are not defined"));
    }
    rapidjson::Value dims(rapidjson::kArrayType);
    for (size_t d = config_.max_batch_size() > 0 ? 1 : 0; d < info.dims.size(); ++d) {
      dims.PushBack(rapidjson::Value(info.dims[d]), allocator());
    }
    // No dimensions can only be expressed as a reshape, and only with batches.
    if (dims.Empty()) {
      dims.PushBack(rapidjson::Value(1), allocator());
      if (config_.max_batch_size() > 0) {
        rapidjson::Value reshape(rapidjson::kObjectType);
        reshape.AddMember("shape", rapidjson::Value(rapidjson::kArrayType), allocator());
        Set(io, "reshape", std::move(reshape));
      }
    }
    Set(io, "dims", std::move(dims));
    return {};
  }

  const char* const key_;
  const std::string& model_;
  ModelConfig& config_;
};

Error CompleteList(const char* key, const Tensors& tensors, bool adds, const std::string& model,
                   ModelConfig* config) {
  const std::vector<std::string> missing =
      adds ? Missing(*config, key, tensors) : std::vector<std::string>();
  rapidjson::Document& json = config->mutable_json();
  if (Find(json, key) == nullptr) {
    config->SetMember(key, rapidjson::Value(rapidjson::kArrayType));
  }
  EntryFiller filler(key, model, config);
  for (rapidjson::Value& io : json[key].GetArray()) {
    if (const auto tensor = tensors.find(NameOf(io)); tensor != tensors.end()) {
      NEREID_KIT_TRY(filler.Fill(tensor->first, tensor->second, io));
    }
  }
  for (const std::string& name : missing) {
    rapidjson::Value io(rapidjson::kObjectType);
    io.AddMember("name", rapidjson::Value(name.c_str(), json.GetAllocator()), json.GetAllocator());
    NEREID_KIT_TRY(filler.Fill(name, tensors.at(name), io));
    json[key].PushBack(io, json.GetAllocator());
  }
  return {};
}

}  // namespace

bool CanBatch(const Signature& signature) {
  return !FindUnbatched(signature) &&
         std::none_of(signature.inputs.begin(), signature.inputs.end(),
                      [](const auto& entry) { return IsScalar(entry.second); });
}

std::optional<std::string> FindUnbatched(const Signature& signature) {
  for (const Tensors* const tensors : {&signature.inputs, &signature.outputs}) {
    for (const auto& [name, info] : *tensors) {
      const bool may_be_any = tensors == &signature.inputs && IsScalar(info);
      if (info.has_rank && !may_be_any && (info.dims.empty() || info.dims[0] != -1)) {
        return name;
      }
    }
  }
  return std::nullopt;
}

Result<BatchHint> HintOf(const ModelConfig& config, const Signature& signature,
                         const std::string& model) {
  BatchHint hint = BatchHint::kNone;
  for (const char* key : {"input", "output"}) {
    const Tensors& tensors =
        key == std::string_view("input") ? signature.inputs : signature.outputs;
    for (const rapidjson::Value& io : config.tensors(key)) {
      if (BoolMember(io, "allow_ragged_batch")) {
        return BatchHint::kBatched;
      }
      const auto tensor = tensors.find(NameOf(io));
      if (LacksDims(io) || tensor == tensors.end() || tensor->second.dims.empty()) {
        continue;
      }
      const bool is_batched = backend::ModelDims(io).size() + 1 == tensor->second.dims.size();
      const BatchHint found = is_batched ? BatchHint::kBatched : BatchHint::kUnbatched;
      if (hint != BatchHint::kNone && hint != found) {
        return Error::Internal(
            StrCat("unable to autofill for '", model,
                   "', model tensor configurations are contradicting each other in terms of "
                   "whether batching is supported"));
      }
      hint = found;
    }
  }
  return hint;
}

Error Complete(const Signature& signature, const std::string& model, ModelConfig* config) {
  if (config->max_batch_size() > 1) {
    backend::AddDynamicBatching(*config);
  }
  const bool adds_outputs = CompletesOutputs(*config);
  NEREID_KIT_TRY(CompleteList("input", signature.inputs, true, model, config));
  return CompleteList("output", signature.outputs, adds_outputs, model, config);
}

}  // namespace nereid::tensorflow
