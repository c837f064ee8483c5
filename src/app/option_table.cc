// SPDX-License-Identifier: Apache-2.0
// Names and order follow Triton's core/src/tritonserver.cc, TRITONSERVER_ServerNew. Rows that
// concern only CUDA are left out.
#include "app/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace nereid::app {
namespace {

std::string ModeName(engine::ControlMode mode) {
  switch (mode) {
    case engine::ControlMode::kNone:
      return "MODE_NONE";
    case engine::ControlMode::kPoll:
      return "MODE_POLL";
    case engine::ControlMode::kOnDemand:
      return "MODE_ONDEMAND";
    case engine::ControlMode::kExplicit:
      break;
  }
  return "MODE_EXPLICIT";
}

std::string Digit(bool value) { return value ? "1" : "0"; }

// Returns `names` as numbered rows.
template <typename List>
void AddList(base::TextTable& table, const char* pattern, const List& list) {
  size_t i = 0;
  for (const std::string& value : list) table.Add({fmt::format(fmt::runtime(pattern), i++), value});
}

}  // namespace

base::TextTable OptionTable(const Options& options, const service::ServerMetadata& metadata) {
  const engine::EngineOptions& engine = options.engine;
  base::TextTable table({"Option", "Value"});
  table.Add({"server_id", metadata.name});
  table.Add({"server_version", metadata.version});
  table.Add({"nereid_version", NEREID_VERSION});
  table.Add({"server_extensions", fmt::format("{}", fmt::join(metadata.extensions, " "))});
  AddList(table, "model_repository_path[{}]", engine.repository.repositories);
  table.Add({"model_control_mode", ModeName(engine.control.mode)});
  AddList(table, "startup_models_{}", engine.control.startup_models);
  table.Add({"strict_model_config", Digit(engine.repository.disable_auto_complete)});
  table.Add({"model_config_name", engine.repository.model_config_name});
  table.Add({"rate_limit", engine.limits_rate ? "EXEC_COUNT" : "OFF"});
  std::vector<std::string> limits;
  for (const auto& [device, resources] : engine.rate_limits) {
    for (const auto& [name, count] : resources) {
      limits.push_back(
          fmt::format("{{\"name\":\"{}\", \"count\":{} \"device\":{}}}", name, count, device));
    }
  }
  AddList(table, "rate_limit_resource[{}]", limits);
  table.Add({"pinned_memory_pool_byte_size", fmt::format("{}", engine.gpus.pinned_pool_bytes)});
  table.Add({"strict_readiness", Digit(engine.strict_readiness)});
  table.Add({"exit_timeout", fmt::format("{}", options.exit_timeout.count())});
  table.Add({"cache_enabled", Digit(engine.cache.is_used())});
  return table;
}

}  // namespace nereid::app
