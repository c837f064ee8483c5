// SPDX-License-Identifier: Apache-2.0
// Error texts follow Triton's core/src/model_repository_manager (GetModel) and
// server/src/common.cc.
#include "engine/model_table.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/core.h>

namespace nereid::engine {
namespace {

base::Status UnknownModel(std::string_view name) {
  return base::NotFoundError(fmt::format("Request for unknown model: '{}' is not found", name));
}

base::Status NoVersions(std::string_view name) {
  return base::NotFoundError(
      fmt::format("Request for unknown model: '{}' has no available versions", name));
}

base::Status UnknownVersion(std::string_view name, int64_t version) {
  return base::NotFoundError(
      fmt::format("Request for unknown model: '{}' version {} is not found", name, version));
}

base::Status NotReady(std::string_view name, int64_t version) {
  return base::UnavailableError(fmt::format(
      "Request for unknown model: '{}' version {} is not at ready state", name, version));
}

}  // namespace

base::Result<int64_t> ParseVersion(std::string_view text) {
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size()) {
    return base::InvalidArgumentError(
        fmt::format("failed to get model version from specified version string '{}' (details: "
                    "stol), version should be an integral value > 0",
                    text));
  }
  if (version < 0) {
    return base::InvalidArgumentError(fmt::format(
        "invalid model version specified '{}' , version should be an integral value > 0", text));
  }
  return version;
}

std::string_view StateName(VersionState state) {
  switch (state) {
    case VersionState::kUnknown:
      return "UNKNOWN";
    case VersionState::kReady:
      return "READY";
    case VersionState::kUnavailable:
      return "UNAVAILABLE";
    case VersionState::kLoading:
      return "LOADING";
    case VersionState::kUnloading:
      return "UNLOADING";
  }
  return "UNKNOWN";
}

ModelTable::Part::Part(ModelRecords records) : models(std::move(records)) {
  for (const auto& [id, record] : models) {
    Entry& entry = index[id.Text()];
    entry.record = &record;
    if (record.versions.empty()) all_ready = false;
    for (const auto& [number, version] : record.versions) {
      if (version.state == VersionState::kReady) {
        entry.latest = version.model.get();
        if (version.model->has_ready_check()) to_be_asked.push_back(version.model.get());
      } else if (version.state != VersionState::kUnloading && version.reason != kUnloadedReason) {
        all_ready = false;
      }
      if (version.model != nullptr) entry.latest_loaded = version.model.get();
    }
  }
}

ModelTable::ModelTable(const ModelTable& before, const ModelRecords& changed, const Named& named)
    : parts_(before.parts_), names_(before.names_) {
  std::map<size_t, ModelRecords> of_parts;
  bool has_new = false;
  for (const auto& [id, record] : changed) {
    const size_t part = PartOf(id.Text());
    const auto [place, is_first] = of_parts.try_emplace(part);
    if (is_first && parts_[part] != nullptr) place->second = parts_[part]->models;
    has_new |= !place->second.contains(id);
    place->second[id] = record;
  }
  for (auto& [part, models] : of_parts) {
    parts_[part] = std::make_shared<const Part>(std::move(models));
  }
  for (const auto& part : parts_) {
    if (part == nullptr) continue;
    all_ready_ &= part->all_ready;
    to_be_asked_.insert(to_be_asked_.end(), part->to_be_asked.begin(), part->to_be_asked.end());
  }
  // If no model changed, the names did.
  if (named && (has_new || changed.empty())) SetNames(*named);
}

// Hashes the end of the text, because that is where numbered models differ.
size_t ModelTable::PartOf(std::string_view id_text) {
  size_t part = id_text.size();
  for (const char c : id_text.substr(id_text.size() - std::min<size_t>(id_text.size(), 3))) {
    part = part * 10 + static_cast<unsigned char>(c);
  }
  return part % kParts;
}

