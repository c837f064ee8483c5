// SPDX-License-Identifier: Apache-2.0
// What every test of a hosted model has: a folder, and the model with its parts.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend_host/backend_model.h"
#include "backend_host/testing/server.h"
#include "base/check.h"
#include "core/model.h"

namespace nereid::backend_host {

// A scheduler that is never called.
class NoScheduler final : public core::Scheduler {
 public:
  void Enqueue(core::RequestPtr) override {}
  void OnCancelled(core::Request&) override {}
  bool Stop(base::TimePoint) override { return true; }
};

// Derived classes load the model, and call Drop before what its instances use is gone.
class HostedModelTest : public testing::Test {
 protected:
  ~HostedModelTest() override { std::filesystem::remove_all(directory_); }

  void Drop() {
    instances_.clear();
    model_.reset();  // its instances tell the statistics that they need no memory any more
    core_model_.reset();
  }

  const std::string directory_ = [] {
    std::string pattern = std::filesystem::temp_directory_path() / "nereid_backend_XXXXXX";
    NEREID_CHECK(mkdtemp(pattern.data()) != nullptr);
    return pattern;
  }();
  TRITONSERVER_Server server_;
  std::unique_ptr<BackendLibraries> libraries_;
  std::unique_ptr<BackendModel> model_;
  std::unique_ptr<core::Model> core_model_;
  std::vector<std::unique_ptr<core::Instance>> instances_;
};

}  // namespace nereid::backend_host
