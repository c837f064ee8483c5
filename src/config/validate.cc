// SPDX-License-Identifier: Apache-2.0
#include "config/validate.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "config/complete.h"
#include "config/limits.h"
#include "config/validate_parts.h"

namespace nereid::config {
namespace {

// Returns the instances of all groups. Cannot overflow: the counts are below 2^31, and so is the
// number of groups.
int64_t CountInstances(const ModelConfig& config) {
  int64_t count = 0;
  for (const InstanceGroup& group : config.instance_group) {
    const auto places = static_cast<int64_t>(std::max<size_t>(group.gpus.size(), 1));
    if (places > kMaxInstances) return std::numeric_limits<int64_t>::max();
    count += std::max(group.count, 0) * places;
  }
  return count;
}

std::string Quoted(std::string_view text) { return fmt::format("'{}'", text); }

// Whether the platform belongs to the backend. An unknown backend may have any platform.
bool PlatformFits(std::string_view backend, std::string_view platform) {
  struct Pair {
    std::string_view backend;
    std::string_view platform;
  };
  constexpr std::array<Pair, 6> kPairs = {{{"tensorflow", "tensorflow_graphdef"},
                                           {"tensorflow", "tensorflow_savedmodel"},
                                           {"tensorrt", "tensorrt_plan"},
                                           {"onnxruntime", "onnxruntime_onnx"},
                                           {"pytorch", "pytorch_libtorch"},
                                           {"pytorch", "torch_aoti"}}};
  bool known = false;
  for (const Pair& pair : kPairs) {
    if (pair.backend != backend) continue;
    known = true;
    if (pair.platform == platform) return true;
  }
  return !known;
}

std::string ExpectedPlatform(std::string_view found) {
  constexpr std::array<std::string_view, 8> kPlatforms = {
      "ensemble",      "onnxruntime_onnx", "pytorch_libtorch",      "torch_aoti",
      "tensorrt_plan", "custom",           "tensorflow_savedmodel", "tensorflow_graphdef"};
  const std::string_view nearest = base::NearestName(found, kPlatforms);
  return fmt::format("one of {}{}; any backend can be named in 'backend'",
                     fmt::join(kPlatforms, ", "),
                     nearest.empty() ? "" : fmt::format(", perhaps '{}'", nearest));
}

void CheckBackend(const ModelConfig& config, ErrorList& errors) {
  const bool is_ensemble = config.platform == kEnsemblePlatform;
  if (config.backend.empty() && !is_ensemble) {
    errors.Add({kInvalid,
                fmt::format("unexpected platform type '{}' for {}", config.platform, config.name),
                "platform", Quoted(config.platform), ExpectedPlatform(config.platform),
                "platform-unknown"});
  } else if (!config.backend.empty() && is_ensemble) {
    errors.Add(
        {kInvalid,
         fmt::format("Ensemble model '{}' must have platform type '{}' and empty backend type",
                     config.name, config.platform),
         "backend", Quoted(config.backend), "no backend", "ensemble-backend"});
  }
  if (!PlatformFits(config.backend, config.platform)) {
    errors.Add({kInvalid,
                fmt::format("unexpected 'platform' and 'backend' pair, got:{}, {}", config.platform,
                            config.backend),
                "platform", Quoted(config.platform),
                fmt::format("a platform of backend '{}'", config.backend), "platform-backend"});
  }
}

void CheckBuckets(const std::vector<double>& buckets, const std::string& field, ErrorList& errors) {
  const bool is_finite = std::ranges::all_of(buckets, [](double b) { return std::isfinite(b); });
  const bool ascends = std::ranges::adjacent_find(buckets, std::greater_equal<>()) == buckets.end();
  if (is_finite && ascends) return;
  errors.Add({kInvalid,
              "histogram options must specify finite 'buckets' in strictly ascending order",
              field + ".histogram_options.buckets", fmt::format("[ {} ]", fmt::join(buckets, ", ")),
              "finite bounds, each larger than the one before", "metric-control"});
}

void CheckMetrics(const std::vector<MetricControl>& controls, ErrorList& errors) {
  for (size_t i = 0; i < controls.size(); ++i) {
    const MetricControl& control = controls[i];
    const std::string field = fmt::format("model_metrics.metric_control[{}]", i);
    if (!control.metric_family) {
      errors.Add({kInvalid, "metric control must specify 'metric_identifier'",
                  field + ".metric_identifier", "nothing", "metric_identifier { family: ... }",
                  "metric-control"});
    } else if (control.metric_family->empty()) {
      errors.Add({kInvalid, "metric identifier must specify non-empty 'family'",
                  field + ".metric_identifier.family", "''", "the name of a metric family",
                  "metric-control"});
    }
    if (!control.histogram_buckets) {
      errors.Add({kInvalid, "metric control must specify 'histogram_options'",
                  field + ".histogram_options", "nothing", "histogram_options { buckets: ... }",
                  "metric-control"});
    } else if (control.histogram_buckets->empty()) {
      errors.Add({kInvalid, "histogram options must specify non-empty 'buckets'",
                  field + ".histogram_options.buckets", "nothing", "at least one bound",
                  "metric-control"});
    } else {
      CheckBuckets(*control.histogram_buckets, field, errors);
    }
  }
}

// The tags become labels of Prometheus, after an underscore. One label with a name that is none
// makes the whole page of metrics unreadable.
void CheckMetricTags(const ModelConfig& config, ErrorList& errors) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (const auto& [key, value] : config.metric_tags) {
    if (std::ranges::all_of(key, is_allowed)) continue;
    errors.Add(
        {kInvalid,
         fmt::format("metric tag '{}' of {} cannot be the name of a label", key, config.name),
         fmt::format("metric_tags['{}']", key), Quoted(key),
         "letters without accents, digits and underscores", "metric-tag"});
  }
}

// Checks for duplicate names, because requests and backends identify tensors by name.
template <typename Tensors>
void CheckNames(const ModelConfig& config, const Tensors& tensors, std::string_view kind,
                ErrorList& errors) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].name;
    if (name.empty() || names.insert(name).second) continue;
    errors.Add({kInvalid,
                fmt::format("model {} '{}' is configured twice for {}", kind, name, config.name),
                fmt::format("{}[{}].name", kind, i), Quoted(name), "another name", "tensor-twice"});
  }
}

