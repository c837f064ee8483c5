// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic_check.h"

#include <string>

#include <fmt/format.h>

#include "engine/traffic_rules.h"

namespace nereid::engine {
namespace {

using base::Status;

std::string ListReady(const ModelRecord& record) {
  std::string list;
  for (const auto& [number, version] : record.versions) {
    if (version.state != VersionState::kReady) continue;
    if (!list.empty()) list += ", ";
    list += std::to_string(number);
  }
  return list.empty() ? "none" : list;
}

const core::Model* FindReadyModel(const ModelRecord& record, int64_t version) {
  const auto found = record.versions.find(version);
  const bool is_ready =
      found != record.versions.end() && found->second.state == VersionState::kReady;
  return is_ready ? found->second.model.get() : nullptr;
}

Status CheckReadyVersion(const ModelRecord& record, std::string_view whose, int64_t version) {
  if (FindReadyModel(record, version) != nullptr) return base::OkStatus();
  return base::UnavailableError(
      fmt::format("the version of {} is {}, which is not at ready state; versions that are: {}",
                  whose, version, ListReady(record)));
}

// Whether requests that were prepared for one of the models can go to the other.
bool IsInterchangeable(const core::Model& a, const core::Model& b) {
  return a.is_decoupled() == b.is_decoupled();
}

Status CheckCanaryTarget(const ModelRecord& record, const service::Canary& canary) {
  NEREID_RETURN_IF_ERROR(CheckReadyVersion(record, "the canary", canary.version));
  const core::Model& model = *FindReadyModel(record, canary.version);
  for (const auto& [number, version] : record.versions) {
    if (version.state != VersionState::kReady || IsInterchangeable(*version.model, model)) continue;
    return base::UnsupportedError(fmt::format(
        "version {} is decoupled and version {} is not, so that neither can be the canary of the "
        "other",
        model.is_decoupled() ? canary.version : number,
        model.is_decoupled() ? number : canary.version));
  }
  return base::OkStatus();
}

// No version is pinned here, because the end of a pin must not come under the life cycle's lock.
const core::Model* FindShadow(const ModelRecord& record, const service::Shadow& shadow) {
  if (shadow.version) return FindReadyModel(record, *shadow.version);
  for (const auto& [number, version] : record.versions) {
    if (version.state == VersionState::kReady) return version.model.get();
  }
  return nullptr;
}

Status CheckShadowTarget(const ModelRecord& record, const service::Shadow& shadow,
                         const ModelTable& table) {
  const ModelRecord* of_shadow = &record;
  if (!shadow.model.empty()) {
    const base::Result<repository::ModelId> id = table.FindId(shadow.model);
    if (!id.ok()) return id.status().WithPrefix("the shadow: ");
    of_shadow = table.Record(*id);
  }
  const core::Model* const target = FindShadow(*of_shadow, shadow);
  if (target == nullptr)
    return CheckReadyVersion(*of_shadow, "the shadow", shadow.version.value_or(0));
  if (!target->is_decoupled()) return base::OkStatus();
  return base::UnsupportedError(
      fmt::format("the shadow, model '{}' version {}, is decoupled; answers can be compared only "
                  "if there is one for each request",
                  target->name(), target->version()));
}

Status CheckTargets(const ModelRecord& record, const service::TrafficRules& rules,
                    const service::TrafficChange& change, const ModelTable& table) {
  for (const auto& [label, version] : change.labels) {
    if (!version) continue;
    NEREID_RETURN_IF_ERROR(CheckReadyVersion(record, fmt::format("label '{}'", label), *version));
  }
  if (change.canary) NEREID_RETURN_IF_ERROR(CheckCanaryTarget(record, *rules.canary));
  if (change.shadow) return CheckShadowTarget(record, *rules.shadow, table);
  return base::OkStatus();
}

}  // namespace

base::Result<std::shared_ptr<const Traffic>> TrafficAfterChange(
    const ModelTable& table, const repository::ModelId& id, std::string_view name,
    const service::TrafficChange& change) {
  const ModelRecord& record = *table.Record(id);
  const std::shared_ptr<const Traffic>& before = record.traffic;
  const service::TrafficRules now = before == nullptr ? service::TrafficRules() : before->rules();
  base::Result<service::TrafficRules> rules = ChangedRules(now, change);
  Status status = rules.ok() ? CheckTargets(record, *rules, change, table) : rules.status();
  if (!status.ok()) return status.WithPrefix(fmt::format("model '{}': ", name));
  if (*rules == now) return before;
  return Traffic::AfterChange(*std::move(rules), before);
}

std::shared_ptr<const Traffic> TrafficAfterLoad(const repository::ModelSource& source,
                                                const ModelRecord* record) {
  const std::shared_ptr<const Traffic> before = record == nullptr ? nullptr : record->traffic;
  // Wrong rules fail the load before this; only fakes come without a configuration.
  const base::Result<service::TrafficRules> rules =
      source.config.ok() ? TrafficRulesOf(*source.config) : service::TrafficRules();
  return rules.ok() ? Traffic::AfterLoad(*rules, before) : before;
}

}  // namespace nereid::engine
