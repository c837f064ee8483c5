// SPDX-License-Identifier: Apache-2.0
// Models on demand in a place without models, and short helpers for their tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "base/timers.h"
#include "engine/on_demand.h"
#include "engine/testing/fake_demand_host.h"
#include "engine/testing/fakes.h"

namespace nereid::engine {

// The fixture of tests of OnDemand.
class OnDemandFixture : public testing::Test {
 protected:
  using Found = base::Result<core::ModelHandle>;

  // Models of 40 bytes, of which two fit, unless the options say otherwise.
  void Start(OnDemandOptions options = {}) {
    if (options.memory_budget == 0) options.memory_budget = 100;
    if (options.min_stay == OnDemandOptions().min_stay)
      options.min_stay = std::chrono::milliseconds(0);
    demand_ = std::make_unique<OnDemand>(host_, timers_, std::move(options));
    demand_->Refresh();
  }
  void TearDown() override {
    if (demand_ != nullptr) {
      EXPECT_TRUE(demand_->Stop(InAMinute()));
    }
    demand_.reset();
    EXPECT_THAT(host_.faults(), testing::IsEmpty());
  }

  std::future<Found> Ask(const std::string& name, const std::string& version = "") {
    auto promise = std::make_shared<std::promise<Found>>();
    std::future<Found> future = promise->get_future();
    demand_->Await(name, version, [promise](Found found) { promise->set_value(std::move(found)); });
    return future;
  }
  // Returns "OK", or the error.
  std::string Use(const std::string& name, const std::string& version = "") {
    return Ask(name, version).get().status().ToString();
  }

  FakeDemandHost host_;
  base::Timers timers_;
  std::unique_ptr<OnDemand> demand_;
};

}  // namespace nereid::engine