void CheckScheduling(const ModelConfig& config, ErrorList& errors) {
  if (config.dynamic_batching() != nullptr) errors.Append(CheckDynamicBatching(config));
  if (config.sequence_batching() != nullptr) errors.Append(CheckSequenceBatching(config));
  if (config.ensemble_scheduling() != nullptr) {
    errors.Append(CheckEnsemble(config));
  } else if (config.platform == kEnsemblePlatform) {
    errors.Add({kInvalid,
                fmt::format("ensemble scheduling must be set for ensemble {} whose platform is {}",
                            config.name, kEnsemblePlatform),
                "ensemble_scheduling", "nothing", "ensemble_scheduling { step ... }",
                "ensemble-scheduling-missing"});
  }
}

// Returns how many sequences an instance holds at the same time.
int64_t SlotsPerInstance(const ModelConfig& config) {
  const auto* oldest =
      std::get_if<SequenceBatching::StrategyOldest>(&config.sequence_batching()->strategy_choice);
  if (oldest != nullptr && oldest->max_candidate_sequences > 0) {
    return oldest->max_candidate_sequences;
  }
  return std::max(config.max_batch_size, 1);
}

void CheckSequenceSlots(const ModelConfig& config, ErrorList& errors) {
  if (config.sequence_batching() == nullptr) return;
  const int64_t slots = SlotsPerInstance(config);
  const int64_t instances = std::max<int64_t>(CountInstances(config), 1);
  // No overflow: both are below 2^32, unless there are too many instances, which is reported
  // already.
  if (instances <= kMaxInstances && slots * instances <= kMaxSequenceSlots) return;
  errors.Add({kInvalid,
              fmt::format("sequence batching of {} has room for more than {} sequences: {} in each "
                          "of {} instances",
                          config.name, kMaxSequenceSlots, slots, instances),
              "sequence_batching", std::to_string(slots),
              "fewer candidate sequences, a smaller max_batch_size, or fewer instances",
              "sequence-slots"});
}

