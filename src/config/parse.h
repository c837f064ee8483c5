// SPDX-License-Identifier: Apache-2.0
// Parsers for the formats of a model configuration. They neither fill in defaults nor validate
// values: see complete.h and validate.h.
#pragma once

#include <string_view>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

// Parses the text format of config.pbtxt. `file` is the name of the text in messages. The error
// lists every mistake as "<file>:<line>:<column>: <field>: found <...>, expected <...>".
base::Result<ModelConfig> ParseModelConfigText(std::string_view text, std::string_view file);

// Parses the JSON format (load override, a backend's completed configuration). Unknown fields are
// an error; enumerators may be in any case. `config_version` must be 1.
base::Result<ModelConfig> ParseModelConfigJson(std::string_view json, uint32_t config_version = 1);

// Parses the binary message.
base::Result<ModelConfig> ParseModelConfigProto(std::string_view bytes);

}  // namespace nereid::config
