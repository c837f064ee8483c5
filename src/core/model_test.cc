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

TEST(Model, CountsRequestsApartFromOtherPins) {
  const auto model = MakeFakeModel(0, {1});
  const auto pin = [&] {
    EXPECT_TRUE(model->TryPin());
    return ModelHandle(*model);
  };
  ModelHandle other = pin();
  ModelHandle first = pin();
  EXPECT_TRUE(first.CountAsRequest(2, 100));
  const ModelHandle copy = first.Duplicate();
  EXPECT_EQ(model->pin_count(), 3u);
  EXPECT_EQ(model->request_count(), 1u);
  // Neither the copy nor the other pin takes the place of the second request.
  ModelHandle second = pin();
  EXPECT_TRUE(second.CountAsRequest(2, 20));
  ModelHandle third = pin();
  EXPECT_FALSE(third.CountAsRequest(2, 3));
  EXPECT_EQ(model->request_count(), 2u);
  EXPECT_EQ(model->request_bytes(), 120u);
  // A handle takes its count with it.
  ModelHandle moved = std::move(first);
  other = std::move(second);
  EXPECT_EQ(model->request_count(), 2u);
  other.Reset();
  EXPECT_EQ(model->request_count(), 1u);
  EXPECT_EQ(model->request_bytes(), 100u);
  EXPECT_TRUE(third.CountAsRequest(2, 3));
  // One that has ended leaves its place to another and keeps the version.
  third.EndRequest();
  EXPECT_FALSE(third.is_request());
  EXPECT_EQ(model->request_count(), 1u);
  EXPECT_EQ(model->request_bytes(), 100u);
  EXPECT_EQ(model->pin_count(), 3u);
  third.EndRequest();
  EXPECT_EQ(model->request_count(), 1u);
  // What was refused, or was a request once, is an ordinary pin.
  moved = pin();
  EXPECT_EQ(model->request_count(), 0u);
  EXPECT_EQ(model->request_bytes(), 0u);
  EXPECT_EQ(model->pin_count(), 3u);
}

TEST(Model, HasNeverMoreRequestsThanItsLimitNorFewerThanFit) {
  const auto model = MakeFakeModel(0, {1});
  constexpr uint64_t kLimit = 3;
  std::atomic<uint64_t> in_flight{0};
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kLimit + 1; ++i) {
    threads.emplace_back([&, is_request = i < kLimit] {
      for (int round = 0; round < 2000; ++round) {
        ASSERT_TRUE(model->TryPin());
        ModelHandle handle(*model);
        const ModelHandle copy = handle.Duplicate();
        if (!is_request) continue;
        // As many threads ask as fit, so all of them succeed, whatever the pins of the others.
        ASSERT_TRUE(handle.CountAsRequest(kLimit, 7));
        EXPECT_LE(in_flight.fetch_add(1), kLimit - 1);
        in_flight.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(model->request_count(), 0u);
  EXPECT_EQ(model->pin_count(), 0u);
}

TEST(ClosedModel, IsDrainedWhenItsLastRequestIsGone) {
  const auto model = MakeFakeModel(0, {1});
  int drained = 0;
  ASSERT_TRUE(model->TryPin());
  ModelHandle request(*model);
  ModelHandle copy = request.Duplicate();
  model->Close([&] { ++drained; });
  // A request that found the version before it was closed still counts.
  EXPECT_TRUE(request.CountAsRequest(1, 1));
  copy.Reset();
  EXPECT_EQ(drained, 0);
  EXPECT_EQ(model->request_count(), 1u);
  request.EndRequest();
  EXPECT_EQ(drained, 0);
  request.Reset();
  EXPECT_EQ(drained, 1);
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

TEST(HeldModel, IsHeldOnlyWithoutPins) {
  const auto model = MakeFakeModel(0, {1});
  ASSERT_TRUE(model->TryPin());
  EXPECT_FALSE(model->TryHold());
  model->Unpin();
  EXPECT_TRUE(model->TryHold());
  EXPECT_FALSE(model->TryPin());
  EXPECT_FALSE(model->TryHold());
  model->EndHold();
  EXPECT_TRUE(model->TryPin());
  model->Unpin();
}

TEST(HeldModel, IsDrainedByCloseAlone) {
  const auto model = MakeFakeModel(0, {1});
  ASSERT_TRUE(model->TryHold());
  // Would drain a closed model, and so call what is not there yet.
  EXPECT_FALSE(model->TryPin());
  int drained = 0;
  model->Close([&drained] { ++drained; });
  EXPECT_EQ(drained, 1);
  EXPECT_FALSE(model->TryPin());
  EXPECT_EQ(drained, 1);
}

TEST(HeldModel, IsHeldWhileManyThreadsTryToPinIt) {
  const auto model = MakeFakeModel(0, {1});
  std::atomic<bool> is_over{false};
  std::atomic<bool> is_held{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over.load()) {
        if (!model->TryPin()) continue;
        EXPECT_FALSE(is_held.load());
        model->Unpin();
      }
    });
  }
  for (int holds = 0; holds < 200;) {
    if (!model->TryHold()) continue;
    ++holds;
    is_held.store(true);
    is_held.store(false);
    model->EndHold();
  }
  is_over.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(model->pin_count(), 0u);
}

}  // namespace
}  // namespace nereid::core
