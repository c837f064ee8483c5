// SPDX-License-Identifier: Apache-2.0
// Prints a model configuration for clients, backends and people.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

// Returns the JSON of GET .../config and TRITONBACKEND_ModelConfig: fields by their names in files,
// every primitive printed even at its default, 64-bit integers as numbers or strings as Triton
// prints them. An entirely empty configuration is the empty string. `config_version` must be 1.
base::Result<std::string> ToJson(const ModelConfig& config, uint32_t config_version = 1);

// Returns the bytes of an inference.ModelConfig message, maps in key order.
std::string SerializeToProto(const ModelConfig& config);

// Returns the text of config.pbtxt, maps in key order.
std::string ToText(const ModelConfig& config);

}  // namespace nereid::config
