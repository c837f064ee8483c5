// SPDX-License-Identifier: Apache-2.0
// Finds the models of the repositories and reads their configurations. A scan changes nothing and
// keeps nothing: what to load, keep or unload is decided by comparing scans (see changes.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "config/model_config.h"
#include "repository/layout.h"
#include "repository/model_agents.h"
#include "repository/model_files.h"
#include "repository/model_id.h"
#include "repository/store.h"
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

struct ScanOptions {
  std::vector<std::string> repositories;  // at the start
  bool has_namespaces = false;    // models of one name in several repositories are different models
  std::string model_config_name;  // use configs/<name>.pbtxt where it exists; empty: never
  // No configuration is made up: a model without a file is an error, and its tensors must be
  // complete.
  bool disable_auto_complete = false;
  // Asked about models whose configuration names agents; null: such models cannot be loaded.
  // Outlives the scanner.
  ModelAgents* agents = nullptr;
};

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

// Thread-safe if the store is. The store must outlive the scanner.
class Scanner {
 public:
  Scanner(const Store& store, ScanOptions options);

  // An error when a repository is not a folder; to be asked once at the start.
  base::Status CheckRepositories() const;

  // Adds a repository, which may have models under other names than their folders', and takes one
  // away. Nothing is loaded or unloaded.
  base::Status Register(const std::string& repository, const NameMapping& names);
  base::Status Unregister(const std::string& repository) { return layout_.Unregister(repository); }

  Listing List() const;
  // All models of all repositories but those of `known` that did not change since: nothing is read,
  // no agent is asked and no file fetched for them. A fault of one model is in its own ModelSource.
  ScanResult ScanAll(const KnownModels& known = {}) const;

  // Where the models of that name lie: several only with namespaces. None when there is none, or
  // when it is ambiguous, which is logged. Needs a valid name.
  std::vector<ModelPlace> Find(const std::string& name) const;
  ModelTimestamp TimestampOf(const ModelPlace& place) const;
  ModelSource Examine(const ModelPlace& place, const Overrides& overrides = {}) const;

  const ScanOptions& options() const { return options_; }

 private:
  // Examine without a word in the log.
  ModelSource Look(const ModelPlace& place, const Overrides& overrides) const;
  // Whether a look at everything finds `trouble` at `place` for the first time, or another than the
  // last time; empty: none. Who polls would fill the log with one broken model.
  bool IsNewTrouble(const std::string& place, const std::string& trouble) const;
  ModelPlace PlaceIn(const std::string& repository, const std::string& name) const;
  // Brings the model to a folder of this machine and has its agents look at it; what `source` says
  // of folder and versions is then about that place.
  base::Status Prepare(ModelSource& source, const ModelPlace& place,
                       const config::ModelConfig& config) const;
  config::ModelConfig ConfigIn(const std::string& model_folder) const;
  std::string ConfigPath(const std::string& model_folder) const;
  base::Result<config::ModelConfig> ReadConfig(ModelSource& source,
                                               const Overrides& overrides) const;
  base::Result<config::ModelConfig> Finish(config::ModelConfig config,
                                           const ModelSource& source) const;
  // Of a model whose folder has `entries`.
  std::string ConfigAdvice(const ModelSource& source, const std::vector<Entry>& entries) const;
  // Adds what can be told besides the reason, once all else is known.
  void Advise(ModelSource& source) const;

  const Store& store_;
  const ScanOptions options_;
  LayoutHolder layout_;
  mutable base::Mutex told_mutex_;
  mutable std::map<std::string, std::string> told_ NEREID_GUARDED_BY(told_mutex_);  // by place
};

// The versions of `source` that its policy asks for; logs those that `specific` names in vain. An
// error when none is left. Needs source.config.ok().
base::Result<std::set<int64_t>> VersionsToServe(const ModelSource& source);

}  // namespace nereid::repository
