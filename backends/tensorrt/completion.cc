// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <set>

#include "backend_kit/completion.h"
#include "backend_kit/handles.h"
#include "tensorrt_backend/binding.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::ModelConfig;
using backend::StrCat;

namespace {

// What entries of the configuration say about batches.
enum class Hint { kNone, kBatched, kUnbatched };

rapidjson::Value::ConstArray List(const ModelConfig& config, const char* key) {
  return backend::ArrayOf(config.json(), key);
}

// The largest batch that one of the profiles takes.
int64_t MaxBatchSize(const Engine& engine, const std::vector<int>& profiles) {
  int64_t largest = 0;
  for (const int profile : profiles) {
    int64_t size = std::numeric_limits<int32_t>::max();
    for (const TensorInfo& tensor : engine.tensors()) {
      if (!tensor.is_input || static_cast<size_t>(profile) >= tensor.profiles.size()) {
        continue;
      }
      const ProfileRange& range = tensor.profiles[static_cast<size_t>(profile)];
      const std::span<const int64_t> sizes =
          tensor.is_shape ? std::span<const int64_t>(range.max_values) : range.max.span();
      size = std::min(size, sizes.empty() ? 0 : sizes[0]);
    }
    largest = std::max(largest, size);
  }
  return largest;
}

// One configuration that is being completed.
class Completion {
 public:
  Completion(const Engine& engine, const std::string& model, ModelConfig* config)
      : engine_(engine), model_(model), config_(*config) {}

  Error Run(const std::vector<int>& profiles) {
    NEREID_KIT_TRY(ReadHints());
    NEREID_KIT_TRY(CompleteBatchSize(MaxBatchSize(engine_, profiles)));
    NEREID_KIT_TRY(CompleteList("input", true));
    return CompleteList("output", false);
  }

 private:
  Error ReadHints() {
    for (const char* key : {"input", "output"}) {
      for (const rapidjson::Value& io : List(config_, key)) {
        if (backend::BoolMember(io, "allow_ragged_batch")) {
          hint_ = Hint::kBatched;  // only batches can be ragged
          return {};
        }
        NEREID_KIT_TRY(ReadHint(io));
      }
    }
    return {};
  }

  Error ReadHint(const rapidjson::Value& io) {
    const std::vector<int64_t> dims = backend::ModelDims(io);
    const int at = FindTensor(engine_.tensors(), backend::StringMember(io, "name"));
    if (dims.empty() || at < 0) {
      return {};
    }
    const TensorInfo& tensor = engine_.tensors()[static_cast<size_t>(at)];
    const auto engine = tensor.dims.span();
    const bool is_batched = tensor.is_shape ? !engine.empty() && engine[0] == dims[0] + 1
                                            : engine.size() == dims.size() + 1;
    if (hint_ == Hint::kBatched && !is_batched) {
      return Error::Internal(
          StrCat("unable to autofill for '", model_,
                 "', model tensor configurations are contradicting each other in terms of "
                 "whether batching is supported"));
    }
    hint_ = is_batched ? Hint::kBatched : Hint::kUnbatched;
    return {};
  }

  Error CompleteBatchSize(int64_t supported) {
    const std::string failed = StrCat("autofill failed for model '", model_, "': ");
    if (hint_ == Hint::kBatched && supported == 0) {
      return Error::Internal(
          StrCat(failed,
                 "model tensor shape configuration hints for dynamic batching but the underlying "
                 "engine doesn't support batching."));
    }
    if (hint_ == Hint::kUnbatched) {
      backend::LogWarning(StrCat("The specified dimensions in model config for ", model_,
                                 " hints that batching is unavailable"));
      supported = 0;
    }
    if (config_.max_batch_size() > supported) {
      return Error::Internal(StrCat(failed, "configuration specified max-batch ",
                                    config_.max_batch_size(),
                                    " but TensorRT engine only supports max-batch ", supported));
    }
    if (config_.max_batch_size() == 0) {
      config_.SetMaxBatchSize(supported);
    }
    if (supported > 1) {
      backend::AddDynamicBatching(config_);
    }
    return {};
  }

  // Tensors that another part of the configuration names.
  std::set<std::string, std::less<>> NamedElsewhere() const {
    std::set<std::string, std::less<>> names;
    if (const rapidjson::Value* sequences = backend::Find(config_.json(), "sequence_batching")) {
      for (const rapidjson::Value& control : backend::ArrayOf(*sequences, "control_input")) {
        names.emplace(backend::StringMember(control, "name"));
      }
      for (const rapidjson::Value& state : backend::ArrayOf(*sequences, "state")) {
        names.emplace(backend::StringMember(state, "input_name"));
        names.emplace(backend::StringMember(state, "output_name"));
      }
    }
    for (const rapidjson::Value& input : List(config_, "batch_input")) {
      for (const rapidjson::Value& target : backend::ArrayOf(input, "target_name")) {
        names.emplace(target.GetString());
      }
    }
    return names;
  }

