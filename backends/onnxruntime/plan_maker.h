// SPDX-License-Identifier: Apache-2.0
// Makes the plan of an execution from what its requests bring and want.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "onnxruntime_backend/gathering.h"
#include "onnxruntime_backend/plan.h"

namespace nereid::onnxruntime {

// A member of the instance that each execution reuses. Confined to the thread that executes.
class PlanMaker {
 public:
  // Both outlive this.
  PlanMaker(const Ports& ports, const Gathering& gathering)
      : ports_(ports), gathering_(gathering) {}

  // Returns what identifies the shapes and outputs of the execution, valid until the next call.
  // REQUIRES: there are members.
  std::span<const int64_t> MakeKey();
  // Makes a plan for this key, to be cached.
  backend::Result<std::unique_ptr<Plan>> NewPlan() const;

 private:
  backend::Result<PlannedInput> PlanInput(size_t i) const;
  // Adds an output to a plan that has all inputs.
  void AddOutput(size_t o, Plan& plan) const;

  const Ports& ports_;
  const Gathering& gathering_;
  std::vector<int64_t> key_;
};

}  // namespace nereid::onnxruntime
