// SPDX-License-Identifier: Apache-2.0
#include "backend_host/instance_plan.h"

#include <algorithm>

namespace nereid::backend_host {
namespace {

using Kind = config::InstanceGroup::Kind;

// The instances of a group on one device.
struct Placement {
  TRITONSERVER_InstanceGroupKind kind;
  int32_t device_id;
  std::string host_policy;
};

// Returns one entry for each device of the group.
base::Result<std::vector<Placement>> Placements(const config::InstanceGroup& group) {
  const auto policy = [&group](const std::string& otherwise) {
    return group.host_policy.empty() ? otherwise : group.host_policy;
  };
  std::vector<Placement> placements;
  switch (group.kind) {
    case Kind::kCpu:
      placements.push_back({TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, policy("cpu")});
      return placements;
    case Kind::kModel:
      placements.push_back({TRITONSERVER_INSTANCEGROUPKIND_MODEL, 0, policy("model")});
      return placements;
    case Kind::kGpu:
      for (const int32_t id : group.gpus) {
        placements.push_back(
            {TRITONSERVER_INSTANCEGROUPKIND_GPU, id, policy("gpu_" + std::to_string(id))});
      }
      return placements;
    case Kind::kAuto:
      break;
  }
  return base::InvalidArgumentError("instance_group kind " +
                                    std::string(config::KindName(group.kind)) + " not supported");
}

}  // namespace

base::Result<std::vector<InstanceSpec>> ListInstances(
    const std::vector<config::InstanceGroup>& groups) {
  std::vector<InstanceSpec> instances;
  for (const config::InstanceGroup& group : groups) {
    NEREID_ASSIGN_OR_RETURN(const std::vector<Placement> placements, Placements(group));
    config::InstanceGroup common = group;
    common.name.clear();
    common.count = 1;
    for (int32_t i = 0; i < group.count; ++i) {
      for (const Placement& placement : placements) {
        instances.push_back({.name = group.name + "_" + std::to_string(i),
                             .kind = placement.kind,
                             .device_id = placement.device_id,
                             .host_policy = placement.host_policy,
                             .group = common});
      }
    }
  }
  return instances;
}

InstancePlan PlanInstances(const std::vector<InstanceSpec>& present,
                           const std::vector<InstanceSpec>& wanted) {
  InstancePlan plan;
  std::vector<bool> is_kept(present.size(), false);
  for (size_t i = 0; i < wanted.size(); ++i) {
    size_t found = present.size();
    for (size_t k = 0; k < present.size() && found == present.size(); ++k) {
      if (!is_kept[k] && present[k].IsSameAs(wanted[i])) found = k;
    }
    if (found == present.size()) {
      plan.added.push_back(i);
    } else {
      is_kept[found] = true;
      plan.kept.push_back(found);
    }
  }
  for (size_t k = 0; k < present.size(); ++k) {
    if (!is_kept[k]) plan.removed.push_back(k);
  }
  return plan;
}

}  // namespace nereid::backend_host
