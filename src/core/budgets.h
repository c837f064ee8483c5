// SPDX-License-Identifier: Apache-2.0
// The budgets of one server: what all its clients together can make it hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/system_limits.h"

namespace nereid::core {

// How large the budgets are. 0: chosen from what the system lets the process use.
struct BudgetLimits {
  uint64_t connections = 0;
  uint64_t connections_per_address = 0;
  uint64_t requests = 0;            // in flight at once
  uint64_t requests_per_model = 0;  // of them
  uint64_t request_bytes = 0;       // of bodies that arrive or are in use
  uint64_t unsent_bytes = 0;        // that wait for clients that do not read
  uint64_t load_bytes = 0;          // of models in load requests in progress
  // What the configuration in a load request may ask for.
  uint64_t load_instances = 128;
  uint64_t load_warm_up_runs = 10'000;
  // Limits of each HTTP/2 connection.
  uint64_t resets_per_second = 1'000;
  uint64_t control_frames_per_second = 1'000;
};

// Limits that the system allows, and what had to be changed for that.
struct ChosenLimits {
  BudgetLimits limits;
  size_t pool_bytes = 0;  // that buffers in the pool may take
  std::vector<std::string> warnings;
};

// Chooses every limit that is 0, and reduces those that the system does not allow.
ChosenLimits ChooseLimits(const BudgetLimits& asked, const base::SystemLimits& system);

// One budget on the metrics page.
struct BudgetReading {
  std::string_view name;
  uint64_t limit = 0;
  std::optional<uint64_t> used;  // nothing for rates, and for limits of single connections
  uint64_t refusals = 0;
};

// Thread-safe.
class Budgets {
 public:
  // `limits` are those of ChooseLimits.
  explicit Budgets(const BudgetLimits& limits);

  // Returns all budgets for the metrics page.
  std::vector<BudgetReading> Read() const;

  const BudgetLimits limits;
  base::Budget connections;
  base::UnitBudget requests;
  base::Budget request_bytes;
  base::Budget unsent_bytes;
  base::Budget load_bytes;
  // These only count refusals; their users compare with the limit.
  base::Budget connections_per_address;
  base::Budget requests_per_model;
  base::Budget resets_per_second;
  base::Budget control_frames_per_second;
};

}  // namespace nereid::core
