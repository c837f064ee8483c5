// SPDX-License-Identifier: Apache-2.0
// Tests instances on GPUs, with the backend of tests/backends/gpu_copy.cc and the replacement for
// the driver of memory/test_cuda/.
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend_host/backend_model.h"
#include "backend_host/testing/hosted_model_fixture.h"
#include "config/complete.h"
#include "core/response.h"
#include "memory/gpus.h"

namespace nereid::backend_host {
namespace {

using config::InstanceGroup;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = InstanceGroup::Kind;

constexpr memory::Placement kFirstGpu{.type = memory::MemoryType::kGpu, .id = 0};

// Places the output where the test says, and keeps what the backend tells in parameters.
class Client final : public core::ResponseSink {
 public:
  base::Result<std::optional<core::OutputPlacement>> PlaceOutput(const core::Request&,
                                                                 const core::ResponseOutput&,
                                                                 size_t,
                                                                 memory::Placement) override {
    if (place == nullptr) return std::optional<core::OutputPlacement>();
    return std::optional<core::OutputPlacement>({.data = place, .where = kFirstGpu});
  }
  void ReleasePlacement(const core::OutputPlacement& placement, size_t) override {
    released = placement.data;
  }
  void Send(core::ResponsePtr response, bool) override {
    error = response->error().message();
    for (const core::Parameter& parameter : response->parameters()) {
      if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
        told[std::string(parameter.name)] = *text;
      }
    }
    if (response->output_count() == 0) return;
    const core::ResponseOutput& output = response->output(0);
    where = output.where;
    if (where.type != memory::MemoryType::kGpu) {
      data.assign(reinterpret_cast<const char*>(output.data), output.byte_size);
    }
  }

  std::byte* place = nullptr;
  std::byte* released = nullptr;
  std::string error;
  std::string data;
  memory::Placement where;
  std::map<std::string, std::string> told;
};

class GpuInstancesTest : public HostedModelTest {
 protected:
  GpuInstancesTest() {
    std::filesystem::create_symlink(TEST_GPU_BACKEND, directory_ + "/libtriton_gpu_copy.so");
    Restart(gpus_);
  }
  ~GpuInstancesTest() override {
    Drop();
    libraries_.reset();
  }

  void Restart(memory::Gpus& gpus) {
    libraries_ = std::make_unique<BackendLibraries>(
        BackendLibrariesOptions{
            .backend_directory = directory_,
            .backend_settings = {{"", {{"model-load-gpu-limit-device-1", "0.5"}}}},
            .gpus = &gpus},
        server_);
  }

  // In place of the model before.
  base::Status Start(std::vector<InstanceGroup> groups, std::string platform = "") {
    Drop();
    config::ModelConfig config;
    config.name = "model";
    config.platform = std::move(platform);
    config.backend = "gpu_copy";
    config.instance_group = std::move(groups);
    config.input.push_back({.name = "INPUT", .data_type = tensor::DataType::kUint8, .dims = {-1}});
    config.output.push_back(
        {.name = "OUTPUT", .data_type = tensor::DataType::kUint8, .dims = {-1}});
    NEREID_ASSIGN_OR_RETURN(model_,
                            BackendModel::Load({.name = "model",
                                                .version = 1,
                                                .model_dir = directory_,
                                                .config = config::Normalize(std::move(config))},
                                               *libraries_));
    core::ModelOptions options;
    options.name = "model";
    options.version = 1;
    options.config = std::make_shared<const config::ModelConfig>(model_->config());
    options.inputs.push_back({.name = "INPUT", .type = tensor::DataType::kUint8});
    options.outputs.push_back({.name = "OUTPUT", .type = tensor::DataType::kUint8});
    core_model_ = std::make_unique<core::Model>(std::move(options));
    core_model_->SetScheduler(std::make_unique<NoScheduler>());
    core_model_->SetGpus(&gpus_);
    NEREID_RETURN_IF_ERROR(model_->CreateInstances(*core_model_));
    for (auto& made : model_->TakeInstances()) {
      NEREID_RETURN_IF_ERROR(made.instance->InitializeOnThread());
      instances_.push_back(std::move(made.instance));
    }
    return {};
  }

  // Executes a request whose data "hello" is on the first GPU.
  void Execute(core::Instance& instance, bool is_staged = false) {
    core::RequestPtr request = core::Request::Create(client_);
    ASSERT_TRUE(core_model_->TryPin());
    request->model = core::ModelHandle(*core_model_);
    request->id = "";
    core::RequestInput& input = request->AddInput("INPUT", tensor::DataType::kUint8);
    input.shape = {5};
    input.Append({.data = given_.data(), .size = 5, .where = given_.where()});
    request->has_gpu_inputs = true;
    if (is_staged) request->parameters.push_back({.name = "stage", .value = true});
    std::vector<core::RequestPtr> batch;
    batch.push_back(std::move(request));
    instance.Execute(batch);
  }

  std::string Read(const memory::GpuBlock& block) {
    std::string text(5, '\0');
    EXPECT_TRUE(gpus_.Copy(text.data(), {}, block.data(), block.where(), 5).ok());
    return text;
  }

