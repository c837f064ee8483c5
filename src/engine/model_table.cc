// SPDX-License-Identifier: Apache-2.0
// Error texts follow Triton's core/src/model_repository_manager (GetModel) and
// server/src/common.cc.
#include "engine/model_table.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/core.h>

#include "engine/traffic_rules.h"

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

base::Status UnknownLabel(std::string_view name, std::string_view label,
                          const service::TrafficRules& rules) {
  return base::NotFoundError(fmt::format("model '{}' has no version label '{}'; labels: {}", name,
                                         label, ListLabels(rules)));
}

base::Status LabelNotReady(std::string_view name, std::string_view label, int64_t version) {
  return base::UnavailableError(
      fmt::format("label '{}' of model '{}' stands for version {}, which is not at ready state",
                  label, name, version));
}

core::Model* ReadyModel(const ModelRecord& record, int64_t version) {
  const auto found = record.versions.find(version);
  const bool is_ready =
      found != record.versions.end() && found->second.state == VersionState::kReady;
  return is_ready ? found->second.model.get() : nullptr;
}

// Returns what the engine has to do with a request that has come to `model` by `label`.
uint8_t RouteOf(const core::Model& model, const Traffic& traffic, std::string_view label) {
  uint8_t route = 0;
  if (traffic.divides(label)) route |= core::ModelHandle::kIsDivided;
  if (route != 0 || traffic.has_shadow() || model.config().sequence_batching() != nullptr) {
    route |= core::ModelHandle::kFollowsRules;
  }
  return route;
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
    index[id.Text()] = MakeEntry(id, record);
    if (record.versions.empty()) all_ready = false;
    for (const auto& [number, version] : record.versions) {
      if (version.state == VersionState::kReady) {
        if (version.model->has_ready_check()) to_be_asked.push_back(version.model.get());
      } else if (version.is_missing()) {
        all_ready = false;
      }
    }
  }
}

ModelTable::Entry ModelTable::MakeEntry(const repository::ModelId& id, const ModelRecord& record) {
  Entry entry{.id = &id, .record = &record};
  core::Model* canary = nullptr;
  for (const auto& [number, version] : record.versions) {
    if (version.model != nullptr) entry.latest_loaded = version.model.get();
    if (version.state != VersionState::kReady) continue;
    const Traffic* const traffic = record.traffic.get();
    if (traffic != nullptr && traffic->rules().canary &&
        traffic->rules().canary->version == number) {
      canary = version.model.get();
    } else {
      entry.latest = version.model.get();
    }
  }
  // A canary that is the only version serves everything.
  if (entry.latest == nullptr) entry.latest = canary;
  if (record.traffic != nullptr && !record.traffic->rules().default_label.empty()) {
    const service::TrafficRules& rules = record.traffic->rules();
    const auto label = rules.labels.find(rules.default_label);
    core::Model* const model =
        label == rules.labels.end() ? nullptr : ReadyModel(record, label->second);
    if (model != nullptr) entry.latest = model;
  }
  if (record.traffic == nullptr) entry.unnamed = entry.latest;
  return entry;
}

