// SPDX-License-Identifier: Apache-2.0
#include "engine/load_limits.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "config/parse.h"
#include "engine/warm_up.h"

namespace nereid::engine {
namespace {

uint64_t CountInstances(const config::ModelConfig& config) {
  uint64_t count = 0;
  for (const config::InstanceGroup& group : config.instance_group) {
    count +=
        static_cast<uint64_t>(std::max(group.count, 1)) * std::max<uint64_t>(group.gpus.size(), 1);
  }
  return count;
}

uint64_t CountWarmUpRuns(const config::ModelConfig& config) {
  uint64_t count = 0;
  for (const config::ModelWarmup& sample : config.model_warmup) {
    count += std::max<uint64_t>(sample.count, 1);
  }
  return count;
}

// Returns how many bytes an input of a warm-up sample has, as far as the configuration tells.
uint64_t WarmUpBytes(const config::ModelWarmup::Input& input) {
  const bool is_bytes = input.data_type == tensor::DataType::kBytes;
  const bool has_file =
      std::holds_alternative<config::ModelWarmup::DataFile>(input.input_data_type);
  if (is_bytes && has_file) return 0;  // the file says
  // Without a size, the load fails for another reason.
  return WarmUpByteSize(input).value_or(0);
}

// Returns how many bytes warming up takes at most: the data of all samples, which are made at once,
// and the batch of the largest execution. UINT64_MAX if they cannot be counted.
uint64_t CountWarmUpBytes(const config::ModelConfig& config) {
  uint64_t all = 0;
  uint64_t largest = 0;
  for (const config::ModelWarmup& sample : config.model_warmup) {
    uint64_t sum = 0;
    uint64_t batch = 0;
    for (const auto& [name, input] : sample.inputs) {
      if (__builtin_add_overflow(sum, WarmUpBytes(input), &sum)) return UINT64_MAX;
    }
    if (__builtin_mul_overflow(sum, uint64_t{sample.batch_size}, &batch) ||
        __builtin_add_overflow(all, sum, &all)) {
      return UINT64_MAX;
    }
    largest = std::max(largest, batch);
  }
  return __builtin_add_overflow(all, largest, &all) ? UINT64_MAX : all;
}

base::Status CheckCount(std::string_view model, uint64_t count, std::string_view what,
                        uint64_t limit, std::string_view flag) {
  if (count <= limit) return base::OkStatus();
  return base::InvalidArgumentError(
      fmt::format("the configuration in the load request for '{}' asks for {} {}, the limit is {} "
                  "({})",
                  model, count, what, limit, flag));
}

base::Status CheckConfig(std::string_view model, const config::ModelConfig& config,
                         const core::BudgetLimits& limits) {
  NEREID_RETURN_IF_ERROR(CheckCount(model, CountInstances(config), "instances",
                                    limits.load_instances, "--max-load-instances"));
  return CheckCount(model, CountWarmUpRuns(config), "executions to warm up",
                    limits.load_warm_up_runs, "--max-load-warm-up-runs");
}

base::Status NoRoomToLoad(std::string_view model, uint64_t bytes, uint64_t limit) {
  if (bytes > limit) {
    return base::InvalidArgumentError(fmt::format(
        "the load request for '{}' brings {} bytes, the limit is {} (--max-load-memory)", model,
        bytes, limit));
  }
  return base::UnavailableError(
      fmt::format("load requests in progress leave no room for {} bytes of '{}': the limit is {} "
                  "(--max-load-memory)",
                  bytes, model, limit));
}

}  // namespace

base::Status TakeLoad(std::string_view model, const service::LoadOptions& options,
                      core::Budgets& budgets, base::BudgetGrant& grant) {
  uint64_t bytes = options.config ? options.config->size() : 0;
  for (const service::LoadOptions::File& file : options.files) bytes += file.content.size();
  const uint64_t limit = budgets.load_bytes.limit();
  // A configuration that cannot be parsed is left to the load, which says what is wrong with it.
  std::optional<config::ModelConfig> config;
  if (options.config) {
    base::Result<config::ModelConfig> parsed = config::ParseModelConfigJson(*options.config);
    if (parsed.ok()) config = *std::move(parsed);
  }
  if (config) {
    const uint64_t warm_up_bytes = CountWarmUpBytes(*config);
    NEREID_RETURN_IF_ERROR(
        CheckCount(model, warm_up_bytes, "bytes to warm up", limit, "--max-load-memory"));
    bytes += warm_up_bytes;
  }
  if (!grant.Resize(budgets.load_bytes, bytes)) return NoRoomToLoad(model, bytes, limit);
  return config ? CheckConfig(model, *config, budgets.limits) : base::OkStatus();
}

}  // namespace nereid::engine
