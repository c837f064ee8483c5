// SPDX-License-Identifier: Apache-2.0
// The models that were loaded or tried, and all their versions, with their states. Requests are
// resolved against it and the repository index is printed from it. Immutable: a change publishes a
// new table, which shares all unchanged parts with the previous one, so that each of a thousand
// successive loads costs the same.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "core/model.h"
#include "engine/traffic.h"
#include "repository/model_id.h"

namespace nereid::engine {

// The states of a version; version_states.h describes their transitions.
enum class VersionState { kUnknown, kReady, kUnavailable, kLoading, kUnloading };

// Returns the state as the repository index prints it: "READY", ...
std::string_view StateName(VersionState state);

// The reason of a version that was unloaded on purpose, so that it does not count as a failure.
inline constexpr std::string_view kUnloadedReason = "unloaded";

// The state of one version of a model.
struct VersionRecord {
  // Whether the version ought to be there and is not, which keeps the server from being ready.
  bool is_missing() const {
    return state != VersionState::kReady && state != VersionState::kUnloading &&
           reason != kUnloadedReason;
  }

  VersionState state = VersionState::kUnknown;
  std::string reason;  // why it is not ready
  std::shared_ptr<core::Model>
      model;  // set while it is ready or unloading; shared with the life cycle
};

// Every version of a model that was ever loaded or tried, by its number.
struct ModelRecord {
  std::map<int64_t, VersionRecord> versions;
  // Where requests go that name no version or a label; null: there are no rules.
  std::shared_ptr<const Traffic> traffic;
};
using ModelRecords = std::map<repository::ModelId, ModelRecord>;

// Parses a version number. The error text is that of every protocol.
base::Result<int64_t> ParseVersion(std::string_view text);

// The models at one moment. Immutable, so any thread may read it; pinning a model changes the
// model, not the table.
class ModelTable {
 public:
  // With namespaces: the models that a name without a namespace can refer to.
  using Named = std::optional<std::set<repository::ModelId>>;

  ModelTable() = default;
  ModelTable(const ModelTable&) = delete;
  ModelTable& operator=(const ModelTable&) = delete;
  explicit ModelTable(const ModelRecords& models, const Named& named = std::nullopt)
      : ModelTable(ModelTable(), models, named) {}
  // Copies `before`, replaces the records of `changed` and leaves out those of `gone`.
  ModelTable(const ModelTable& before, const ModelRecords& changed, const Named& named,
             const std::set<repository::ModelId>& gone = {});

  // Pins a ready version; "" is the highest ready one, or that of the model's rules. The version
  // may be a label. The handle says whether the request has to be directed.
  base::Result<core::ModelHandle> Find(std::string_view name, std::string_view version) const;
  // Pins a ready version of a model, by core::Model::id_text; nothing if it is not ready.
  core::ModelHandle FindReady(std::string_view id_text, int64_t version) const;
  // Returns the digits of a version that a client names by them or by a label, loaded or not.
  base::Result<std::string> NumberOf(std::string_view name, std::string_view version) const;
  // Returns the identity of a model that a client names, or the error of Find.
  base::Result<repository::ModelId> FindId(std::string_view name) const;
  // Returns the rules of a model, by core::Model::id_text; null if it has none.
  std::shared_ptr<const Traffic> TrafficOf(std::string_view id_text) const;
  // Pins a version for a step of an ensemble, by ModelId::Text; -1 is the highest. A version that
  // is unloading can be pinned until the ensembles that contain it have finished their requests.
  base::Result<core::ModelHandle> FindForStep(std::string_view id_text, int64_t version) const;
  // Returns the versions that are ready, ascending.
  std::vector<int64_t> ReadyVersions(std::string_view name) const;
  // Returns the ready versions of the model with this core::Model::id_text, ascending.
  std::vector<int64_t> ReadyVersionsOf(std::string_view id_text) const;
  // Whether every version that was not unloaded is ready.
  bool all_ready() const { return all_ready_; }
  // The ready versions whose backends must be asked for their readiness.
  const std::vector<core::Model*>& to_be_asked() const { return to_be_asked_; }
  // Returns all models, ordered by id.
  std::map<repository::ModelId, const ModelRecord*> models() const;
  // Returns null if the model was never loaded or tried, or was unloaded without having had a
  // version.
  const ModelRecord* Record(const repository::ModelId& id) const;

 private:
  // Looks up a std::string by a string_view, without a copy.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  // The versions that a name in a request resolves to. Pointers are null if there is no such
  // version; the record owns the models.
  struct Entry {
    const repository::ModelId* id = nullptr;
    const ModelRecord* record = nullptr;
    // The version that requests without a version get; null if no version is ready, or if the model
    // has rules. Requests to other models thus notice nothing of rules.
    core::Model* unnamed = nullptr;
    // The version that steps of ensembles get, which are not divided: that of the default label, or
    // the highest ready one but for the canary. Null if no version is ready.
    core::Model* latest = nullptr;
    core::Model* latest_loaded = nullptr;  // the highest ready or unloading version
  };
  template <typename T>
  using Index = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

  // Some of the models, and data derived from them.
  struct Part {
    explicit Part(ModelRecords records);

    const ModelRecords models;
    Index<Entry> index;  // by ModelId::Text
    bool all_ready = true;
    std::vector<core::Model*> to_be_asked;
  };
  static constexpr size_t kParts = 64;

  static Entry MakeEntry(const repository::ModelId& id, const ModelRecord& record);
  static size_t PartOf(std::string_view id_text);
  const Entry* FindEntry(std::string_view id_text) const;
  // Returns the entry that a client's `name` refers to.
  base::Result<const Entry*> Resolve(std::string_view name) const;
  static base::Result<core::ModelHandle> FindByRules(const Entry& entry, std::string_view name,
                                                     std::string_view label);
  void SetNames(const std::set<repository::ModelId>& named);

  std::array<std::shared_ptr<const Part>, kParts> parts_;  // null: without models
  bool all_ready_ = true;
  std::vector<core::Model*> to_be_asked_;
  // With namespaces: the ids, as text, of the models of each name.
  std::shared_ptr<const Index<std::vector<std::string>>> names_;
};

}  // namespace nereid::engine
