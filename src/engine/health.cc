// SPDX-License-Identifier: Apache-2.0
#include "engine/health.h"

#include <algorithm>

#include <fmt/format.h>

namespace nereid::engine {
namespace {

using base::Watchdog;
using observe::MetricsPage;

// The kinds of threads without which nothing is served; kinds of instances concern their model.
constexpr std::string_view kReactor = "reactor";
constexpr std::string_view kScheduler = "scheduler";

// A sequence stays with its instance, so that others cannot do the work of one that is stuck.
bool BindsRequestsToInstances(const core::Model& model) {
  return model.config().sequence_batching() != nullptr;
}

bool RunsOn(const core::Model& model, int32_t gpu) {
  using config::InstanceGroup;
  return std::ranges::any_of(model.config().instance_group, [gpu](const InstanceGroup& group) {
    return group.kind == InstanceGroup::Kind::kGpu &&
           (group.gpus.empty() || std::ranges::find(group.gpus, gpu) != group.gpus.end());
  });
}

std::string DescribeFailure(int32_t gpu, const std::string& error) {
  return fmt::format("GPU {} has failed for good: {}", gpu, error);
}

}  // namespace

bool Health::IsLive() const {
  if (gpus_.has_failed()) return false;
  return std::ranges::none_of(watchdog_.AllStuck(), [](const Watchdog::Stuck& stuck) {
    return stuck.kind == kReactor || stuck.kind == kScheduler;
  });
}

std::string Health::WhyNot(const core::Model& model) const {
  if (gpus_.has_failed()) {
    for (const auto& [gpu, error] : gpus_.Failures()) {
      if (RunsOn(model, gpu)) return DescribeFailure(gpu, error);
    }
  }
  const Watchdog::Summary summary = watchdog_.Summarize(&model);
  if (summary.stuck_parts == 0) return {};
  if (summary.stuck_parts < summary.parts && !BindsRequestsToInstances(model)) return {};
  std::string text;
  for (const Watchdog::Stuck& stuck : watchdog_.AllStuck()) {
    if (stuck.owner != &model) continue;
    if (!text.empty()) text += "; ";
    text += stuck.Describe();
  }
  return text;
}

std::optional<std::string> Health::FatalError() const {
  if (!gpus_.has_failed()) return std::nullopt;
  const auto failures = gpus_.Failures();
  return DescribeFailure(failures.begin()->first, failures.begin()->second);
}

service::HealthCheck Health::CheckThreads(std::string name, std::string_view kind) const {
  service::HealthCheck check{.name = std::move(name)};
  for (const Watchdog::Stuck& stuck : watchdog_.AllStuck()) {
    if (stuck.kind == kind) check.problems.push_back(stuck.Describe());
  }
  return check;
}

void Health::AddChecks(service::HealthChecks& checks) const {
  checks.push_back(CheckThreads("reactors", kReactor));
  checks.push_back(CheckThreads("scheduler", kScheduler));
  service::HealthCheck devices{.name = "devices"};
  for (const auto& [gpu, error] : gpus_.Failures()) {
    devices.problems.push_back(DescribeFailure(gpu, error));
  }
  checks.push_back(std::move(devices));
}

void Health::AddTo(MetricsPage& page) const {
  const auto counts = watchdog_.Counts();
  const auto label = [](const std::string& kind) {
    return observe::RenderLabels({{"kind", kind}});
  };
  page.StartFamily("nereid_stuck_threads",
                   "Threads and executions that have not got on for longer than their limit",
                   MetricsPage::Kind::kGauge);
  for (const auto& [kind, count] : counts) {
    page.Add(label(kind), static_cast<double>(count.stuck));
  }
  page.StartFamily("nereid_watchdog_alarms_total",
                   "How often a thread or an execution was found to be stuck",
                   MetricsPage::Kind::kCounter);
  for (const auto& [kind, count] : counts) {
    page.Add(label(kind), static_cast<double>(count.alarms));
  }
  page.StartFamily("nereid_failed_gpus", "GPUs that only a restart of the server makes usable",
                   MetricsPage::Kind::kGauge);
  page.Add("", static_cast<double>(gpus_.Failures().size()));
}

}  // namespace nereid::engine
