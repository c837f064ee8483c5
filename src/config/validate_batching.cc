// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "config/validate_parts.h"
#include "tensor/data_type.h"

namespace nereid::config {
namespace {

void CheckPreferredSizes(const ModelConfig& config, const std::vector<int32_t>& sizes,
                         std::string_view what, const std::string& field, ErrorList& errors) {
  for (const int32_t size : sizes) {
    if (size <= 0) {
      errors.Add({kInvalid, fmt::format("{} must be positive for {}", what, config.name), field,
                  std::to_string(size), "a number >= 1", "preferred-size-range"});
    }
    if (size > config.max_batch_size) {
      errors.Add({kInvalid, fmt::format("{} must be <= max batch size for {}", what, config.name),
                  field, std::to_string(size),
                  fmt::format("at most max_batch_size {}", config.max_batch_size),
                  "preferred-size-range"});
    }
  }
}

void CheckPriorities(const ModelConfig& config, const DynamicBatching& batching,
                     ErrorList& errors) {
  const uint64_t levels = batching.priority_levels;
  if (levels == 0) return;
  const std::string range = fmt::format("[1, {}]", levels);
  const uint64_t default_level = batching.default_priority_level;
  if (default_level == 0 || default_level > levels) {
    errors.Add(
        {kInvalid,
         fmt::format("default priority level must be in range {} for {}", range, config.name),
         "dynamic_batching.default_priority_level", std::to_string(default_level),
         "a level in " + range, "priority-default"});
  }
  for (const auto& [level, policy] : batching.priority_queue_policy) {
    if (level != 0 && level <= levels) continue;
    errors.Add({kInvalid,
                fmt::format("priority queue policy must have priority level in range {} for {}",
                            range, config.name),
                fmt::format("dynamic_batching.priority_queue_policy[{}]", level),
                std::to_string(level), "a level in " + range, "priority-policy-level"});
  }
}

void CheckOrdering(const ModelConfig& config, const DynamicBatching& batching, ErrorList& errors) {
  if (!batching.preserve_ordering) return;
  if (batching.priority_levels > 1) {
    errors.Add(
        {kInvalid,
         fmt::format("Only one priority level is allowed when 'preserve_ordering' is true for "
                     "{}",
                     config.name),
         "dynamic_batching.priority_levels", std::to_string(batching.priority_levels), "0 or 1",
         "ordering-priorities"});
  }
  const auto check = [&](const QueuePolicy& policy, std::string field) {
    if (policy.default_timeout_microseconds == 0 ||
        policy.timeout_action != QueuePolicy::TimeoutAction::kDelay) {
      return;
    }
    errors.Add({kInvalid,
                fmt::format("Queue policy can not have DELAY as timeout action when "
                            "'preserve_ordering' is true for {}",
                            config.name),
                std::move(field), "DELAY", "REJECT", "ordering-delay"});
  };
  if (batching.default_queue_policy) {
    check(*batching.default_queue_policy, "dynamic_batching.default_queue_policy.timeout_action");
  }
  for (const auto& [level, policy] : batching.priority_queue_policy) {
    check(policy, fmt::format("dynamic_batching.priority_queue_policy[{}].timeout_action", level));
  }
}

// Checks the controls in one pass per kind, because their errors are ordered by kind.
class ControlCheck {
 public:
  ControlCheck(const ModelConfig& config, ErrorList& errors)
      : config_(config), inputs_(config.sequence_batching()->control_input), errors_(errors) {}

  void Run() {
    using Kind = SequenceBatching::ControlKind;
    Names();
    for (const Kind kind : {Kind::kStart, Kind::kEnd, Kind::kReady, Kind::kCorrelationId}) {
      Controls(kind);
    }
  }

 private:
  using Control = SequenceBatching::Control;

  void Add(std::string text, std::string field, std::string found, std::string expected,
           std::string_view kind) {
    errors_.Add(
        {kInvalid, std::move(text), std::move(field), std::move(found), std::move(expected), kind});
  }

  void Names() {
    std::set<std::string_view> seen;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::string field = fmt::format("sequence_batching.control_input[{}].name", i);
      const std::string& name = inputs_[i].name;
      if (name.empty()) {
        Add(fmt::format("sequence batching control tensor must have a name for {}", config_.name),
            field, "nothing", "the name of the tensor", "control-name");
      } else if (!seen.insert(name).second) {
        Add(fmt::format("sequence batching control tensor '{}' is specified for multiple control "
                        "kinds for {}",
                        name, config_.name),
            field, "'" + name + "' again", "each tensor once", "control-tensor-twice");
      }
    }
  }

