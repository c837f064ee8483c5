// SPDX-License-Identifier: Apache-2.0
// A life cycle with a factory without backends, and short helpers for its tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/life_cycle.h"
#include "engine/testing/fakes.h"

namespace nereid::engine {

// The fixture of tests of the life cycle.
class LifeCycleFixture : public testing::Test {
 protected:
  explicit LifeCycleFixture(LifeCycleOptions options = {})
      : life_cycle_(std::make_unique<LifeCycle>(factory_, options)) {}

  // After every test, everything can be unloaded, and no version was loaded twice or destroyed too
  // early.
  void TearDown() override {
    EXPECT_EQ(life_cycle_->UnloadAll(InAMinute()).work, std::vector<std::string>());
    life_cycle_.reset();
    EXPECT_EQ(factory_.alive(), 0u);
    EXPECT_EQ(factory_.faults(), std::vector<std::string>());
  }

  LoadJob Job(const FakeModel& model) {
    auto source = std::make_shared<repository::ModelSource>(MakeSource(model, events_));
    LoadJob job{.source = source, .parts = {}};
    if (const auto* ensemble = model.config.ensemble_scheduling()) {
      for (const auto& step : ensemble->step) {
        job.parts.push_back(life_cycle_->LoadedModel(step.model_name, step.model_version));
      }
    }
    return job;
  }

  // Returns "OK", or the reason why the load failed.
  std::string Load(const FakeModel& model) {
    std::vector<LoadJob> jobs;
    jobs.push_back(Job(model));
    return life_cycle_->Load(std::move(jobs)).front().ToString();
  }
  std::future<std::string> LoadInBackground(const FakeModel& model) {
    return std::async(std::launch::async, [this, model] { return Load(model); });
  }

  // Returns the state of a version as in the index, "READY" or "UNAVAILABLE unloaded"; "" if it has
  // none.
  std::string State(const ModelId& id, int64_t version = 1) const {
    const ModelRecord* const record = life_cycle_->Table().Record(id);
    if (record == nullptr || !record->versions.contains(version)) return "";
    const VersionRecord& found = record->versions.at(version);
    return std::string(StateName(found.state)) + (found.reason.empty() ? "" : " " + found.reason);
  }
  // Waits (up to a minute) until an unloading version is destroyed.
  bool WaitUntilGone(const std::string& version) const {
    return events_.WaitFor("unload " + version);
  }

  // Pins a model like a request in flight; empty if there is no such model.
  core::ModelHandle Pin(const std::string& name, const std::string& version = "") const {
    auto found = life_cycle_->Find(name, version);
    return found.ok() ? *std::move(found) : core::ModelHandle();
  }
  core::ModelHandle PinStep(const std::string& id, int64_t version = -1) const {
    auto found = life_cycle_->FindForStep(id, version);
    return found.ok() ? *std::move(found) : core::ModelHandle();
  }
  std::string FindError(const std::string& name, const std::string& version = "") const {
    const auto found = life_cycle_->Find(name, version);
    return found.ok() ? "" : found.status().ToString();
  }

  Events events_;
  FakeFactory factory_{events_};
  std::unique_ptr<LifeCycle> life_cycle_;
};

}  // namespace nereid::engine
