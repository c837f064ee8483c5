// SPDX-License-Identifier: Apache-2.0
// The first configuration of a model, with comments that explain it to its author.
#pragma once

#include <string>
#include <string_view>

#include "config/model_config.h"

namespace nereid::check {

// What the configuration was made from.
struct StarterOrigin {
  std::string file;     // the model file as the user named it
  std::string unknown;  // why inputs and outputs could not be told; empty if they could
};

// Returns the text of a config.pbtxt. It says what `config` says, apart from what the server adds
// to any configuration; what most models set next is there as a comment. If the tensors are not
// known, an example of them is a comment.
std::string StarterConfig(const config::ModelConfig& config, const StarterOrigin& origin);

}  // namespace nereid::check