  Error CompleteList(const char* key, bool is_input) {
    if (List(config_, key).Size() > 0) {
      for (rapidjson::Value& io : config_.mutable_json()[key].GetArray()) {
        const int at = FindTensor(engine_.tensors(), backend::StringMember(io, "name"));
        if (at >= 0) {
          NEREID_KIT_TRY(Fill(engine_.tensors()[static_cast<size_t>(at)], &io));
        }
      }
      return {};
    }
    const auto elsewhere = NamedElsewhere();
    auto& allocator = config_.mutable_json().GetAllocator();
    rapidjson::Value list(rapidjson::kArrayType);
    for (const TensorInfo& tensor : engine_.tensors()) {
      // Plans of old TensorRT append the profile to the name.
      const std::string name = tensor.name.substr(0, tensor.name.find(' '));
      if (tensor.is_input != is_input || elsewhere.contains(name)) {
        continue;
      }
      rapidjson::Value io(rapidjson::kObjectType);
      io.AddMember("name", rapidjson::Value(name.c_str(), allocator), allocator);
      NEREID_KIT_TRY(Fill(tensor, &io));
      list.PushBack(io, allocator);
    }
    config_.SetMember(key, std::move(list));
    return {};
  }

  // Adds to an entry what it lacks.
  Error Fill(const TensorInfo& tensor, rapidjson::Value* io) {
    auto& allocator = config_.mutable_json().GetAllocator();
    const std::string_view type = backend::StringMember(*io, "data_type");
    if (type.empty() || type == "TYPE_INVALID") {
      if (tensor.datatype == TRITONSERVER_TYPE_INVALID) {
        return Error::Unsupported(StrCat(tensor.is_input ? "input '" : "output '", tensor.name,
                                         "' of model '", model_,
                                         "' has a data type that no configuration can have"));
      }
      const std::string name = backend::ConfiguredName(tensor.datatype);
      Set(io, "data_type", rapidjson::Value(name.c_str(), allocator));
    }
    if (backend::ArrayOf(*io, "dims").Empty()) {
      FillDims(tensor, io);
    }
    if (!tensor.is_shape && backend::BoolMember(*io, "is_shape_tensor")) {
      return Error::InvalidArgument(
          StrCat("'", tensor.name, "' is incorrectly specified as a shape tensor."));
    }
    if (tensor.is_linear && backend::BoolMember(*io, "is_non_linear_format_io")) {
      return Error::InvalidArgument(
          StrCat("'", tensor.name,
                 "' uses a linear IO format, but 'is_non_linear_format_io' is incorrectly set to "
                 "true in the model configuration."));
    }
    Set(io, "is_shape_tensor", rapidjson::Value(tensor.is_shape));
    Set(io, "is_non_linear_format_io", rapidjson::Value(!tensor.is_linear));
    return {};
  }

  void FillDims(const TensorInfo& tensor, rapidjson::Value* io) {
    auto& allocator = config_.mutable_json().GetAllocator();
    const int64_t batch = config_.max_batch_size() > 0 ? 1 : 0;
    const auto engine = tensor.dims.span();
    rapidjson::Value dims(rapidjson::kArrayType);
    if (tensor.is_shape && !engine.empty()) {
      dims.PushBack(engine[0] - batch, allocator);  // one of the values is the batch size
    } else {
      for (size_t d = static_cast<size_t>(batch); d < engine.size(); ++d) {
        dims.PushBack(engine[d], allocator);
      }
    }
    if (dims.Empty()) {
      // A configuration cannot have no dimensions.
      dims.PushBack(1, allocator);
      rapidjson::Value reshape(rapidjson::kObjectType);
      reshape.AddMember("shape", rapidjson::Value(rapidjson::kArrayType), allocator);
      Set(io, "reshape", std::move(reshape));
    }
    Set(io, "dims", std::move(dims));
  }

  void Set(rapidjson::Value* io, const char* key, rapidjson::Value value) {
    io->RemoveMember(key);
    io->AddMember(rapidjson::StringRef(key), value, config_.mutable_json().GetAllocator());
  }

  const Engine& engine_;
  const std::string& model_;
  ModelConfig& config_;
  Hint hint_ = Hint::kNone;
};

}  // namespace

Error Complete(const Engine& engine, const std::vector<int>& profiles, const std::string& model,
               ModelConfig* config) {
  return Completion(engine, model, config).Run(profiles);
}

}  // namespace nereid::tensorrt
