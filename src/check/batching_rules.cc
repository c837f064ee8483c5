// SPDX-License-Identifier: Apache-2.0
// Rules about schedulers, queues and instances: settings without effect, and slow ones.
#include <algorithm>

#include <fmt/format.h>

#include "check/backend_facts.h"
#include "check/rules.h"
#include "config/complete.h"
#include "config/validate.h"

namespace nereid::check {
namespace {

using config::InstanceGroup;
using config::QueuePolicy;
using config::SequenceBatching;

// From here on a delay is seen by people, and often a mistake in the unit.
constexpr uint64_t kLargeDelayUs = 100'000;
constexpr uint64_t kShortIdleUs = 1000;

void CheckDelay(uint64_t delay_us, const std::string& field, Findings& findings) {
  if (delay_us < kLargeDelayUs) return;
  findings.AtField("delay-large", field,
                   {.text = fmt::format("requests may wait for {} s before they are executed",
                                        static_cast<double>(delay_us) / 1e6),
                    .found = std::to_string(delay_us),
                    .expected = fmt::format("less than {} microseconds", kLargeDelayUs)});
}

// Checks the dynamic batcher's settings.
class DynamicCheck {
 public:
  DynamicCheck(const ModelView& model, Findings& findings)
      : model_(model), batching_(*model.config->dynamic_batching()), findings_(findings) {}

  void Run() {
    const int32_t largest = model_.config->max_batch_size;
    // The backend may choose a size that the configuration does not give.
    const bool is_final = model_.config->gives_max_batch_size || model_.is_complete;
    if (largest == 0 && is_final) {
      Add("batching-disabled", "dynamic_batching",
          {.text = "dynamic_batching has no effect, because the model does not batch",
           .found = "max_batch_size 0",
           .expected = "max_batch_size above 1"});
    } else if (largest == 1) {
      Add("batch-size-one", "dynamic_batching",
          {.text = "dynamic_batching cannot put two requests together",
           .found = "max_batch_size 1",
           .expected = "max_batch_size above 1"});
    }
    CheckDelay(batching_.max_queue_delay_microseconds,
               "dynamic_batching.max_queue_delay_microseconds", findings_);
    Preferred();
    Priorities();
    Policies();
  }

 private:
  void Add(std::string_view code, std::string_view field, Findings::What what) {
    findings_.AtField(code, field, std::move(what));
  }

  void Preferred() {
    const std::string_view field = "dynamic_batching.preferred_batch_size";
    // The size that is the default changes nothing.
    const auto& sizes = batching_.preferred_batch_size;
    const bool is_default = sizes.size() == 1 && sizes[0] == model_.config->max_batch_size;
    if (!model_.Has(field) || is_default || batching_.max_queue_delay_microseconds > 0) return;
    Add("preferred-without-delay", field,
        {.text = "without a delay, requests that wait are cut to the preferred sizes, and never "
                 "wait to reach them",
         .found = "no max_queue_delay_microseconds",
         .expected = "a delay, or no preferred sizes"});
  }

  void Priorities() {
    if (batching_.priority_levels > 0) return;
    for (const std::string_view member : {"priority_queue_policy", "default_priority_level"}) {
      const std::string field = fmt::format("dynamic_batching.{}", member);
      if (!model_.Has(field)) continue;
      Add("priority-unused", field,
          {.text = fmt::format("{} has no effect without priority_levels", member),
           .found = "no priority_levels",
           .expected = "priority_levels of at least 1"});
    }
  }

  void Policies() {
    if (batching_.default_queue_policy) {
      Policy(*batching_.default_queue_policy, "dynamic_batching.default_queue_policy");
    }
    for (const auto& [level, policy] : batching_.priority_queue_policy) {
      Policy(policy, fmt::format("dynamic_batching.priority_queue_policy[{}]", level));
    }
  }

  void Policy(const QueuePolicy& policy, const std::string& field) {
    const uint64_t timeout = policy.default_timeout_microseconds;
    const uint64_t delay = batching_.max_queue_delay_microseconds;
    const bool is_delayed = policy.timeout_action == QueuePolicy::TimeoutAction::kDelay;
    // A request's own timeout counts only if there is a default that it shortens.
    if (is_delayed && timeout == 0 && !policy.allow_timeout_override) {
      Add("timeout-unused", field + ".timeout_action",
          {.text = "no request has a timeout, so the action never happens",
           .found = "DELAY",
           .expected = "default_timeout_microseconds"});
    }
    if (!is_delayed && timeout > 0 && timeout < delay) {
      Add("timeout-before-delay", field + ".default_timeout_microseconds",
          {.text = "requests that wait for a batch are refused before the batch is closed",
           .found = std::to_string(timeout),
           .expected = fmt::format("more than the delay of {}", delay)});
    }
    const auto largest = static_cast<uint32_t>(std::max(model_.config->max_batch_size, 0));
    if (policy.max_queue_size > 0 && policy.max_queue_size < largest) {
      Add("queue-size-small", field + ".max_queue_size",
          {.text = "requests of one row each cannot fill a batch, because fewer may wait",
           .found = std::to_string(policy.max_queue_size),
           .expected = fmt::format("at least max_batch_size {}", largest)});
    }
  }

