// SPDX-License-Identifier: Apache-2.0
#include "core/model.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "core/testing/fakes.h"

namespace nereid::core {
namespace {

TEST(Model, IsFoundByTheNamesOfItsTensors) {
  ModelOptions options;
  options.version = 12;
  options.config = std::make_shared<config::ModelConfig>();
  for (const char* name : {"B", "C", "A"}) {
    ModelTensor tensor;
    tensor.name = name;
    tensor.is_optional = options.inputs.size() == 1;
    options.inputs.push_back(tensor);
    options.outputs.push_back(tensor);
  }
  const Model model(std::move(options));
  EXPECT_EQ(model.version_text(), "12");
  EXPECT_EQ(model.FindInput("A"), 2);
  EXPECT_EQ(model.FindOutput("B"), 0);
  EXPECT_EQ(model.FindInput("D"), -1);
  EXPECT_EQ(model.FindOutput(""), -1);
  EXPECT_EQ(model.required_input_count(), 2u);
  EXPECT_EQ(model.outputs_by_name(), (std::vector<uint32_t>{2, 0, 1}));
}

TEST(Model, IsReadyUnlessItsBackendSaysOtherwise) {
  const auto model = MakeFakeModel(0, {1});
  EXPECT_FALSE(model->has_ready_check());
  EXPECT_TRUE(model->CheckReady().ok());
  model->SetReadyCheck([] { return base::UnavailableError("no device"); });
  EXPECT_TRUE(model->has_ready_check());
  EXPECT_EQ(model->CheckReady().message(), "no device");
}

TEST(Model, LendsNoMemoryUnlessItsBackendDoes) {
  const auto model = MakeFakeModel(0, {1});
  EXPECT_FALSE(model->LendInputMemory(10));
  model->SetInputMemory([](size_t size) { return base::AcquireBuffer(size); });
  EXPECT_GE(model->LendInputMemory(10).capacity(), 10u);
}

TEST(ClosedModel, IsDrainedWhenItsLastPinIsGone) {
  const auto model = MakeFakeModel(0, {1});
  int drained = 0;
  ASSERT_TRUE(model->TryPin());
  ModelHandle handle(*model);
  ModelHandle copy = handle.Duplicate();
  EXPECT_EQ(model->pin_count(), 2u);
  model->Close([&] { ++drained; });
  EXPECT_FALSE(model->TryPin());
  handle.Reset();
  EXPECT_EQ(drained, 0);
  // The holder of a pin may add another one, even while the model is closing.
  ModelHandle third = copy.Duplicate();
  copy.Reset();
  EXPECT_EQ(drained, 0);
  third.Reset();
  EXPECT_EQ(drained, 1);
  EXPECT_FALSE(model->TryPin());
  EXPECT_EQ(drained, 1);
}

TEST(ClosedModel, IsDrainedAtOnceIfItIsUnused) {
  const auto model = MakeFakeModel(0, {1});
  int drained = 0;
  model->Close([&] { ++drained; });
  EXPECT_EQ(drained, 1);
}

TEST(ClosedModel, IsDrainedOnceWhileManyThreadsTryToPinIt) {
  for (int round = 0; round < 50; ++round) {
    const auto model = MakeFakeModel(0, {1});
    std::atomic<int> drained{0};
    std::atomic<int> in_use{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        while (model->TryPin()) {
          in_use.fetch_add(1);
          EXPECT_EQ(drained.load(), 0);
          in_use.fetch_sub(1);
          model->Unpin();
        }
      });
    }
    model->Close([&] {
      EXPECT_EQ(in_use.load(), 0);
      drained.fetch_add(1);
    });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(drained.load(), 1);
    EXPECT_EQ(model->pin_count(), 0u);
  }
}

}  // namespace
}  // namespace nereid::core
