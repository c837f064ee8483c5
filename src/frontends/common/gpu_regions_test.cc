// SPDX-License-Identifier: Apache-2.0
// Tests tensors of requests in clients' memory on a GPU, with the replacement for the driver of
// memory/test_cuda/.
#include <cstring>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/request_regions.h"
#include "core/model.h"
#include "core/response.h"
#include "memory/gpus.h"

namespace nereid::common {
namespace {

using memory::MemoryType;
using memory::Placement;

constexpr size_t kSize = 1000;
constexpr Placement kGpu{.type = MemoryType::kGpu, .id = 0};
constexpr Placement kOtherGpu{.type = MemoryType::kGpu, .id = 1};

// Records the error of the last response.
class Sink final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr response, bool) override { error = response->error().message(); }
  void OnRequestGone() override { is_gone = true; }

  std::string error = "none";
  bool is_gone = false;
};

// Memory of a GPU that a client shares.
class ClientMemory {
 public:
  ClientMemory(memory::RegionTable& table, const std::string& name)
      : driver_(memory::CudaDriver::Open(NEREID_FAKE_CUDA)),
        address_(driver_->Allocate(kSize, 0).value()) {
    memory::CudaIpcHandle handle{};
    const auto library = base::SharedLibrary::Open(NEREID_FAKE_CUDA).value();
    library->Find<int(char*, memory::CudaAddress)>("cuIpcGetMemHandle")(handle.bytes.data(),
                                                                        address_);
    EXPECT_TRUE(
        table.RegisterCuda({.name = name, .handle = handle, .device = 0, .byte_size = kSize}).ok());
  }
  ~ClientMemory() { EXPECT_TRUE(driver_->Free(address_, 0).ok()); }

  void Write(std::string_view text) {
    EXPECT_TRUE(driver_->Copy(memory::FromCudaAddress(address_), text.data(), text.size(), 0).ok());
  }
  std::string Read(size_t size) {
    std::string text(size, '\0');
    EXPECT_TRUE(driver_->Copy(text.data(), memory::FromCudaAddress(address_), size, 0).ok());
    return text;
  }

 private:
  std::unique_ptr<memory::CudaDriver> driver_;
  memory::CudaAddress address_;
};

class GpuRegionsTest : public testing::Test {
 protected:
  GpuRegionsTest() {
    core::ModelOptions options;
    options.name = "m";
    options.version = 1;
    options.config = std::make_shared<config::ModelConfig>();
    options.outputs.push_back({.name = "OUT", .type = tensor::DataType::kInt8});
    model_ = std::make_unique<core::Model>(std::move(options));
    model_->SetGpus(&gpus_);
    EXPECT_TRUE(model_->TryPin());
    request_ = core::Request::Create(sink_);
    request_->model = core::ModelHandle(*model_);
    given_.Write("given");
  }

  core::RequestInput& AddInput(tensor::DataType type = tensor::DataType::kInt8) {
    core::RequestInput& input = request_->AddInput("IN", type);
    const base::Status status =
        regions_.AddInput(*request_, input, {.region = "in", .offset = 0, .byte_size = 5});
    EXPECT_TRUE(status.ok()) << status.message();
    return input;
  }
  std::string TextOf(const core::DataChunk& chunk) {
    std::string text(chunk.size, '\0');
    EXPECT_TRUE(gpus_.Copy(text.data(), {}, chunk.data, chunk.where, chunk.size).ok());
    return text;
  }
  // Lets the model write "taken" to its output, whose buffer it wants at `wish`. Returns where the
  // buffer was.
  Placement Respond(const Placement& wish) {
    EXPECT_TRUE(regions_.AddOutput("OUT", {.region = "out", .offset = 0, .byte_size = 5}).ok());
    regions_.Attach(*request_);
    core::ResponsePtr response = core::Response::Create(*request_);
    const int64_t count = 5;
    core::ResponseOutput* const output =
        response->AddOutput("OUT", tensor::DataType::kInt8, {&count, 1});
    const base::Status status = response->AllocateBuffer(*output, 5, wish, false);
    EXPECT_TRUE(status.ok()) << status.message();
    const Placement where = output->where;
    EXPECT_TRUE(gpus_.Copy(output->data, where, "taken", {}, 5).ok());
    core::Complete(std::move(request_), std::move(response));
    return where;
  }

