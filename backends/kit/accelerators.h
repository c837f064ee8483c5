// SPDX-License-Identifier: Apache-2.0
// The execution accelerators of a configuration (optimization.execution_accelerators).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backend_kit/config.h"

namespace nereid::backend {

// An entry of optimization.execution_accelerators. Immutable.
struct Accelerator {
  std::string name;
  std::vector<std::pair<std::string, std::string>> parameters;
};

// Returns the entries of "cpu_execution_accelerator" or "gpu_execution_accelerator".
inline std::vector<Accelerator> Accelerators(const ModelConfig& config, const char* key) {
  std::vector<Accelerator> accelerators;
  const rapidjson::Value* optimization = Find(config.json(), "optimization");
  const rapidjson::Value* all =
      optimization == nullptr ? nullptr : Find(*optimization, "execution_accelerators");
  if (all == nullptr) {
    return accelerators;
  }
  for (const rapidjson::Value& one : ArrayOf(*all, key)) {
    Accelerator accelerator{.name = std::string(StringMember(one, "name")), .parameters = {}};
    const rapidjson::Value* parameters = Find(one, "parameters");
    if (parameters != nullptr && parameters->IsObject()) {
      for (const auto& parameter : parameters->GetObject()) {
        accelerator.parameters.emplace_back(
            parameter.name.GetString(),
            parameter.value.IsString() ? parameter.value.GetString() : "");
      }
    }
    accelerators.push_back(std::move(accelerator));
  }
  return accelerators;
}

}  // namespace nereid::backend
