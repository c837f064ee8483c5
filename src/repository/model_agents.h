// SPDX-License-Identifier: Apache-2.0
// The repository agents that a configuration names: code of others that checks, decrypts or fetches
// a model's files before they are loaded. Scanning knows only this interface.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "config/model_config.h"
#include "repository/model_files.h"

namespace nereid::repository {

// Thread-safe.
class ModelAgents {
 public:
  // The configuration in a model folder; an empty one when there is none that can be read.
  using ReadConfig = std::function<config::ModelConfig(const std::string& folder)>;

  virtual ~ModelAgents() = default;
  // Tells every agent of `config`, in their order, that the model in `folder` is to be loaded. The
  // answer is where it is to be loaded from, which is `folder.path` unless an agent chose another
  // place; its files keep those of `folder` and hear for the agents how the load goes. The first
  // agent that refuses ends it with its error. `read_config` is for the agents behind one that
  // moved the model.
  virtual base::Result<LocalFolder> Load(const config::ModelConfig& config, LocalFolder folder,
                                         const ReadConfig& read_config) = 0;
};

}  // namespace nereid::repository
