// SPDX-License-Identifier: Apache-2.0
#include "engine/demand_errors.h"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

namespace nereid::engine {
namespace {

constexpr std::chrono::seconds kSoon{1};
// Only somebody who operates the server can help.
constexpr std::chrono::seconds kLate{60};

double InSeconds(base::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

std::string_view BudgetFlag(MemoryKind kind) {
  return kind.index == 0 ? "--model-memory-budget" : "--model-gpu-memory-budget";
}

}  // namespace

base::Status LoadFailed(std::string_view name, const base::Status& why) {
  return base::UnavailableError(
      fmt::format("model '{}' could not be loaded: {}", name, why.message()));
}

base::Status StillNotLoaded(std::string_view name, bool is_loading, base::nanoseconds waited,
                            base::nanoseconds left) {
  return base::UnavailableError(
             fmt::format("model '{}' is still {} after {:.1f} s (--load-wait-secs)", name,
                         is_loading ? "being loaded" : "waiting to be loaded", InSeconds(waited)))
      .WithRetryAfter(std::max<base::nanoseconds>(left, kSoon));
}

base::Status NoRoomYet(std::string_view name, MemoryKind kind, base::nanoseconds waited,
                       base::nanoseconds min_stay) {
  return base::UnavailableError(
             fmt::format("model '{}' is not loaded after {:.1f} s: models that are in use, or were "
                         "loaded just now, take the {} memory that it needs ({})",
                         name, InSeconds(waited), kind.name, BudgetFlag(kind)))
      .WithRetryAfter(std::max<base::nanoseconds>(min_stay, kSoon));
}

base::Status NeverFits(std::string_view name, MemoryKind kind, uint64_t bytes, uint64_t budget) {
  return base::UnavailableError(
             fmt::format("model '{}' needs {} bytes of {} memory, more than {} and pinned models "
                         "leave: the budget is {} bytes",
                         name, bytes, kind.name, BudgetFlag(kind), budget))
      .WithRetryAfter(kLate);
}

base::Status TooManyWait(std::string_view name, size_t most) {
  return base::UnavailableError(
             fmt::format(
                 "model '{}' is not loaded, and as many requests wait for models as may: {}", name,
                 most))
      .WithRetryAfter(kSoon);
}

}  // namespace nereid::engine
