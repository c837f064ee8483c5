// SPDX-License-Identifier: Apache-2.0
#include "engine/load_limits.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "config/parse.h"

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

base::Status CheckCount(std::string_view model, uint64_t count, std::string_view what,
                        uint64_t limit, std::string_view flag) {
  if (count <= limit) return base::OkStatus();
  return base::InvalidArgumentError(
      fmt::format("the configuration in the load request for '{}' asks for {} {}, the limit is {} "
                  "({})",
                  model, count, what, limit, flag));
}

// A configuration that cannot be parsed is left to the load, which says what is wrong with it.
base::Status CheckConfig(std::string_view model, const std::string& json,
                         const core::BudgetLimits& limits) {
  const base::Result<config::ModelConfig> config = config::ParseModelConfigJson(json);
  if (!config.ok()) return base::OkStatus();
  NEREID_RETURN_IF_ERROR(CheckCount(model, CountInstances(*config), "instances",
                                    limits.load_instances, "--max-load-instances"));
  return CheckCount(model, CountWarmUpRuns(*config), "executions to warm up",
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
  if (!grant.Resize(budgets.load_bytes, bytes)) {
    return NoRoomToLoad(model, bytes, budgets.load_bytes.limit());
  }
  return options.config ? CheckConfig(model, *options.config, budgets.limits) : base::OkStatus();
}

}  // namespace nereid::engine