ModelTable::ModelTable(const ModelTable& before, const ModelRecords& changed, const Named& named,
                       const std::set<repository::ModelId>& gone)
    : parts_(before.parts_), names_(before.names_) {
  std::map<size_t, ModelRecords> of_parts;
  const auto with = [&](const repository::ModelId& id) -> ModelRecords& {
    const size_t part = PartOf(id.Text());
    const auto [place, is_first] = of_parts.try_emplace(part);
    if (is_first && parts_[part] != nullptr) place->second = parts_[part]->models;
    return place->second;
  };
  bool has_other_models = false;
  for (const auto& [id, record] : changed) {
    has_other_models |= with(id).insert_or_assign(id, record).second;
  }
  for (const repository::ModelId& id : gone) {
    if (FindEntry(id.Text()) != nullptr) has_other_models |= with(id).erase(id) > 0;
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
  if (named && (has_other_models || changed.empty())) SetNames(*named);
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
    if (entry.unnamed != nullptr && entry.unnamed->TryPin()) {
      return core::ModelHandle(*entry.unnamed);
    }
    if (entry.record->traffic != nullptr) return FindByRules(entry, name, {});
    return NoVersions(name);
  }
  const base::Result<int64_t> parsed = ParseVersion(version);
  if (!parsed.ok()) [[unlikely]] {
    // No label is a number, so that none can hide one.
    if (entry.record->traffic == nullptr || !IsVersionLabel(version)) return parsed.status();
    return FindByRules(entry, name, version);
  }
  const int64_t number = *parsed;
  const auto record = entry.record->versions.find(number);
  if (record == entry.record->versions.end()) return UnknownVersion(name, number);
  const VersionRecord& candidate = record->second;
  if (candidate.state != VersionState::kReady || !candidate.model->TryPin()) {
    return NotReady(name, number);
  }
  return core::ModelHandle(*candidate.model);
}

base::Result<core::ModelHandle> ModelTable::FindByRules(const Entry& entry, std::string_view name,
                                                        std::string_view label) {
  const Traffic& traffic = *entry.record->traffic;
  const service::TrafficRules& rules = traffic.rules();
  const std::string_view followed = label.empty() ? std::string_view(rules.default_label) : label;
  core::Model* model = entry.latest;
  if (!followed.empty()) {
    const auto found = rules.labels.find(followed);
    if (found == rules.labels.end()) return UnknownLabel(name, followed, rules);
    model = ReadyModel(*entry.record, found->second);
    if (model == nullptr) return LabelNotReady(name, followed, found->second);
  }
  if (model == nullptr || !model->TryPin()) return NoVersions(name);
  core::ModelHandle handle(*model);
  handle.SetRoute(RouteOf(*model, traffic, label));
  return handle;
}

core::ModelHandle ModelTable::FindReady(std::string_view id_text, int64_t version) const {
  const Entry* const entry = FindEntry(id_text);
  core::Model* const model = entry == nullptr ? nullptr : ReadyModel(*entry->record, version);
  if (model == nullptr || !model->TryPin()) return {};
  return core::ModelHandle(*model);
}

base::Result<std::string> ModelTable::NumberOf(std::string_view name,
                                               std::string_view version) const {
  const base::Result<int64_t> parsed = ParseVersion(version);
  if (parsed.ok()) return std::string(version);
  const auto entry = Resolve(name);
  if (!entry.ok() || (*entry)->record->traffic == nullptr || !IsVersionLabel(version)) {
    return parsed.status();
  }
  const service::TrafficRules& rules = (*entry)->record->traffic->rules();
  const auto found = rules.labels.find(version);
  if (found == rules.labels.end()) return UnknownLabel(name, version, rules);
  return std::to_string(found->second);
}

base::Result<repository::ModelId> ModelTable::FindId(std::string_view name) const {
  NEREID_ASSIGN_OR_RETURN(const Entry* const entry, Resolve(name));
  return *entry->id;
}

std::shared_ptr<const Traffic> ModelTable::TrafficOf(std::string_view id_text) const {
  const Entry* const entry = FindEntry(id_text);
  return entry == nullptr ? nullptr : entry->record->traffic;
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
  const auto entry = Resolve(name);
  if (!entry.ok()) return {};
  return ReadyVersionsOf((*entry)->id->Text());
}

std::vector<int64_t> ModelTable::ReadyVersionsOf(std::string_view id_text) const {
  std::vector<int64_t> ready;
  const Entry* const entry = FindEntry(id_text);
  if (entry == nullptr) return ready;
  for (const auto& [number, version] : entry->record->versions) {
    if (version.state == VersionState::kReady) ready.push_back(number);
  }
  return ready;
}

}  // namespace nereid::engine