  memory::Gpus gpus_{{.driver = NEREID_FAKE_CUDA, .gpu_pool_bytes = 512}};
  memory::RegionTable table_{true, false, &gpus_};
  ClientMemory given_{table_, "in"};
  ClientMemory taken_{table_, "out"};
  Sink sink_;
  std::unique_ptr<core::Model> model_;
  RequestRegions regions_{&table_};
  core::RequestPtr request_;
};

TEST_F(GpuRegionsTest, AModelOnTheCpuGetsAndGivesHostMemory) {
  const core::RequestInput& input = AddInput();
  EXPECT_EQ(input.first.where, Placement());
  EXPECT_EQ(TextOf(input.first), "given");
  EXPECT_FALSE(request_->has_gpu_inputs);
  EXPECT_EQ(Respond({}), Placement());
  EXPECT_EQ(sink_.error, "");
  EXPECT_EQ(taken_.Read(5), "taken");
}

TEST_F(GpuRegionsTest, AModelThatStandsChangesUsesTheRegionsThemselves) {
  model_->SetUsesGpuMemory();
  model_->SetStandsChanges();
  const core::RequestInput& input = AddInput();
  EXPECT_EQ(input.first.where, kGpu);
  EXPECT_TRUE(input.first.may_change);
  EXPECT_NE(input.first.cuda_ipc_handle, nullptr);
  EXPECT_TRUE(request_->has_gpu_inputs);
  given_.Write("later");
  EXPECT_EQ(TextOf(input.first), "later");
  EXPECT_EQ(Respond(kGpu), kGpu);
  EXPECT_EQ(sink_.error, "");
  EXPECT_EQ(taken_.Read(5), "taken");
}

TEST_F(GpuRegionsTest, AnotherModelGetsACopyOnTheSameGpu) {
  model_->SetUsesGpuMemory();
  const core::RequestInput& input = AddInput();
  EXPECT_EQ(input.first.where, kGpu);
  EXPECT_FALSE(input.first.may_change);
  given_.Write("later");
  EXPECT_EQ(TextOf(input.first), "given");
  EXPECT_EQ(Respond(kGpu), kGpu);
  EXPECT_EQ(taken_.Read(5), "taken");
  EXPECT_TRUE(sink_.is_gone);
  EXPECT_TRUE(gpus_.TakeBlock(512, 0));  // all was given back
}

TEST_F(GpuRegionsTest, AModelOnAnotherGpuWritesThere) {
  model_->SetUsesGpuMemory();
  model_->SetStandsChanges();
  EXPECT_EQ(Respond(kOtherGpu), kOtherGpu);
  EXPECT_EQ(sink_.error, "");
  EXPECT_EQ(taken_.Read(5), "taken");
  EXPECT_TRUE(gpus_.TakeBlock(512, 1));
}

TEST_F(GpuRegionsTest, AModelThatAsksForHostMemoryGetsIt) {
  model_->SetUsesGpuMemory();
  model_->SetStandsChanges();
  EXPECT_EQ(Respond({}), Placement());
  EXPECT_EQ(taken_.Read(5), "taken");
}

TEST_F(GpuRegionsTest, AFullPoolMeansCopiesInHostMemory) {
  model_->SetUsesGpuMemory();
  const memory::GpuBlock all = gpus_.TakeBlock(512, 0);
  const core::RequestInput& input = AddInput();
  EXPECT_EQ(input.first.where, Placement());
  EXPECT_EQ(TextOf(input.first), "given");
  EXPECT_EQ(Respond(kGpu), Placement());
  EXPECT_EQ(taken_.Read(5), "taken");
}

TEST_F(GpuRegionsTest, TextsAreInHostMemoryBecauseTheyAreChecked) {
  model_->SetUsesGpuMemory();
  model_->SetStandsChanges();
  EXPECT_EQ(AddInput(tensor::DataType::kBytes).first.where, Placement());
}

}  // namespace
}  // namespace nereid::common
