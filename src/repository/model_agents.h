// SPDX-License-Identifier: Apache-2.0
// The repository agents that a configuration names: plug-ins that check, decrypt or fetch a model's
// files before they are loaded. Scanning knows only this interface.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "config/model_config.h"
#include "repository/model_files.h"

namespace nereid::repository {

// All agents of the server. Thread-safe.
class ModelAgents {
 public:
  // Reads the configuration in a model folder; returns an empty one if there is none or it cannot
  // be read.
  using ReadConfig = std::function<config::ModelConfig(const std::string& folder)>;

  virtual ~ModelAgents() = default;
  // Tells every agent of `config`, in order, that the model in `folder` is about to be loaded.
  // Returns the folder to load from, which is `folder.path` unless an agent chose another one; its
  // `files` keep those of `folder` and report the outcome of the load to the agents. The first
  // agent that refuses ends the load with its error. `read_config` is used for the agents that
  // follow one that moved the model.
  virtual base::Result<LocalFolder> Load(const config::ModelConfig& config, LocalFolder folder,
                                         const ReadConfig& read_config) = 0;
};

}  // namespace nereid::repository
