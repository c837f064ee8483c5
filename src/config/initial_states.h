// SPDX-License-Identifier: Apache-2.0
// The files with the initial values of a model's implicit states.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

// Reads every `data_file` of sequence_batching.state.initial_state from the model's folder
// initial_state. The keys of the result are the names that the configuration uses. Fails if a file
// lies outside the model's folder or cannot be read.
base::Result<std::map<std::string, std::string, std::less<>>> ReadInitialStates(
    const ModelConfig& config, const std::string& model_folder);

}  // namespace nereid::config
