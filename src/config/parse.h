// SPDX-License-Identifier: Apache-2.0
// Reading a model configuration from the forms it travels in. Nothing here fills defaults or judges
// values: see complete.h and validate.h.
#pragma once

#include <string_view>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

// Reads the text format of config.pbtxt. `file` names the text in messages. The error lists every
// fault as "<file>:<line>:<column>: <field>: found <...>, expected <...>".
base::Result<ModelConfig> ParseModelConfigText(std::string_view text, std::string_view file);

// Reads the JSON form (load override, a backend's completed configuration). Unknown fields are an
// error; enumerators may be in any case. `config_version` must be 1.
base::Result<ModelConfig> ParseModelConfigJson(std::string_view json, uint32_t config_version = 1);

// Reads the binary message.
base::Result<ModelConfig> ParseModelConfigProto(std::string_view bytes);

}  // namespace nereid::config