  const ModelView& model_;
  const config::DynamicBatching& batching_;
  Findings& findings_;
};

void CheckStrategy(const SequenceBatching::StrategyDirect& direct, Findings& findings) {
  const std::string field = "sequence_batching.direct";
  CheckDelay(direct.max_queue_delay_microseconds, field + ".max_queue_delay_microseconds",
             findings);
  const bool has_delay = direct.max_queue_delay_microseconds > 0;
  const bool has_share = direct.minimum_slot_utilization > 0;
  if (has_delay == has_share) return;
  findings.AtField(
      "slot-utilization-unused",
      field + (has_delay ? ".max_queue_delay_microseconds" : ".minimum_slot_utilization"),
      {.text = "nothing is delayed unless both the delay and the utilization are set",
       .found = has_delay ? "no minimum_slot_utilization" : "no max_queue_delay_microseconds",
       .expected = "both, or none"});
}

void CheckStrategy(const config::ModelConfig& config,
                   const SequenceBatching::StrategyOldest& oldest, Findings& findings) {
  const std::string field = "sequence_batching.oldest";
  CheckDelay(oldest.max_queue_delay_microseconds, field + ".max_queue_delay_microseconds",
             findings);
  if (oldest.max_candidate_sequences < 1 ||
      oldest.max_candidate_sequences >= config.max_batch_size) {
    return;
  }
  findings.AtField("sequence-candidates", field + ".max_candidate_sequences",
                   {.text = fmt::format("batches have at most {} requests, one of each sequence",
                                        oldest.max_candidate_sequences),
                    .found = std::to_string(oldest.max_candidate_sequences),
                    .expected = fmt::format("at least max_batch_size {}", config.max_batch_size)});
}

void CheckSequences(const ModelView& model, Findings& findings) {
  const SequenceBatching& batching = *model.config->sequence_batching();
  if (const auto* direct =
          std::get_if<SequenceBatching::StrategyDirect>(&batching.strategy_choice)) {
    CheckStrategy(*direct, findings);
  } else if (const auto* oldest =
                 std::get_if<SequenceBatching::StrategyOldest>(&batching.strategy_choice)) {
    CheckStrategy(*model.config, *oldest, findings);
  }
  const uint64_t idle = batching.max_sequence_idle_microseconds;
  if (idle >= kShortIdleUs) return;
  findings.AtField(
      "sequence-idle-short", "sequence_batching.max_sequence_idle_microseconds",
      {.text = fmt::format("a sequence without a request for {} microseconds is over", idle),
       .found = std::to_string(idle),
       .expected = "at least 1000 microseconds"});
}

void CheckRagged(const ModelView& model, Findings& findings) {
  const config::ModelConfig& config = *model.config;
  const bool has_batches = config.max_batch_size > 0 && (config.dynamic_batching() != nullptr ||
                                                         config.sequence_batching() != nullptr);
  const bool may_get_batches = !model.is_complete && config.max_batch_size != 1;
  if (has_batches || may_get_batches) return;
  for (size_t i = 0; i < config.input.size(); ++i) {
    if (!config.input[i].allow_ragged_batch) continue;
    findings.AtField(
        "ragged-unused", fmt::format("input[{}].allow_ragged_batch", i),
        {.text = fmt::format("requests for model '{}' are never put together", model.name),
         .found = "no batching",
         .expected = "max_batch_size and dynamic_batching"});
  }
}

}  // namespace

void CheckBatching(const ModelView& model, Findings& findings) {
  const config::ModelConfig& config = *model.config;
  if (config.dynamic_batching() != nullptr) DynamicCheck(model, findings).Run();
  if (config.sequence_batching() != nullptr) CheckSequences(model, findings);
  CheckRagged(model, findings);
  if (config.caches_responses()) {
    findings.AtField("cache-flag", "response_cache.enable",
                     {.text = "responses are cached only by a server that has a cache",
                      .found = "true",
                      .expected = "--cache-config"});
  }
}

void CheckInstances(const ModelView& model, const CheckOptions& options, Findings& findings) {
  if (model.config->ensemble_scheduling() != nullptr) return;
  for (size_t i = 0; i < model.config->instance_group.size(); ++i) {
    const InstanceGroup& group = model.config->instance_group[i];
    const std::string field = fmt::format("instance_group[{}].count", i);
    if (!model.Has(field) || group.count > 0) continue;
    findings.AtField("group-count", field,
                     {.text = "the default number of instances is made",
                      .found = std::to_string(group.count),
                      .expected = "at least 1"});
  }
  const config::ModelConfig config =
      config::NormalizeInstanceGroups(*model.config, {}, options.gpus.gpus);
  findings.Append(config::InstanceGroupErrors(config, options.gpus));
  int64_t on_cpu = 0;
  bool all_passive = true;
  for (const InstanceGroup& group : config.instance_group) {
    if (group.kind == InstanceGroup::Kind::kCpu && !group.passive) on_cpu += group.count;
    all_passive = all_passive && group.passive;
  }
  if (options.cpus > 0 && std::cmp_greater(on_cpu, std::max(options.cpus, 2U))) {
    findings.AtField("instances-many", "instance_group",
                     {.text = fmt::format("{} instances share {} CPUs", on_cpu, options.cpus),
                      .found = std::to_string(on_cpu),
                      .expected = fmt::format("at most {}", options.cpus)});
  }
  if (all_passive) {
    findings.AtField("group-all-passive", "instance_group",
                     {.text = fmt::format("no instance of model '{}' takes requests", model.name),
                      .found = "passive: true",
                      .expected = "a group that is not passive"});
  }
}

}  // namespace nereid::check
