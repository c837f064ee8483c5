// SPDX-License-Identifier: Apache-2.0
#include "core/budgets.h"

#include <algorithm>

#include <fmt/format.h>

namespace nereid::core {
namespace {

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kMiB = 1 << 20;

// The most connections and requests that a server takes unless it is told otherwise.
constexpr uint64_t kManyConnections = 65'536;
constexpr uint64_t kManyRequests = 65'536;
// What a connection and a small request with its response take, with much to spare.
constexpr uint64_t kBytesOfConnection = 32 * kKiB;
constexpr uint64_t kBytesOfRequest = 128 * kKiB;
constexpr uint64_t kMaxPooled = 512 * kMiB;

// One client address, or one model, does not get all there is unless it is told to.
uint64_t Share(uint64_t all) { return std::max<uint64_t>(all - all / 4, 1); }

// What connections may use; some descriptors stay for files, and for health requests beyond.
uint64_t ConnectionsFor(const base::SystemLimits& system) {
  const uint64_t kept = std::min<uint64_t>(64, system.descriptors / 4);
  return std::max<uint64_t>(system.descriptors - kept, 1);
}

void ChooseConnections(ChosenLimits& chosen, const base::SystemLimits& system) {
  BudgetLimits& limits = chosen.limits;
  const uint64_t possible = ConnectionsFor(system);
  if (limits.connections == 0) {
    limits.connections = std::clamp<uint64_t>(system.memory_bytes / kBytesOfConnection, 1,
                                              std::min(possible, kManyConnections));
  } else if (limits.connections > possible) {
    chosen.warnings.push_back(fmt::format(
        "'ulimit -n' is {}, which is enough for {} connections: --max-connections is {} "
        "instead of {}",
        system.descriptors, possible, possible, limits.connections));
    limits.connections = possible;
  }
  if (limits.connections_per_address == 0) {
    limits.connections_per_address = Share(limits.connections);
  }
}

// Budgets of memory: how large they are by default, and the flags that people set.
void ChooseMemory(ChosenLimits& chosen, const base::SystemLimits& system) {
  BudgetLimits& limits = chosen.limits;
  const uint64_t memory = system.memory_bytes;
  chosen.pool_bytes = std::min(kMaxPooled, memory / 8);
  const auto choose = [&](uint64_t& limit, uint64_t part, const char* flag) {
    if (limit == 0) limit = std::max(memory / part, kMiB);
    if (limit <= memory / 2) return;
    chosen.warnings.push_back(
        fmt::format("{} leaves {} bytes of memory, of which a budget may take "
                    "half: {} is {} instead of {}",
                    system.memory_source, memory, flag, memory / 2, limit));
    limit = memory / 2;
  };
  choose(limits.request_bytes, 4, "--max-request-memory");
  choose(limits.unsent_bytes, 8, "--max-unsent-memory");
  choose(limits.load_bytes, 4, "--max-load-memory");
}

}  // namespace

ChosenLimits ChooseLimits(const BudgetLimits& asked, const base::SystemLimits& system) {
  ChosenLimits chosen;
  chosen.limits = asked;
  ChooseConnections(chosen, system);
  ChooseMemory(chosen, system);
  BudgetLimits& limits = chosen.limits;
  if (limits.requests == 0) {
    limits.requests = std::clamp<uint64_t>(system.memory_bytes / kBytesOfRequest, 1, kManyRequests);
  }
  if (limits.requests_per_model == 0) limits.requests_per_model = Share(limits.requests);
  return chosen;
}

Budgets::Budgets(const BudgetLimits& chosen)
    : limits(chosen),
      connections(chosen.connections),
      requests(chosen.requests),
      request_bytes(chosen.request_bytes),
      unsent_bytes(chosen.unsent_bytes),
      load_bytes(chosen.load_bytes),
      connections_per_address(chosen.connections_per_address),
      requests_per_model(chosen.requests_per_model),
      resets_per_second(chosen.resets_per_second),
      control_frames_per_second(chosen.control_frames_per_second) {}

std::vector<BudgetReading> Budgets::Read() const {
  const auto amount = [](std::string_view name, const auto& budget) {
    return BudgetReading{name, budget.limit(), budget.used(), budget.refusals()};
  };
  const auto rule = [](std::string_view name, const base::Budget& budget) {
    return BudgetReading{name, budget.limit(), std::nullopt, budget.refusals()};
  };
  return {amount("connections", connections),
          rule("connections_per_address", connections_per_address),
          amount("requests", requests),
          rule("requests_per_model", requests_per_model),
          amount("request_memory", request_bytes),
          amount("unsent_memory", unsent_bytes),
          amount("load_memory", load_bytes),
          rule("http2_resets_per_second", resets_per_second),
          rule("http2_control_frames_per_second", control_frames_per_second)};
}

}  // namespace nereid::core
