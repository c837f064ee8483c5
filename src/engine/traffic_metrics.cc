// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic_metrics.h"

#include <string>
#include <utility>
#include <vector>

namespace nereid::engine {
namespace {

using Kind = observe::MetricsPage::Kind;

observe::Labels NamesOf(const repository::ModelId& id) {
  observe::Labels names = {{"model", id.name}};
  if (!id.name_space.empty()) names.emplace_back("namespace", id.name_space);
  return names;
}

void AddShadowLines(observe::MetricsPage& page, const repository::ModelId& id,
                    const service::TrafficState& state) {
  const service::Shadow& shadow = *state.rules.shadow;
  observe::Labels names = NamesOf(id);
  names.emplace_back("shadow_model", shadow.model.empty() ? id.name : shadow.model);
  if (shadow.version) names.emplace_back("shadow_version", std::to_string(*shadow.version));
  const auto add = [&](const char* result, uint64_t count) {
    observe::Labels labels = names;
    labels.emplace_back("result", result);
    page.Add(observe::RenderLabels(std::move(labels)), static_cast<double>(count));
  };
  add("equal", state.shadow_counts.equal);
  add("different", state.shadow_counts.different);
  add("failed", state.shadow_counts.failed);
  add("dropped", state.shadow_counts.dropped);
}

}  // namespace

void AddTraffic(observe::MetricsPage& page, const ModelTable& table) {
  std::vector<std::pair<repository::ModelId, service::TrafficState>> states;
  for (const auto& [id, record] : table.models()) {
    if (record->traffic != nullptr) states.emplace_back(id, record->traffic->Read());
  }
  page.StartFamily("nereid_version_label", "Labels of versions; the value is always 1",
                   Kind::kGauge);
  for (const auto& [id, state] : states) {
    for (const auto& [label, version] : state.rules.labels) {
      observe::Labels labels = NamesOf(id);
      labels.emplace_back("version", std::to_string(version));
      labels.emplace_back("label", label);
      page.Add(observe::RenderLabels(std::move(labels)), 1);
    }
  }
  page.StartFamily("nereid_canary_percent",
                   "Share of the requests without a version that the version shall get, in percent",
                   Kind::kGauge);
  for (const auto& [id, state] : states) {
    if (!state.rules.canary) continue;
    observe::Labels labels = NamesOf(id);
    labels.emplace_back("version", std::to_string(state.rules.canary->version));
    page.Add(observe::RenderLabels(std::move(labels)), state.rules.canary->percent);
  }
  page.StartFamily("nereid_shadow_requests_total",
                   "Number of copies of requests for the shadow of a model, by result",
                   Kind::kCounter);
  for (const auto& [id, state] : states) {
    if (state.rules.shadow) AddShadowLines(page, id, state);
  }
}

}  // namespace nereid::engine
