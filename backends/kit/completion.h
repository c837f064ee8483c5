// SPDX-License-Identifier: Apache-2.0
// For backends that complete configurations: reads what the user wrote, and records explanations of
// the backend's decisions. On a server without the functions of nereid/backend_completion.h,
// nothing counts as written, and explanations have no effect.
#pragma once

#include <optional>
#include <string>

#include "backend_kit/config.h"
#include "nereid/backend_completion.h"

namespace nereid::backend {

// Whether the user's configuration sets max_batch_size, even as 0.
inline Result<bool> GivesMaxBatchSize(TRITONBACKEND_Model* model) {
  bool gives = false;
  if (NEREIDBACKEND_ModelGivesMaxBatchSize != nullptr) {
    NEREID_KIT_TRY(NEREIDBACKEND_ModelGivesMaxBatchSize(model, &gives));
  }
  return gives;
}

// Returns the name of a tensor that the configuration lists with as many dimensions as the model
// has: its first dimension is not left to a batch. `rank_of(name)` is the number of dimensions in
// the model as a std::optional<size_t>, nothing if there is no such tensor.
template <typename RankOf>
std::optional<std::string> ListedWithoutBatch(const ModelConfig& config, RankOf&& rank_of) {
  for (const char* key : {"input", "output"}) {
    for (const rapidjson::Value& tensor : config.tensors(key)) {
      std::string name(StringMember(tensor, "name"));
      const std::optional<size_t> rank = rank_of(name);
      if (rank && ModelDims(tensor).size() == *rank && !BoolMember(tensor, "allow_ragged_batch")) {
        return name;
      }
    }
  }
  return std::nullopt;
}

// Adds a dynamic batcher to a configuration of batches that chooses no scheduler.
inline void AddDynamicBatching(ModelConfig& config) {
  if (Find(config.json(), "sequence_batching") == nullptr &&
      Find(config.json(), "dynamic_batching") == nullptr) {
    config.SetMember("dynamic_batching", rapidjson::Value(rapidjson::kObjectType));
  }
}

// Stores a JSON object with the model version that explains the backend's decision about `subject`.
inline Error Explain(TRITONBACKEND_Model* model, const char* subject, const std::string& json) {
  if (NEREIDBACKEND_ModelExplain == nullptr) {
    return {};
  }
  return Error(NEREIDBACKEND_ModelExplain(model, subject, json.c_str()));
}

}  // namespace nereid::backend
