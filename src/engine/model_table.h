// SPDX-License-Identifier: Apache-2.0
// Every model and version that was ever loaded or tried, with its state: what requests are resolved
// against and the repository index is printed from. Immutable; a change publishes a new table,
// which shares all parts but the changed ones with the one before: a thousand models that are
// loaded one after the other cost a thousand times the same.
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
#include "repository/model_id.h"

namespace nereid::engine {

enum class VersionState { kUnknown, kReady, kUnavailable, kLoading, kUnloading };

// "READY", ...: as the repository index prints it.
std::string_view StateName(VersionState state);

// The state of one version of a model.
struct VersionRecord {
  VersionState state = VersionState::kUnknown;
  std::string reason;  // why it is not ready
  std::shared_ptr<core::Model>
      model;  // set while it is ready or unloading; shared with the life cycle
};

// The reason of a version that was ready once, and is not the server's trouble any more.
inline constexpr std::string_view kUnloadedReason = "unloaded";

// Every version of a model that was ever loaded or tried, by its number.
struct ModelRecord {
  std::map<int64_t, VersionRecord> versions;
};
using ModelRecords = std::map<repository::ModelId, ModelRecord>;

// The number that a version's text says. The error is that of every protocol.
base::Result<int64_t> ParseVersion(std::string_view text);

// The models at one moment. Immutable, so any thread may read it; pinning a model changes the
// model, not the table.
class ModelTable {
 public:
  // With namespaces, the models that a name alone can mean.
  using Named = std::optional<std::set<repository::ModelId>>;

  ModelTable() = default;
  ModelTable(const ModelTable&) = delete;
  ModelTable& operator=(const ModelTable&) = delete;
  explicit ModelTable(const ModelRecords& models, const Named& named = std::nullopt)
      : ModelTable(ModelTable(), models, named) {}
  // `before`, in which these models are as they are told here.
  ModelTable(const ModelTable& before, const ModelRecords& changed, const Named& named);

  // Pins a ready version; "" is the highest ready one.
  base::Result<core::ModelHandle> Find(std::string_view name, std::string_view version) const;
  // The same for a step of an ensemble, by ModelId::Text and with -1 for the highest; a version
  // that is unloading can be pinned as long as ensembles that contain it finish their requests.
  base::Result<core::ModelHandle> FindForStep(std::string_view id_text, int64_t version) const;
  // The versions that are ready, ascending.
  std::vector<int64_t> ReadyVersions(std::string_view name) const;
  // Whether everything that was asked for is there: every version that was not unloaded is ready.
  bool all_ready() const { return all_ready_; }
  // The ready versions whose backends are to be asked whether they really are.
  const std::vector<core::Model*>& to_be_asked() const { return to_be_asked_; }
  // All of them, in order.
  std::map<repository::ModelId, const ModelRecord*> models() const;
  // Null when it was never loaded or tried.
  const ModelRecord* Record(const repository::ModelId& id) const;

 private:
  // Looks up a std::string by a string_view, without a copy.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  // What a name in a request leads to. The pointers are null where there is no such version; the
  // record owns the models.
  struct Entry {
    const ModelRecord* record = nullptr;
    core::Model* latest = nullptr;         // the highest version that is ready
    core::Model* latest_loaded = nullptr;  // or unloading
  };
  template <typename T>
  using Index = std::unordered_map<std::string, T, Hash, std::equal_to<>>;

  // Some of the models, and what is derived from them.
  struct Part {
    explicit Part(ModelRecords records);

    const ModelRecords models;
    Index<Entry> index;  // by ModelId::Text
    bool all_ready = true;
    std::vector<core::Model*> to_be_asked;
  };
  static constexpr size_t kParts = 64;

  static size_t PartOf(std::string_view id_text);
  const Entry* FindEntry(std::string_view id_text) const;
  // The entry that a client's `name` means.
  base::Result<const Entry*> Resolve(std::string_view name) const;
  void SetNames(const std::set<repository::ModelId>& named);

  std::array<std::shared_ptr<const Part>, kParts> parts_;  // null: without models
  bool all_ready_ = true;
  std::vector<core::Model*> to_be_asked_;
  // With namespaces: the texts of the models of each name.
  std::shared_ptr<const Index<std::vector<std::string>>> names_;
};

}  // namespace nereid::engine