void CheckWarmUp(const ModelConfig& config, ErrorList& errors) {
  for (size_t i = 0; i < config.model_warmup.size(); ++i) {
    const ModelWarmup& sample = config.model_warmup[i];
    const auto check = [&](const char* field, uint32_t value, uint32_t limit) {
      if (value <= limit) return;
      errors.Add({kInvalid,
                  fmt::format("warmup sample '{}' of {} has {} {}, the limit is {}", sample.name,
                              config.name, field, value, limit),
                  fmt::format("model_warmup[{}].{}", i, field), std::to_string(value),
                  fmt::format("at most {}", limit), "warm-up-limit"});
    };
    check("count", sample.count, kMaxWarmUpRuns);
    check("batch_size", sample.batch_size, kMaxWarmUpBatch);
  }
}

// Checks that a profile is named by a number >= 0; returns the text of the error otherwise.
std::string ProfileError(const InstanceGroup& group, const ModelConfig& config,
                         const std::string& profile) {
  if (profile.empty()) return "profile name must not be empty";
  int index = 0;
  const auto [end, error] = std::from_chars(profile.data(), profile.data() + profile.size(), index);
  if (error == std::errc::invalid_argument) {
    return fmt::format("unable to parse '{}': stoi", profile);
  }
  if (error == std::errc() && index >= 0) return {};
  return fmt::format(
      "instance group {} of model {} and platform {} specifies invalid profile {}. The field "
      "should "
      "contain the string representation of a non-negative integer.",
      group.name, config.name, config.platform, profile);
}

// Collects the errors about instance groups.
class GroupCheck {
 public:
  GroupCheck(const ModelConfig& config, const GpuSupport& support)
      : config_(config), support_(support) {}

  ErrorList Run() {
    if (config_.instance_group.empty()) {
      errors_.Add({kInvalid,
                   fmt::format("must specify one or more 'instance group's for {}", config_.name),
                   "instance_group", "nothing", "at least one group", "instance-group-missing"});
    }
    if (const int64_t count = CountInstances(config_); count > kMaxInstances) {
      errors_.Add({kInvalid,
                   fmt::format("instance groups of model {} have {} instances, the limit is {}",
                               config_.name, count, kMaxInstances),
                   "instance_group.count", std::to_string(count),
                   fmt::format("at most {} instances in all", kMaxInstances), "instances-limit"});
    }
    for (size_t i = 0; i < config_.instance_group.size(); ++i) {
      field_ = fmt::format("instance_group[{}]", i);
      Kind(config_.instance_group[i]);
      Profiles(config_.instance_group[i]);
    }
    return std::move(errors_);
  }

 private:
  void Kind(const InstanceGroup& group) {
    const std::string subject =
        fmt::format("instance group {} of model {}", group.name, config_.name);
    switch (group.kind) {
      case InstanceGroup::Kind::kModel:
      case InstanceGroup::Kind::kCpu:
        if (!group.gpus.empty()) {
          errors_.Add({kInvalid,
                       fmt::format("{} has kind {} but specifies one or more GPUs", subject,
                                   KindName(group.kind)),
                       field_ + ".gpus", fmt::format("[ {} ]", fmt::join(group.gpus, ", ")),
                       "no GPUs", "group-cpu-gpus"});
        }
        return;
      case InstanceGroup::Kind::kGpu:
        return Gpus(group, subject);
      case InstanceGroup::Kind::kAuto:
        break;
    }
    errors_.Add({base::StatusCode::kInternal, subject + " has unexpected kind KIND_AUTO",
                 field_ + ".kind", std::to_string(static_cast<int>(group.kind)),
                 "KIND_GPU, KIND_CPU or KIND_MODEL", "group-kind"});
  }

