// SPDX-License-Identifier: Apache-2.0
#include "engine/model_index.h"

#include <algorithm>
#include <set>

namespace nereid::engine {
namespace {

using repository::ModelId;

// The models in the index, listed individually or per version.
std::set<ModelId> ModelsToShow(const repository::Listing& listing, const ModelTable& table) {
  std::set<ModelId> ids = listing.duplicates;
  for (const auto& [id, place] : listing.places) ids.insert(id);
  for (const auto& [id, record] : table.models()) {
    const bool is_ready = std::ranges::any_of(record->versions, [](const auto& version) {
      return version.second.state == VersionState::kReady;
    });
    if (is_ready) ids.insert(id);
  }
  return ids;
}

service::IndexEntry UnavailableEntry(const ModelId& id, std::string_view reason) {
  const std::string_view state = reason.empty() ? "" : StateName(VersionState::kUnavailable);
  return {id.name, "", std::string(state), std::string(reason)};
}

std::vector<std::string> LabelsOf(const ModelRecord& record, int64_t version) {
  std::vector<std::string> labels;
  if (record.traffic == nullptr) return labels;
  for (const auto& [label, labelled] : record.traffic->rules().labels) {
    if (labelled == version) labels.push_back(label);
  }
  return labels;
}

// Whether each version was unloaded on purpose. A model that was ready is unloaded, too, where it
// cannot be served any longer (an ensemble that has lost a part), and then the model says why.
bool IsUnloaded(const ModelRecord& record) {
  return std::ranges::all_of(record.versions, [](const auto& version) {
    return version.second.state == VersionState::kUnavailable &&
           version.second.reason == kUnloadedReason;
  });
}

}  // namespace

std::vector<service::IndexEntry> MakeIndex(const repository::Listing& listing,
                                           const ModelTable& table,
                                           const std::map<ModelId, std::string>& reasons,
                                           bool only_ready) {
  std::vector<service::IndexEntry> index;
  for (const ModelId& id : ModelsToShow(listing, table)) {
    if (listing.duplicates.contains(id)) {
      index.push_back(UnavailableEntry(id, repository::kDuplicateReason));
      continue;
    }
    const auto found = reasons.find(id);
    const std::string reason = found == reasons.end() ? "" : found->second;
    const ModelRecord* const record = table.Record(id);
    if (record != nullptr && !record->versions.empty()) {
      const bool tells_reason = !reason.empty() && IsUnloaded(*record);
      for (const auto& [number, version] : record->versions) {
        if (only_ready && version.state != VersionState::kReady) continue;
        index.push_back({id.name, std::to_string(number), std::string(StateName(version.state)),
                         tells_reason ? reason : version.reason, LabelsOf(*record, number)});
      }
    } else if (!only_ready) {
      index.push_back(UnavailableEntry(id, reason));
    }
  }
  return index;
}

}  // namespace nereid::engine
