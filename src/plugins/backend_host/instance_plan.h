// SPDX-License-Identifier: Apache-2.0
// The instances that a configuration requires, and which existing ones can stay when it changes.
// Pure functions. As in Triton (EquivalentInInstanceConfig), instances are the same if everything
// in their groups except name and count is equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/model_config.h"
#include "triton/core/tritonserver.h"

namespace nereid::backend_host {

// One instance to be made: its settings from the group.
struct InstanceSpec {
  std::string name;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int32_t device_id = 0;
  std::string host_policy;
  config::InstanceGroup group;  // without name and count

  // Whether an instance made for one can serve as the other.
  bool IsSameAs(const InstanceSpec& other) const {
    return device_id == other.device_id && group == other.group;
  }
};

// Lists all instances of the groups in order. REQUIRES: the groups are complete and valid.
base::Result<std::vector<InstanceSpec>> ListInstances(
    const std::vector<config::InstanceGroup>& groups);

// The steps from one list to another.
struct InstancePlan {
  std::vector<size_t> kept;     // indices of existing instances
  std::vector<size_t> removed;  // indices of the other existing instances
  std::vector<size_t> added;    // indices of wanted instances that must be made
};
InstancePlan PlanInstances(const std::vector<InstanceSpec>& present,
                           const std::vector<InstanceSpec>& wanted);

}  // namespace nereid::backend_host