  void Controls(SequenceBatching::ControlKind kind) {
    bool seen = false;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      for (size_t j = 0; j < inputs_[i].control.size(); ++j) {
        const Control& control = inputs_[i].control[j];
        if (control.kind != kind) continue;
        const std::string field =
            fmt::format("sequence_batching.control_input[{}].control[{}]", i, j);
        if (seen) {
          Add(fmt::format("sequence batching specifies multiple {} tensors for {}", KindName(kind),
                          config_.name),
              field + ".kind", fmt::format("{} again", KindName(kind)), "each kind once",
              "control-kind-twice");
        }
        seen = true;
        if (kind == SequenceBatching::ControlKind::kCorrelationId) {
          Typed(control, field);
        } else {
          Boolean(control, field);
        }
      }
    }
  }

  void Boolean(const Control& control, const std::string& field) {
    const std::array<std::pair<std::string_view, size_t>, 3> values = {
        {{"int32_false_true", control.int32_false_true.size()},
         {"fp32_false_true", control.fp32_false_true.size()},
         {"bool_false_true", control.bool_false_true.size()}}};
    const auto given = std::count_if(values.begin(), values.end(),
                                     [](const auto& value) { return value.second != 0; });
    const std::string whose = fmt::format("{} for {}", KindName(control.kind), config_.name);
    if (given == 0) {
      Add("sequence batching must specify either 'int32_false_true', 'fp32_false_true' or "
          "'bool_false_true' for " +
              whose,
          field, "nothing", "one of int32_false_true, fp32_false_true, bool_false_true",
          "control-values");
    } else if (given > 1) {
      Add("sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' "
          "and "
          "'bool_false_true' for " +
              whose,
          field, std::to_string(given), "only one of them", "control-values");
    }
    for (const auto& [name, size] : values) {
      if (size == 0 || size == 2) continue;
      Add(fmt::format("sequence batching control '{}' must have exactly 2 entries for {}", name,
                      whose),
          fmt::format("{}.{}", field, name), fmt::format("{} entries", size), "2 entries",
          "control-values");
    }
  }

  void Typed(const Control& control, const std::string& field) {
    const std::string whose = fmt::format("{} for {}", KindName(control.kind), config_.name);
    if (!control.int32_false_true.empty() || !control.fp32_false_true.empty() ||
        !control.bool_false_true.empty()) {
      Add("sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or "
          "'bool_false_true' for " +
              whose,
          field, "one of them", "data_type alone", "control-correlation-id");
    }
    using tensor::DataType;
    constexpr std::array<DataType, 5> kAllowed = {
        DataType::kUint64, DataType::kInt64, DataType::kUint32, DataType::kInt32, DataType::kBytes};
    if (std::find(kAllowed.begin(), kAllowed.end(), control.data_type) != kAllowed.end()) return;
    Add(fmt::format("unexpected data type for control {}. Allowed data types are TYPE_UINT64, "
                    "TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
                    whose),
        field + ".data_type", std::string(tensor::ConfigName(control.data_type)),
        "TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 or TYPE_STRING",
        "control-correlation-id");
  }

  const ModelConfig& config_;
  const std::vector<SequenceBatching::ControlInput>& inputs_;
  ErrorList& errors_;
};

}  // namespace

ErrorList CheckDynamicBatching(const ModelConfig& config) {
  ErrorList errors;
  const DynamicBatching& batching = *config.dynamic_batching();
  CheckPreferredSizes(config, batching.preferred_batch_size, "dynamic batching preferred size",
                      "dynamic_batching.preferred_batch_size", errors);
  CheckPriorities(config, batching, errors);
  CheckOrdering(config, batching, errors);
  return errors;
}

ErrorList CheckSequenceBatching(const ModelConfig& config) {
  ErrorList errors;
  const SequenceBatching& batching = *config.sequence_batching();
  if (config.caches_responses()) {
    errors.Add({kInvalid,
                fmt::format("Response Cache does not currently support model {} with sequence "
                            "batching scheduler. Please disable the response cache.",
                            config.name),
                "response_cache.enable", "true", "false", "cache-sequence"});
  }
  ControlCheck(config, errors).Run();
  if (const auto* oldest =
          std::get_if<SequenceBatching::StrategyOldest>(&batching.strategy_choice)) {
    CheckPreferredSizes(config, oldest->preferred_batch_size,
                        "sequence batching preferred batch size",
                        "sequence_batching.oldest.preferred_batch_size", errors);
  }
  if (const auto* direct =
          std::get_if<SequenceBatching::StrategyDirect>(&batching.strategy_choice)) {
    // The condition also refuses not-a-number.
    const float utilization = direct->minimum_slot_utilization;
    if (!(utilization >= 0.0F && utilization <= 1.0F)) {
      errors.Add({kInvalid,
                  fmt::format("sequence batching minimum slot utilization must be in range (0.0, "
                              "1.0] for {}",
                              config.name),
                  "sequence_batching.direct.minimum_slot_utilization",
                  fmt::format("{}", utilization), "a number in (0.0, 1.0]", "slot-utilization"});
    }
  }
  return errors;
}

}  // namespace nereid::config
