// SPDX-License-Identifier: Apache-2.0
// Tests which instances share a program and what memory is reported, with a fake server and
// programs that need no PyTorch.
#include "pytorch_backend/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include "backend_kit/testing/fake_host.h"

// What a report says of one memory.
struct TRITONSERVER_BufferAttributes {
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  size_t bytes = 0;
};
struct TRITONSERVER_Message {
  std::string text;
};

namespace {

using Memory = std::map<std::pair<TRITONSERVER_MemoryType, int64_t>, size_t>;

Memory ReadReport(TRITONSERVER_BufferAttributes** uses, uint32_t count) {
  Memory memory;
  for (uint32_t i = 0; i < count; ++i) {
    memory[{uses[i]->type, uses[i]->id}] = uses[i]->bytes;  // as in the server, the last one counts
  }
  return memory;
}

// By instance, because the fake host's instances have no place for it.
std::map<TRITONBACKEND_ModelInstance*, Memory> memory_of_instances;

}  // namespace

struct TRITONBACKEND_Model {
  std::string folder;
  std::string config;
  Memory memory;
};

// The functions of the server that these tests need besides the kit's fakes.
extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model*, const char** name) {
  *name = "m";
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model*, uint64_t* version) {
  *version = 1;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType* type,
                                                  const char** folder) {
  *type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *folder = model->folder.c_str();
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model*, bool* completes) {
  *completes = false;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model, uint32_t,
                                              TRITONSERVER_Message** message) {
  *message = new TRITONSERVER_Message{model->config};
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message,
                                                        const char** base, size_t* size) {
  *base = message->text.data();
  *size = message->text.size();
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  delete message;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes** attributes) {
  *attributes = new TRITONSERVER_BufferAttributes;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes* attributes) {
  delete attributes;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetMemoryType(
    TRITONSERVER_BufferAttributes* attributes, TRITONSERVER_MemoryType type) {
  attributes->type = type;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetMemoryTypeId(
    TRITONSERVER_BufferAttributes* attributes, int64_t id) {
  attributes->id = id;
  return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_BufferAttributesSetByteSize(
    TRITONSERVER_BufferAttributes* attributes, size_t bytes) {
  attributes->bytes = bytes;
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model* model,
                                                         TRITONSERVER_BufferAttributes** uses,
                                                         uint32_t count) {
  model->memory = ReadReport(uses, count);
  return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportMemoryUsage(
    TRITONBACKEND_ModelInstance* instance, TRITONSERVER_BufferAttributes** uses, uint32_t count) {
  memory_of_instances[instance] = ReadReport(uses, count);
  return nullptr;
}

}  // extern "C"

namespace nereid::pytorch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Device kCpu;
const Device kGpu0{.kind = Device::Kind::kGpu, .index = 0};
const Device kGpu1{.kind = Device::Kind::kGpu, .index = 1};
const Device kAsSaved{.kind = Device::Kind::kAsSaved};

// Has 100 bytes on its device; where the file says means 10 bytes on the CPU and 20 on GPU 0.
class PlacedProgram : public Program {
 public:
  explicit PlacedProgram(const Device& device) : device_(device) {
    const ValueType tensor{.kind = ValueType::Kind::kTensor, .text = "Tensor"};
    signature_.arguments = {{"x", tensor}};
    signature_.result = tensor;
  }
  const Signature& signature() const override { return signature_; }
  Device device() const override { return device_; }
  std::vector<backend::MemoryUse> weights() const override {
    switch (device_.kind) {
      case Device::Kind::kCpu:
        return {{.bytes = 100}};
      case Device::Kind::kGpu:
        return {{.bytes = 100, .type = TRITONSERVER_MEMORY_GPU, .id = device_.index}};
      case Device::Kind::kAsSaved:
        return {{.bytes = 10}, {.bytes = 20, .type = TRITONSERVER_MEMORY_GPU, .id = 0}};
    }
    return {};
  }
  backend::Result<std::shared_ptr<const Results>> Run(std::span<const ValueNode>,
                                                      std::span<const CallInput>,
                                                      bool) const override {
    return backend::Error::Unsupported("not called here");
  }

 private:
  const Device device_;
  Signature signature_;
};

}  // namespace

// Stand-ins for torch/.
void InitializeTorch(void (*)(const std::string&)) {}
void ApplyThreadCounts(const Settings&) {}
int GpuCount() { return 0; }
backend::Result<std::unique_ptr<const Program>> LoadTorchScript(const std::string&, const Settings&,
                                                                const Device&, const std::string&) {
  return backend::Error::Unsupported("no PyTorch here");
}
backend::Result<std::unique_ptr<const Program>> LoadCompiled(const std::string&, const Settings&,
                                                             const Device& device,
                                                             const std::string&) {
  return std::unique_ptr<const Program>(std::make_unique<PlacedProgram>(device));
}

namespace {

class ProgramsOfAModel : public ::testing::Test {
 protected:
  ProgramsOfAModel() {
    handle_.folder = ::testing::TempDir() + "/model_" +
                     ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(handle_.folder + "/1");
    std::ofstream(handle_.folder + "/1/model.pt2") << "x";
    backend::TakeLog();
  }
  ~ProgramsOfAModel() override {
    std::filesystem::remove_all(handle_.folder);
    memory_of_instances.clear();
  }

  void Load(const std::string& parameters = "") {
    handle_.config = R"({"platform":"torch_aoti","parameters":{)" + parameters +
                     R"(},"input":[{"name":"INPUT__0","data_type":"TYPE_FP32","dims":[2]}],
            "output":[{"name":"OUTPUT__0","data_type":"TYPE_FP32","dims":[2]}]})";
    Backend backend;
    auto model = Model::Create(&handle_, backend);
    ASSERT_TRUE(model.ok()) << model.TakeError().message();
    model_ = std::move(model).value();
  }

  std::shared_ptr<const BoundProgram> ProgramOn(const Device& device) {
    instances_.push_back(std::make_unique<TRITONBACKEND_ModelInstance>());
    auto program = model_->ProgramForInstance(instances_.back().get(), device);
    EXPECT_TRUE(program.ok());
    return program.ok() ? program.value() : nullptr;
  }

  TRITONBACKEND_Model handle_;
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<TRITONBACKEND_ModelInstance>> instances_;
};

TEST_F(ProgramsOfAModel, AreSharedByTheInstancesOnADevice) {
  Load();
  const auto cpu = ProgramOn(kCpu);
  const auto first = ProgramOn(kGpu0);
  const auto second = ProgramOn(kGpu1);
  EXPECT_EQ(first->program->device(), kGpu0);
  EXPECT_EQ(second->program->device(), kGpu1);
  EXPECT_EQ(ProgramOn(kCpu), cpu);
  EXPECT_EQ(ProgramOn(kGpu0), first);
  EXPECT_EQ(ProgramOn(kGpu1), second);
}

TEST_F(ProgramsOfAModel, AreCountedOnceForEachMemoryThatHasSome) {
  Load();
  for (const Device& device : {kCpu, kGpu1, kCpu, kGpu0, kAsSaved, kAsSaved, kGpu1}) {
    ProgramOn(device);
  }
  EXPECT_EQ(handle_.memory, (Memory{{{TRITONSERVER_MEMORY_CPU, 0}, 110},
                                    {{TRITONSERVER_MEMORY_GPU, 0}, 120},
                                    {{TRITONSERVER_MEMORY_GPU, 1}, 100}}));
  EXPECT_TRUE(memory_of_instances.empty());
}

TEST_F(ProgramsOfAModel, AreCountedForEachInstanceWithoutSharing) {
  Load(R"("ENABLE_WEIGHT_SHARING":{"string_value":"false"})");
  EXPECT_NE(ProgramOn(kGpu1), ProgramOn(kGpu1));
  EXPECT_TRUE(handle_.memory.empty());
  const Memory gpu1 = {{{TRITONSERVER_MEMORY_GPU, 1}, 100}};
  EXPECT_EQ(memory_of_instances[instances_[0].get()], gpu1);
  EXPECT_EQ(memory_of_instances[instances_[1].get()], gpu1);
}

TEST_F(ProgramsOfAModel, AreSaidToBeReusedWhereSharingIsAskedFor) {
  Load(R"("ENABLE_WEIGHT_SHARING":{"string_value":"true"})");
  backend::TakeLog();
  ProgramOn(kCpu);
  ProgramOn(kGpu0);
  ProgramOn(kCpu);
  EXPECT_THAT(backend::TakeLog(),
              ElementsAre(HasSubstr("Reusing TorchScript model for instance 'm'")));
}

}  // namespace
}  // namespace nereid::pytorch
