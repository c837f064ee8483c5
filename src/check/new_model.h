// SPDX-License-Identifier: Apache-2.0
// Puts a model file into a repository: which framework it is of, under which names, and the copy.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::check {

// Where a model file goes. A file may be a folder.
struct NewModel {
  std::string file;            // as the user named it
  config::ModelConfig config;  // name, backend, platform
  std::string folder;          // of the model
  // Files and their places in the folder; the first is the model file.
  std::vector<std::pair<std::string, std::string>> copies;
};

// Decides where `file` goes in `repository`. An empty `name` is replaced by that of the file, or of
// its folder if the file has the usual name of its framework. Fails if the file is not there or its
// kind not known.
base::Result<NewModel> PlanNewModel(const std::string& file, const std::string& repository,
                                    std::string name);

// Copies the files and writes config.pbtxt with `text`. Fails if there is one of them already,
// unless `overwrites`.
base::Status CopyFiles(const NewModel& model, bool overwrites);
base::Status WriteConfig(const NewModel& model, const std::string& text);

}  // namespace nereid::check