  memory::Gpus gpus_{{.driver = NEREID_FAKE_CUDA}};
  memory::GpuBlock given_ = [this] {
    memory::GpuBlock block = gpus_.TakeBlock(5, 0);
    EXPECT_TRUE(gpus_.Copy(block.data(), block.where(), "hello", {}, 5).ok());
    return block;
  }();
  Client client_;
};

TEST_F(GpuInstancesTest, AreOnEachGpuWithoutAGroup) {
  ASSERT_TRUE(Start({}).ok());
  ASSERT_EQ(model_->config().instance_group.size(), 1u);
  EXPECT_EQ(model_->config().instance_group[0].kind, Kind::kGpu);
  EXPECT_THAT(model_->config().instance_group[0].gpus, ElementsAre(0, 1));
  EXPECT_EQ(instances_.size(), 2u);
  EXPECT_TRUE(model_->uses_gpu_memory());
}

TEST_F(GpuInstancesTest, AreOnTheCpuIfTheModelIsForIt) {
  ASSERT_TRUE(Start({}, "torch_aoti").ok());
  EXPECT_EQ(model_->config().instance_group[0].kind, Kind::kCpu);
  ASSERT_TRUE(Start({{.count = 2}}, "torch_aoti").ok());
  EXPECT_EQ(model_->config().instance_group[0].kind, Kind::kCpu);
  EXPECT_EQ(instances_.size(), 2u);
  ASSERT_TRUE(Start({{.kind = Kind::kGpu, .gpus = {1}}}, "torch_aoti").ok());
  EXPECT_EQ(model_->config().instance_group[0].kind, Kind::kGpu);
}

TEST_F(GpuInstancesTest, AreOnTheCpuIfTheGpusAreNotThere) {
  memory::Gpus none({.driver = "/no/such/libcuda.so.1"});
  Restart(none);
  ASSERT_TRUE(Start({}).ok());
  EXPECT_EQ(model_->config().instance_group[0].kind, Kind::kCpu);
  EXPECT_FALSE(model_->uses_gpu_memory());
  const base::Status status = Start({{.kind = Kind::kGpu}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("but server does not support GPUs"));
}

TEST_F(GpuInstancesTest, AreRefusedOnAGpuThatIsNotThere) {
  const base::Status status = Start({{.kind = Kind::kGpu, .gpus = {7}}});
  EXPECT_THAT(std::string(status.message()), HasSubstr("invalid or unsupported gpu id 7"));
}

TEST_F(GpuInstancesTest, AreRefusedOnAGpuThatIsTooFull) {
  ASSERT_TRUE(Start({{.kind = Kind::kGpu, .gpus = {1}}}).ok());
  instances_.clear();
  const auto taken = gpus_.driver()->Allocate(size_t{600} << 20, 1);  // of one gigabyte
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(Start({{.kind = Kind::kGpu, .gpus = {1}}}).message(),
            "can not create model 'model_0_0': memory limit set for GPU 1 has exceeded, model "
            "loading is rejected.");
  EXPECT_TRUE(gpus_.driver()->Free(*taken, 1).ok());
}

TEST_F(GpuInstancesTest, ReadAndWriteTheMemoryOfTheGpu) {
  ASSERT_TRUE(Start({{.kind = Kind::kGpu, .gpus = {0}}}).ok());
  const memory::GpuBlock taken = gpus_.TakeBlock(5, 0);
  client_.place = taken.data();
  Execute(*instances_[0]);
  EXPECT_EQ(client_.error, "");
  EXPECT_EQ(client_.told["input_type"], "GPU");
  EXPECT_EQ(client_.told["output_type"], "GPU");
  EXPECT_EQ(client_.where, kFirstGpu);
  EXPECT_EQ(Read(taken), "hello");
  EXPECT_EQ(client_.released, taken.data());
}

TEST_F(GpuInstancesTest, GetMemoryOfThePools) {
  ASSERT_TRUE(Start({{.kind = Kind::kGpu, .gpus = {1}}}).ok());
  Execute(*instances_[0], /*is_staged=*/true);
  EXPECT_EQ(client_.error, "");
  EXPECT_EQ(client_.data, "hello");
  EXPECT_EQ(gpus_.UsedPinnedBytes(), 0u);
}

TEST_F(GpuInstancesTest, OnTheCpuGetHostMemoryForBoth) {
  ASSERT_TRUE(Start({{.kind = Kind::kCpu}}).ok());
  EXPECT_FALSE(model_->uses_gpu_memory());
  const memory::GpuBlock taken = gpus_.TakeBlock(5, 0);
  client_.place = taken.data();
  Execute(*instances_[0]);
  EXPECT_EQ(client_.error, "");
  EXPECT_EQ(client_.told["input_type"], "CPU");
  EXPECT_EQ(client_.told["output_type"], "CPU");
  EXPECT_EQ(client_.where, kFirstGpu);  // copied there when it was sent
  EXPECT_EQ(Read(taken), "hello");
  EXPECT_EQ(client_.released, taken.data());
}

TEST_F(GpuInstancesTest, OnTheCpuFailWhereTheServerHasNoGpuForTheClient) {
  ASSERT_TRUE(Start({{.kind = Kind::kCpu}}).ok());
  client_.place = reinterpret_cast<std::byte*>(~uintptr_t{0} - 4096);  // no memory of a GPU
  core_model_->SetGpus(nullptr);
  Execute(*instances_[0]);
  EXPECT_THAT(client_.error, HasSubstr("output 'OUTPUT' is in GPU memory"));
}

}  // namespace
}  // namespace nereid::backend_host
