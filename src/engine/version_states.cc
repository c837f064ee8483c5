// SPDX-License-Identifier: Apache-2.0
#include "engine/version_states.h"

#include <utility>

namespace nereid::engine {

VersionStates::VersionStates(bool has_namespaces) {
  if (has_namespaces) named_.emplace();
}

void VersionStates::RemoveIfEmpty(const repository::ModelId& id) {
  const auto record = records_.find(id);
  if (record != records_.end() && record->second.versions.empty()) records_.erase(record);
}

void VersionStates::SetLoading(const VersionKey& key) {
  VersionRecord& record = Record(key);
  if (record.state == VersionState::kReady) return;
  record.state = VersionState::kLoading;
  record.reason.clear();
}

void VersionStates::SetReady(const VersionKey& key, std::shared_ptr<core::Model> model) {
  Record(key) = {.state = VersionState::kReady, .reason = {}, .model = std::move(model)};
}

void VersionStates::SetFailed(const VersionKey& key, const std::string& reason) {
  VersionRecord& record = Record(key);
  if (record.state != VersionState::kLoading) return;
  record.state = VersionState::kUnavailable;
  record.reason = reason;
}

void VersionStates::SetRolledBack(const VersionKey& key, std::shared_ptr<core::Model> model) {
  VersionRecord& record = Record(key);
  if (record.state != VersionState::kLoading) return;
  record.state = VersionState::kUnloading;
  if (record.model == nullptr) record.model = std::move(model);
}

void VersionStates::SetUnloading(const VersionKey& key, std::shared_ptr<core::Model> model) {
  Record(key) = {.state = VersionState::kUnloading, .reason = {}, .model = std::move(model)};
}

void VersionStates::SetUnwanted(const VersionKey& key) {
  VersionRecord& record = Record(key);
  if (record.state == VersionState::kUnavailable) record.reason = kUnloadedReason;
}

bool VersionStates::SetGone(const VersionKey& key, const core::Model& model) {
  VersionRecord& record = Record(key);
  if (record.model.get() != &model) return false;
  record.model = nullptr;
  if (record.state == VersionState::kUnloading) {
    record.state = VersionState::kUnavailable;
    record.reason = kUnloadedReason;
  }
  return true;
}

const ModelRecord* VersionStates::Find(const repository::ModelId& id) const {
  const auto record = records_.find(id);
  return record == records_.end() ? nullptr : &record->second;
}

std::vector<int64_t> VersionStates::VersionsOf(const repository::ModelId& id) const {
  std::vector<int64_t> versions;
  const auto record = records_.find(id);
  if (record == records_.end()) return versions;
  for (const auto& [version, entry] : record->second.versions) versions.push_back(version);
  return versions;
}

bool VersionStates::SetNamed(std::set<repository::ModelId> ids) {
  if (!named_ || *named_ == ids) return false;
  named_ = std::move(ids);
  return true;
}

std::shared_ptr<const ModelTable> VersionStates::MakeTable(
    const ModelTable& before, const std::set<repository::ModelId>& changed) const {
  ModelRecords records;
  std::set<repository::ModelId> gone;
  for (const repository::ModelId& id : changed) {
    if (const auto record = records_.find(id); record != records_.end()) {
      records.insert(*record);
    } else {
      gone.insert(id);
    }
  }
  return std::make_shared<const ModelTable>(before, records, named_, gone);
}

}  // namespace nereid::engine