  void Gpus(const InstanceGroup& group, const std::string& subject) {
    if (!support_.built_with_gpus) {
      errors_.Add({kInvalid, subject + " has kind KIND_GPU but server does not support GPUs",
                   field_ + ".kind", "KIND_GPU", "KIND_CPU, KIND_MODEL or KIND_AUTO",
                   "gpu-unavailable"});
      return;
    }
    if (group.gpus.empty()) {
      errors_.Add({kInvalid,
                   subject + (support_.gpus.empty() ? " has kind KIND_GPU but no GPUs are available"
                                                    : " has kind KIND_GPU but specifies no GPUs"),
                   field_ + ".gpus", "nothing", "the GPUs to use", "gpu-unavailable"});
    }
    for (const int32_t gpu : group.gpus) {
      if (support_.gpus.count(gpu) != 0) continue;
      const std::string there = fmt::format("{}", fmt::join(support_.gpus, ", "));
      errors_.Add(
          {kInvalid,
           fmt::format(
               "{} specifies invalid or unsupported gpu id {}. GPUs with at least the minimum "
               "required CUDA compute compatibility of {:f} are: {}",
               subject, gpu, support_.min_compute_capability, there),
           field_ + ".gpus", std::to_string(gpu), "one of " + there, "gpu-unavailable"});
    }
  }

  void Profiles(const InstanceGroup& group) {
    if (group.profile.empty()) return;
    if (config_.platform != "tensorrt_plan") {
      errors_.Add(
          {kInvalid,
           fmt::format("instance group {} of model {} and platform {}specifies profile field "
                       "which is only supported for TensorRT models",
                       group.name, config_.name, config_.platform),
           field_ + ".profile", fmt::format("[ {} ]", fmt::join(group.profile, ", ")),
           "no profiles", "group-profile"});
      return;
    }
    for (const std::string& profile : group.profile) {
      std::string text = ProfileError(group, config_, profile);
      if (text.empty()) continue;
      errors_.Add({kInvalid, std::move(text), field_ + ".profile", Quoted(profile),
                   "a number >= 0 in quotes", "group-profile"});
    }
  }

  const ModelConfig& config_;
  const GpuSupport& support_;
  std::string field_;
  ErrorList errors_;
};

}  // namespace

ErrorList ModelConfigErrors(const ModelConfig& config) {
  ErrorList errors;
  if (config.name.empty()) {
    errors.Add({kInvalid, "model configuration must specify 'name'", "name", "nothing",
                "the name of the model's folder", "name-missing"});
  }
  CheckBackend(config, errors);
  if (config.max_batch_size < 0) {
    errors.Add({kInvalid,
                fmt::format("'max_batch_size' must be non-negative value for {}", config.name),
                "max_batch_size", std::to_string(config.max_batch_size), "a number >= 0",
                "batch-size-negative"});
  }
  if (!config.version_policy) {
    errors.Add({kInvalid, fmt::format("must specify 'version policy' for {}", config.name),
                "version_policy", "nothing", "latest, all or specific", "version-policy-missing"});
  }
  CheckNames(config, config.input, "input", errors);
  CheckNames(config, config.output, "output", errors);
  CheckScheduling(config, errors);
  CheckSequenceSlots(config, errors);
  CheckWarmUp(config, errors);
  if (config.is_decoupled() && config.caches_responses()) {
    errors.Add({kInvalid,
                fmt::format("Response Cache does not currently support model {} with 'decoupled' "
                            "transaction policy. Please disable the response cache.",
                            config.name),
                "response_cache.enable", "true", "false", "cache-decoupled"});
  }
  if (config.model_metrics) CheckMetrics(*config.model_metrics, errors);
  CheckMetricTags(config, errors);
  return errors;
}

base::Status ValidateModelConfig(const ModelConfig& config, std::string_view file) {
  return ModelConfigErrors(config).ToStatus(file);
}

ErrorList InstanceGroupErrors(const ModelConfig& config, const GpuSupport& support) {
  if (config.ensemble_scheduling() != nullptr) return {};
  return GroupCheck(config, support).Run();
}

base::Status ValidateInstanceGroups(const ModelConfig& config, const GpuSupport& support,
                                    std::string_view file) {
  return InstanceGroupErrors(config, support).ToStatus(file);
}

base::Status ValidateFolderName(const ModelConfig& config, std::string_view folder) {
  if (config.name == folder) return base::OkStatus();
  return base::InvalidArgumentError(
      fmt::format("unexpected directory name '{}' for model '{}', directory name must equal model "
                  "name",
                  folder, config.name));
}

}  // namespace nereid::config
