// SPDX-License-Identifier: Apache-2.0
// A model as a look at the repositories finds it, and what such a look is asked and answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "config/model_config.h"
#include "repository/model_files.h"
#include "repository/model_id.h"
#include "repository/timestamp.h"

namespace nereid::repository {

// The index shows this reason for models of one name in several repositories.
inline constexpr std::string_view kDuplicateReason = "model appears in two or more repositories";

// One model as it lies in a repository.
struct ModelSource {
  std::string name;
  std::string name_space;  // see ModelId
  std::string repository;  // as given by the user; empty for files that came with a request
  // Of this machine: repository + "/" + name, or where a copy lies or an agent put the model.
  std::string model_folder;
  std::string config_path;       // of the file read, or that would have been
  bool config_provided = false;  // from a file or an override, not made up
  std::string shown_folder;      // model_folder as its user knows it, for messages
  // What to tell besides the reason when the model cannot be served: that a file is probably meant
  // to be its configuration, and what lies where its versions should. Both may be empty.
  std::string config_advice;
  std::string version_advice;
  // Completed from the files and normalized, or every reason why it cannot be served.
  base::Result<config::ModelConfig> config = base::InternalError("not read");
  std::set<int64_t> versions;  // of all version folders; see VersionsToServe
  ModelTimestamp timestamp;
  // Keeps model_folder in place and must be told how the load goes; null: nobody asks. A source
  // that is dropped without having been loaded needs no call.
  std::shared_ptr<ModelFiles> files;

  ModelId id() const { return {name_space, name}; }
};

// Where a model was found.
struct ModelPlace {
  ModelId id;
  std::string repository;
  std::string folder;
  std::shared_ptr<ModelFiles> files;  // what keeps a folder that is in no repository
  bool is_mapped = false;             // goes by another name than its folder's and configuration's
};

// What a load request brings along in place of what lies in the repository.
struct Overrides {
  std::optional<std::string> config_json;  // in place of the configuration file
};

// What is known of a model from an earlier look.
struct KnownModel {
  std::string repository;
  ModelTimestamp timestamp;
};
using KnownModels = std::map<ModelId, KnownModel>;

// What a scan of all repositories found.
struct ScanResult {
  // A name that several repositories have is here once, with kDuplicateReason for its config.
  std::map<ModelId, ModelSource> models;
  std::set<ModelId> unmodified;  // known, and nothing in their folders changed: not looked into
  // Repositories that could not be listed, and why. Their models are missing above, which does not
  // mean that they are gone.
  std::map<std::string, base::Status> unreadable_repositories;
};

// What lies in the repositories, without a look inside.
struct Listing {
  std::map<ModelId, ModelPlace> places;
  std::set<ModelId> duplicates;  // in several repositories, so in none; not in `places`
  std::map<std::string, base::Status> unreadable_repositories;
};

// The versions of `source` that its policy asks for; logs those that `specific` names in vain. An
// error when none is left. Needs source.config.ok().
base::Result<std::set<int64_t>> VersionsToServe(const ModelSource& source);

}  // namespace nereid::repository
