// SPDX-License-Identifier: Apache-2.0
// Which instances a configuration asks for, and which of those that there are can stay when it
// changes. Pure functions. The rule of what is the same instance is Triton's
// (EquivalentInInstanceConfig): everything that its group says but the name and the count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/model_config.h"
#include "triton/core/tritonserver.h"

namespace nereid::backend_host {

// One instance to be made: what its group says of it.
struct InstanceSpec {
  std::string name;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int32_t device_id = 0;
  std::string host_policy;
  config::InstanceGroup group;  // without its name and count

  // Whether an instance that was made for the one can stand for the other.
  bool IsSameAs(const InstanceSpec& other) const {
    return device_id == other.device_id && group == other.group;
  }
};

// All instances of the groups, which are complete and valid, in their order.
base::Result<std::vector<InstanceSpec>> ListInstances(
    const std::vector<config::InstanceGroup>& groups);

// How to come from one list to another.
struct InstancePlan {
  std::vector<size_t> kept;     // of those that there are
  std::vector<size_t> removed;  // the others
  std::vector<size_t> added;    // of those that are wanted: to be made
};
InstancePlan PlanInstances(const std::vector<InstanceSpec>& present,
                           const std::vector<InstanceSpec>& wanted);

}  // namespace nereid::backend_host
