// SPDX-License-Identifier: Apache-2.0
// Writing a model configuration for clients, backends and people.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

// The JSON of GET .../config and TRITONBACKEND_ModelConfig: fields by their file names, every
// primitive printed even at its default, 64-bit integers as numbers where Triton does so and as
// strings where it does not. An entirely empty configuration is the empty string. `config_version`
// must be 1.
base::Result<std::string> ToJson(const ModelConfig& config, uint32_t config_version = 1);

// The bytes of an inference.ModelConfig message, maps in key order.
std::string SerializeToProto(const ModelConfig& config);

// The text of config.pbtxt, maps in key order.
std::string ToText(const ModelConfig& config);

}  // namespace nereid::config