const ModelTable::Entry* ModelTable::FindEntry(std::string_view id_text) const {
  const Part* const part = parts_[PartOf(id_text)].get();
  if (part == nullptr) return nullptr;
  const auto found = part->index.find(id_text);
  return found == part->index.end() ? nullptr : &found->second;
}

void ModelTable::SetNames(const std::set<repository::ModelId>& named) {
  auto names = std::make_shared<Index<std::vector<std::string>>>();
  for (const auto& [id, record] : models()) (*names)[id.name];
  for (const repository::ModelId& id : named) (*names)[id.name].push_back(id.Text());
  names_ = std::move(names);
}

std::map<repository::ModelId, const ModelRecord*> ModelTable::models() const {
  std::map<repository::ModelId, const ModelRecord*> all;
  for (const auto& part : parts_) {
    if (part == nullptr) continue;
    for (const auto& [id, record] : part->models) all.emplace(id, &record);
  }
  return all;
}

const ModelRecord* ModelTable::Record(const repository::ModelId& id) const {
  const Entry* const entry = FindEntry(id.Text());
  return entry == nullptr ? nullptr : entry->record;
}

base::Result<const ModelTable::Entry*> ModelTable::Resolve(std::string_view name) const {
  std::string_view text = name;
  if (names_) {
    const auto ids = names_->find(name);
    if (ids == names_->end()) {
      return base::InvalidArgumentError(
          fmt::format("Request for unknown model: '{}' is not found", name));
    }
    if (ids->second.empty()) {
      return base::NotFoundError(
          fmt::format("Identifier of model '{}' is not found in global map", name));
    }
    if (ids->second.size() > 1) {
      return base::InvalidArgumentError(fmt::format(
          "There are {} identifiers of model '{}' in global map, model namespace must be "
          "provided to resolve ambiguity.",
          ids->second.size(), name));
    }
    text = ids->second.front();
  }
  const Entry* const entry = FindEntry(text);
  if (entry == nullptr) return UnknownModel(text);
  return entry;
}

base::Result<core::ModelHandle> ModelTable::Find(std::string_view name,
                                                 std::string_view version) const {
  NEREID_ASSIGN_OR_RETURN(const Entry* const resolved, Resolve(name));
  const Entry& entry = *resolved;
  if (version.empty()) {
    if (entry.latest != nullptr && entry.latest->TryPin()) return core::ModelHandle(*entry.latest);
    return NoVersions(name);
  }
  NEREID_ASSIGN_OR_RETURN(const int64_t number, ParseVersion(version));
  const auto record = entry.record->versions.find(number);
  if (record == entry.record->versions.end()) return UnknownVersion(name, number);
  const VersionRecord& candidate = record->second;
  if (candidate.state != VersionState::kReady || !candidate.model->TryPin()) {
    return NotReady(name, number);
  }
  return core::ModelHandle(*candidate.model);
}

base::Result<core::ModelHandle> ModelTable::FindForStep(std::string_view id_text,
                                                        int64_t version) const {
  const Entry* const found = FindEntry(id_text);
  if (found == nullptr) return UnknownModel(id_text);
  const Entry& entry = *found;
  if (version < 0) {
    core::Model* const latest = entry.latest != nullptr ? entry.latest : entry.latest_loaded;
    if (latest != nullptr && latest->TryPin()) return core::ModelHandle(*latest);
    return NoVersions(id_text);
  }
  const auto record = entry.record->versions.find(version);
  if (record == entry.record->versions.end()) return UnknownVersion(id_text, version);
  core::Model* const model = record->second.model.get();
  if (model == nullptr || !model->TryPin()) return NotReady(id_text, version);
  return core::ModelHandle(*model);
}

std::vector<int64_t> ModelTable::ReadyVersions(std::string_view name) const {
  std::vector<int64_t> ready;
  const auto entry = Resolve(name);
  if (!entry.ok()) return ready;
  for (const auto& [number, version] : (*entry)->record->versions) {
    if (version.state == VersionState::kReady) ready.push_back(number);
  }
  return ready;
}

}  // namespace nereid::engine
