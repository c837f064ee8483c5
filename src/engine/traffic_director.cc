// SPDX-License-Identifier: Apache-2.0
#include "engine/traffic_director.h"

#include <utility>

#include "core/model.h"

namespace nereid::engine {
namespace {

constexpr uint64_t kNoLimit = UINT64_MAX;

bool BelongsToSequence(const core::Request& request) {
  if (const auto* number = std::get_if<uint64_t>(&request.correlation_id)) return *number != 0;
  return !std::get<std::string_view>(request.correlation_id).empty();
}

// Whether what a frontend has prepared for one version suits the other as well.
bool SuitsRequestsOf(const core::Model& target, const core::Model& prepared_for) {
  return target.is_decoupled() == prepared_for.is_decoupled() &&
         target.stands_changes() == prepared_for.stands_changes() &&
         target.uses_gpu_memory() == prepared_for.uses_gpu_memory();
}

}  // namespace

void TrafficDirector::Direct(core::Request& request, const service::HeaderLookup& header) {
  const bool is_divided = request.model.is_divided();
  request.model.SetRoute(0);
  const ModelTable& table = life_cycle_.Table();
  const std::string& id_text = request.model->id_text();
  const std::shared_ptr<const Traffic> traffic = table.TrafficOf(id_text);
  if (traffic == nullptr) return;  // the model was unloaded meanwhile
  const bool is_in_sequence = BelongsToSequence(request);
  const bool continues = is_in_sequence && FollowSequence(request, table);
  const service::TrafficRules& rules = traffic->rules();
  if (!continues && is_divided && rules.canary &&
      traffic->ChoosesCanary(request.model->name(), header(rules.canary->header))) {
    MoveTo(request, table.FindReady(id_text, rules.canary->version), requests_per_model_);
  }
  // A sequence of which a shadow gets only some requests makes no sense there.
  if (!is_in_sequence && traffic->has_shadow() && traffic->ChoosesShadow()) {
    mirrors_.Begin(request, traffic);
  }
}

bool TrafficDirector::FollowSequence(core::Request& request, const ModelTable& table) const {
  if (request.model->config().sequence_batching() == nullptr) return false;
  if (request.model->scheduler().HasSequence(request.correlation_id)) return true;
  for (const int64_t version : table.ReadyVersionsOf(request.model->id_text())) {
    core::ModelHandle other = table.FindReady(request.model->id_text(), version);
    if (!other || !other->scheduler().HasSequence(request.correlation_id)) continue;
    // Elsewhere it would be an error or begin a second sequence. It has had a place at the version
    // that it leaves, so it is not one more for the server.
    MoveTo(request, std::move(other), kNoLimit);
    return true;
  }
  return false;
}

void TrafficDirector::MoveTo(core::Request& request, core::ModelHandle target, uint64_t limit) {
  if (!target || &*target == &*request.model || !SuitsRequestsOf(*target, *request.model)) return;
  const core::ModelHandle& from = request.model;
  if (from.is_request() && !target.CountAsRequest(limit, from.request_bytes())) return;
  request.model = std::move(target);
}

}  // namespace nereid::engine
