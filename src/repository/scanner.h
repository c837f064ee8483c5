// SPDX-License-Identifier: Apache-2.0
// Finds the models of the repositories and reads their configurations. A scan changes nothing and
// keeps nothing: which models to load, keep or unload follows from comparing scans (see changes.h).
#pragma once

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
#include "repository/model_scanner.h"
#include "repository/store.h"

namespace nereid::repository {

// Where models are searched for, and how their configurations are read.
struct ScanOptions {
  std::vector<std::string> repositories;  // initially
  bool has_namespaces = false;    // models of one name in several repositories are different models
  std::string model_config_name;  // use configs/<name>.pbtxt if it exists; empty: never
  // No configuration is generated: a model without a file is an error, and its tensors must be
  // complete.
  bool disable_auto_complete = false;
};

// Returns the one of a model folder's entries whose files determine the framework: the first folder
// that holds a version, or else the first that may be meant as one. Nothing if there is neither.
std::optional<std::string> FolderToInspect(const std::vector<Entry>& entries);

// The scanner. Thread-safe if the store is.
class Scanner final : public ModelScanner {
 public:
  // `agents` process models whose configuration names agents. The store and the agents outlive the
  // scanner.
  Scanner(const Store& store, ModelAgents& agents, ScanOptions options);

  // Fails if a repository is not a folder. Called once at start-up.
  base::Status CheckRepositories() const;

  // Register adds a repository, whose models may have other names than their folders; Unregister
  // removes one. Neither loads or unloads models.
  base::Status Register(const std::string& repository, const NameMapping& names);
  base::Status Unregister(const std::string& repository) { return layout_.Unregister(repository); }

  // The paths of the repositories, in the order in which they are searched.
  std::vector<std::string> repositories() const { return layout_.Get()->repositories; }
  // ScanAll finds no models of these names any more.
  void KeepOut(std::set<std::string> names);

  Listing List() const override;
  ScanResult ScanAll(const KnownModels& known = {}) const override;
  std::vector<ModelPlace> Find(const std::string& name) const override;
  ModelTimestamp TimestampOf(const ModelPlace& place) const override;
  ModelSource Examine(const ModelPlace& place, const Overrides& overrides = {}) const override;

  const ScanOptions& options() const { return options_; }

 private:
  bool IsKeptOut(const std::string& name) const;
  // Like Examine, without logging.
  ModelSource Look(const ModelPlace& place, const Overrides& overrides) const;
  // Whether the problem of a scan at `place` is new or differs from that of the previous scan;
  // `trouble` is empty if there is none. Otherwise polling would fill the log with one broken
  // model.
  bool IsNewTrouble(const std::string& place, const std::string& trouble) const;
  ModelPlace PlaceIn(const std::string& repository, const std::string& name) const;
  // Copies the model to a local folder if necessary and runs its agents. Then the folder and
  // versions of `source` are those of the result.
  base::Status Prepare(ModelSource& source, const ModelPlace& place,
                       const config::ModelConfig& config) const;
  config::ModelConfig ConfigIn(const std::string& model_folder) const;
  std::string ConfigPath(const std::string& model_folder) const;
  base::Result<config::ModelConfig> ReadConfig(ModelSource& source,
                                               const Overrides& overrides) const;
  base::Result<config::ModelConfig> Finish(config::ModelConfig config,
                                           const ModelSource& source) const;
  // Returns the advice for a model whose folder has `entries`.
  std::string ConfigAdvice(const ModelSource& source, const std::vector<Entry>& entries) const;
  // Adds the advice once everything else is known.
  void Advise(ModelSource& source) const;

  const Store& store_;
  ModelAgents& agents_;
  const ScanOptions options_;
  LayoutHolder layout_;
  mutable base::Mutex kept_out_mutex_;
  std::set<std::string> kept_out_ NEREID_GUARDED_BY(kept_out_mutex_);
  mutable base::Mutex told_mutex_;
  mutable std::map<std::string, std::string> told_ NEREID_GUARDED_BY(told_mutex_);  // by place
};

}  // namespace nereid::repository
