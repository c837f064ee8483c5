// SPDX-License-Identifier: Apache-2.0
// The budget of one execution: in steady state the host allocates nothing.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

#include "backend_host/backend_model.h"
#include "backend_host/testing/server.h"
#include "base/platform.h"
#include "config/complete.h"
#include "core/response.h"

namespace {
std::atomic<uint64_t> allocations{0};
}  // namespace

[[gnu::noinline]] void* operator new(size_t size) {
  allocations.fetch_add(1);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace nereid::backend_host {
namespace {

class CountingSink final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr response, bool) override {
    if (response->error().ok()) ++successes;
  }
  int successes = 0;
};

class AllocationTest : public testing::Test {
 protected:
  void SetUp() override {
    config::ModelConfig config;
    config.name = "model";
    config.backend = "promising";
    config.max_batch_size = 8;
    config.input.push_back({.name = "INPUT0", .data_type = tensor::DataType::kFp32, .dims = {16}});
    config.output.push_back(
        {.name = "OUTPUT0", .data_type = tensor::DataType::kFp32, .dims = {16}});
    auto loaded = BackendModel::Load({.name = "model",
                                      .version = 1,
                                      .model_dir = TEST_BACKEND_DIRECTORY,
                                      .config = config::Normalize(std::move(config))},
                                     libraries_);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    model_ = *std::move(loaded);
    core::ModelOptions options;
    options.name = "model";
    options.version = 1;
    options.config = std::make_shared<const config::ModelConfig>(model_->config());
    options.max_batch_size = 8;
    options.inputs.emplace_back().name = "INPUT0";
    options.outputs.emplace_back().name = "OUTPUT0";
    core_model_ = std::make_unique<core::Model>(std::move(options));
    ASSERT_TRUE(model_->CreateInstances(*core_model_).ok());
    for (auto& made : model_->TakeInstances()) instances_.push_back(std::move(made.instance));
  }
  void TearDown() override {
    instances_.clear();
    core_model_.reset();
    model_.reset();
  }

  // Executes one batch of `count` requests for 16 floats each, from arrival to the last response.
  void RunBatch(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      core::RequestPtr request = core::Request::Create(sink_);
      ASSERT_TRUE(core_model_->TryPin());
      request->model = core::ModelHandle(*core_model_);
      core::RequestInput& input = request->AddInput("INPUT0", tensor::DataType::kFp32);
      input.shape = {1, 16};
      input.Append({.data = data_, .size = sizeof data_});
      request->batch_size = 1;
      batch_[i] = std::move(request);
    }
    instances_[0]->Execute(std::span(batch_).first(count));
  }

  TRITONSERVER_Server server_;
  BackendLibraries libraries_{{.backend_directory = TEST_BACKEND_DIRECTORY}, server_};
  std::unique_ptr<BackendModel> model_;
  std::unique_ptr<core::Model> core_model_;
  std::vector<std::unique_ptr<core::Instance>> instances_;
  CountingSink sink_;
  std::array<core::RequestPtr, 8> batch_;
  std::byte data_[64] = {};
};

TEST_F(AllocationTest, IsNoneForAnExecutionInSteadyState) {
  if (base::kHasAddressSanitizer) GTEST_SKIP() << "pools keep nothing there";
  for (int i = 0; i < 100; ++i) RunBatch(1 + i % 8);
  sink_.successes = 0;
  const uint64_t before = allocations.load();
  for (int i = 0; i < 1000; ++i) RunBatch(8);
  EXPECT_EQ(allocations.load() - before, 0u);
  EXPECT_EQ(sink_.successes, 8000);
}

}  // namespace
}  // namespace nereid::backend_host
