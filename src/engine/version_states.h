// SPDX-License-Identifier: Apache-2.0
// The states of the model versions that were loaded or tried, and their transitions:
//
//   (none) -> LOADING -> READY -> UNLOADING -> UNAVAILABLE "unloaded"
//                    \-> UNAVAILABLE "<why>"
//
// A ready version stays ready while another one is loaded in its place. A version that is loaded
// again while the previous one is still unloading remembers that one, for requests in ensembles
// that began earlier and may still need it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/model.h"
#include "engine/model_table.h"
#include "engine/version_key.h"

namespace nereid::engine {

// The states of all versions, without any action. Thread-compatible.
class VersionStates {
 public:
  // With namespaces, a name without a namespace refers only to the models given to SetNamed.
  explicit VersionStates(bool has_namespaces);

  // Adds a model, even if its load failed.
  void AddModel(const repository::ModelId& id) { records_[id]; }
  // Forgets a model that is unloaded, if no version of it ever had a state.
  void RemoveIfEmpty(const repository::ModelId& id);
  void SetLoading(const VersionKey& key);
  void SetReady(const VersionKey& key, std::shared_ptr<core::Model> model);
  // Records a failed load. Does nothing for a version that was ready before.
  void SetFailed(const VersionKey& key, const std::string& reason);
  // Records that `model` was loaded but is dropped, because another version of the same load
  // failed.
  void SetRolledBack(const VersionKey& key, std::shared_ptr<core::Model> model);
  // Records that the version accepts no new requests, except from steps of ensembles.
  void SetUnloading(const VersionKey& key, std::shared_ptr<core::Model> model);
  // Forgets the failure of a version that is no longer wanted.
  void SetUnwanted(const VersionKey& key);
  // Records that `model` was destroyed. Returns whether a state changed.
  bool SetGone(const VersionKey& key, const core::Model& model);

  // Returns the versions of a model that have a state.
  std::vector<int64_t> VersionsOf(const repository::ModelId& id) const;
  // Sets the rules of a model; null: none.
  void SetTraffic(const repository::ModelId& id, std::shared_ptr<const Traffic> traffic) {
    records_[id].traffic = std::move(traffic);
  }
  // Returns null if the model is unknown.
  const ModelRecord* Find(const repository::ModelId& id) const;
  // Sets the models that a name without a namespace can refer to. Returns whether that is a change.
  bool SetNamed(std::set<repository::ModelId> ids);
  // Returns a copy of `before` with the current states of the models in `changed`, without those
  // that are unknown.
  std::shared_ptr<const ModelTable> MakeTable(const ModelTable& before,
                                              const std::set<repository::ModelId>& changed) const;

 private:
  VersionRecord& Record(const VersionKey& key) { return records_[key.id].versions[key.version]; }

  ModelRecords records_;
  std::optional<std::set<repository::ModelId>> named_;
};

}  // namespace nereid::engine
