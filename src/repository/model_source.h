// SPDX-License-Identifier: Apache-2.0
// Models as a scan of the repositories finds them, and the arguments and results of scans.
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

// The reason in the index for models of one name in several repositories.
inline constexpr std::string_view kDuplicateReason = "model appears in two or more repositories";

// One model in a repository.
struct ModelSource {
  std::string name;
  std::string name_space;  // see ModelId
  std::string repository;  // as given by the user; empty for files that came with a request
  // A local path: repository + "/" + name, or the place of a copy, or where an agent put the model.
  std::string model_folder;
  std::string config_path;       // of the file that was read, or of the file that is missing
  bool config_provided = false;  // from a file or an override, not generated
  std::string shown_folder;      // model_folder as its user knows it, for messages
  // Advice besides the reason if the model cannot be served: which file is probably meant to be its
  // configuration, and what is in the place of its versions. Either may be empty.
  std::string config_advice;
  std::string version_advice;
  // The configuration, completed from the files and normalized, or every reason why the model
  // cannot be served.
  base::Result<config::ModelConfig> config = base::InternalError("not read");
  std::set<int64_t> versions;  // all version folders; see VersionsToServe
  ModelTimestamp timestamp;
  // Keeps model_folder in place and must be told how the load proceeds; may be null. A source that
  // is dropped without having been loaded needs no call.
  std::shared_ptr<ModelFiles> files;

  ModelId id() const { return {name_space, name}; }
};

// The place where a model was found.
struct ModelPlace {
  ModelId id;
  std::string repository;
  std::string folder;
  std::shared_ptr<ModelFiles> files;  // keeps a folder that is in no repository
  bool is_mapped = false;             // its name differs from its folder's and configuration's
};

// The parts of a load request that replace those in the repository.
struct Overrides {
  std::optional<std::string> config_json;  // replaces the configuration file
};

// What an earlier scan found out about a model.
struct KnownModel {
  std::string repository;
  ModelTimestamp timestamp;
};
using KnownModels = std::map<ModelId, KnownModel>;

// The result of a scan of all repositories.
struct ScanResult {
  // A name that is in several repositories occurs once, with kDuplicateReason as its config.
  std::map<ModelId, ModelSource> models;
  std::set<ModelId> unmodified;  // known, without changes in their folders, and therefore not read
  // The repositories that could not be listed, and why. Their models are missing above, which does
  // not mean that they are gone.
  std::map<std::string, base::Status> unreadable_repositories;
};

// The models in the repositories, without reading them.
struct Listing {
  std::map<ModelId, ModelPlace> places;
  std::set<ModelId> duplicates;  // in several repositories, so in none; not in `places`
  std::map<std::string, base::Status> unreadable_repositories;
};

// Returns the versions of `source` that its policy selects, and logs those that `specific` names
// but that do not exist. Fails if none is left. REQUIRES: source.config.ok().
base::Result<std::set<int64_t>> VersionsToServe(const ModelSource& source);

}  // namespace nereid::repository
