// SPDX-License-Identifier: Apache-2.0
#include "common/admission.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace nereid::common {
namespace {

void CountFailure(core::Model& model) {
  const uint64_t now_ns = base::NowNs();
  model.statistics().RecordFailure(core::FailureReason::kRejected, now_ns, now_ns);
}

}  // namespace

base::Status RefuseForModel(core::Budgets& budgets, core::Model& model) {
  CountFailure(model);
  budgets.requests_per_model.CountRefusal();
  return base::UnavailableError(
      fmt::format("model '{}' has {} requests in flight, the most that --max-requests-per-model "
                  "allows",
                  model.name(), budgets.limits.requests_per_model));
}

base::Status RefuseForServer(const core::Budgets& budgets, core::Model& model) {
  CountFailure(model);
  return base::UnavailableError(
      fmt::format("the server has {} requests in flight, the most that --max-requests allows",
                  budgets.requests.limit()));
}

}  // namespace nereid::common
