// SPDX-License-Identifier: Apache-2.0
// The states of all model versions that were ever loaded or tried, and the ways between them:
//
//   (none) -> LOADING -> READY -> UNLOADING -> UNAVAILABLE "unloaded"
//                    \-> UNAVAILABLE "<why>"
//
// A version that is ready stays so while another one is loaded in its place. A version that is
// loaded again while the one before is still being unloaded remembers that one, for requests in
// ensembles that began before and may still need it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/model.h"
#include "engine/model_table.h"
#include "engine/version_key.h"

namespace nereid::engine {

// Pure bookkeeping; thread-compatible.
class VersionStates {
 public:
  // With namespaces, a name alone means only the models that SetNamed tells.
  explicit VersionStates(bool has_namespaces);

  // A model that was tried, if only in vain.
  void AddModel(const repository::ModelId& id) { records_[id]; }
  void SetLoading(const VersionKey& key);
  void SetReady(const VersionKey& key, std::shared_ptr<core::Model> model);
  // Loading it failed. Nothing for a version that was ready before.
  void SetFailed(const VersionKey& key, const std::string& reason);
  // `model` was loaded, and is given up because another version of the same load failed.
  void SetRolledBack(const VersionKey& key, std::shared_ptr<core::Model> model);
  // It takes no new requests, but for the steps of ensembles.
  void SetUnloading(const VersionKey& key, std::shared_ptr<core::Model> model);
  // A version that failed is not asked for any more.
  void SetUnwanted(const VersionKey& key);
  // `model` is taken apart. Whether a state changed.
  bool SetGone(const VersionKey& key, const core::Model& model);

  // The versions of a model that have a state.
  std::vector<int64_t> VersionsOf(const repository::ModelId& id) const;
  // The models that a name alone can mean; whether that is new.
  bool SetNamed(std::set<repository::ModelId> ids);
  // `before`, with the models in `changed` as they are now.
  std::shared_ptr<const ModelTable> MakeTable(const ModelTable& before,
                                              const std::set<repository::ModelId>& changed) const;

 private:
  VersionRecord& Record(const VersionKey& key) { return records_[key.id].versions[key.version]; }

  ModelRecords records_;
  std::optional<std::set<repository::ModelId>> named_;
};

}  // namespace nereid::engine
