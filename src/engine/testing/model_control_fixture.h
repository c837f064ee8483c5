// SPDX-License-Identifier: Apache-2.0
// A model control with repositories without a disk and a factory without backends, and short
// helpers for its tests.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/model_control.h"
#include "engine/testing/fakes.h"

namespace nereid::engine {

// The fixture of tests of model control.
class ModelControlFixture : public testing::Test {
 protected:
  explicit ModelControlFixture(ControlMode mode = ControlMode::kExplicit,
                               bool has_namespaces = false)
      : repositories_(events_, has_namespaces), mode_(mode), has_namespaces_(has_namespaces) {
    Restart({});
  }

  // After every test, everything can be unloaded, and no version was loaded twice, destroyed too
  // early or made of parts that were not loaded.
  void TearDown() override {
    End();
    EXPECT_EQ(factory_.alive(), 0u);
    EXPECT_EQ(factory_.faults(), std::vector<std::string>());
  }

  void End() {
    if (control_ == nullptr) return;
    EXPECT_TRUE(control_->Stop(InAMinute()));
    EXPECT_EQ(life_cycle_->UnloadAll(InAMinute()).work, std::vector<std::string>());
    control_.reset();
    life_cycle_.reset();
  }
  // Starts another server on the same repositories.
  void Restart(std::set<std::string> startup_models) {
    End();
    life_cycle_ = std::make_unique<LifeCycle>(
        factory_, LifeCycleOptions{.has_namespaces = has_namespaces_,
                                   .repeats_loads = mode_ == ControlMode::kPoll});
    control_ = std::make_unique<ModelControl>(
        repositories_, *life_cycle_,
        ModelControlOptions{.mode = mode_, .startup_models = std::move(startup_models)});
  }

  // Returns "OK", or the error.
  std::string Start() { return control_->Start().ToString(); }
  std::string Load(const std::string& name, const service::LoadOptions& options = {}) {
    return control_->Load(name, options).ToString();
  }
  std::string Unload(const std::string& name, bool with_parts = false) {
    return control_->Unload(name, with_parts).ToString();
  }
  std::future<std::string> LoadInBackground(const std::string& name) {
    return std::async(std::launch::async, [this, name] { return Load(name); });
  }
  std::future<std::string> UnloadInBackground(const std::string& name) {
    return std::async(std::launch::async, [this, name] { return Unload(name); });
  }

  // Returns the index, each entry as "m:1 READY" or "m UNAVAILABLE why".
  std::vector<std::string> Index(bool only_ready = false) const {
    std::vector<std::string> lines;
    for (const service::IndexEntry& entry : control_->Index(only_ready)) {
      std::string line = entry.name;
      if (!entry.version.empty()) line += ":" + entry.version;
      if (!entry.state.empty()) line += " " + entry.state;
      if (!entry.reason.empty()) line += " " + entry.reason;
      lines.push_back(std::move(line));
    }
    return lines;
  }
  bool IsReady(const std::string& name) const { return life_cycle_->Find(name, "").ok(); }
  core::ModelHandle Pin(const std::string& name) const {
    auto found = life_cycle_->Find(name, "");
    return found.ok() ? *std::move(found) : core::ModelHandle();
  }
  // Waits (up to a minute) until a version that was unloaded since the last Take is destroyed.
  bool WaitUntilGone(const std::string& version) const {
    return events_.WaitFor("unload " + version);
  }

  Events events_;
  FakeFactory factory_{events_};
  FakeRepositories repositories_;
  const ControlMode mode_;
  const bool has_namespaces_;
  std::unique_ptr<LifeCycle> life_cycle_;
  std::unique_ptr<ModelControl> control_;
};

}  // namespace nereid::engine
