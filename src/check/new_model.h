// SPDX-License-Identifier: Apache-2.0
// Puts a model file into a repository: which framework it is of, under which names, and the copy,
// which takes its place only when all else went well.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

// Decides where `file` goes in `repository`. Without a `name`, it is that of the file, or of its
// folder if the file has the usual name of its framework. Fails if the file is not there or empty,
// its kind not known, or the name none of a model.
base::Result<NewModel> PlanNewModel(const std::string& file, const std::string& repository,
                                    std::optional<std::string> name);

// The files of a new model, copied into a folder beside their places, where they can be tried
// before they take the places of others. Confined to one thread.
class StagedModel {
 public:
  // Copies the files. Fails if one of them, or a configuration, is there already, unless
  // `overwrites`.
  static base::Result<std::unique_ptr<StagedModel>> Create(NewModel model, bool overwrites);
  // Removes what was not installed. Folders that were made for it go as well.
  ~StagedModel();
  StagedModel(const StagedModel&) = delete;
  StagedModel& operator=(const StagedModel&) = delete;

  const NewModel& model() const { return model_; }
  // A repository with this model only, without a configuration.
  const std::string& repository() const { return staging_; }
  // Whether an error of loading names the model file.
  bool IsNamedIn(std::string_view error) const;
  // Replaces paths of the copies by those from which they come.
  std::string WithOwnPaths(std::string text) const;

  // Puts the files and config.pbtxt with `config` into their places. What was there before is
  // removed; if it fails, everything is as before. At most once.
  base::Status Install(const std::string& config);

 private:
  explicit StagedModel(NewModel model);
  base::Status Copy();
  std::string StagedPath(const std::string& target) const;

  const NewModel model_;
  const std::string staging_;
  std::vector<std::string> made_;  // folders that were not there, the innermost first
  bool is_installed_ = false;
};

}  // namespace nereid::check
