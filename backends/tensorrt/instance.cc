// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/instance.h"

#include <algorithm>
#include <cstring>

#include "backend_kit/handles.h"
#include "backend_kit/memory_use.h"
#include "tensorrt_backend/shape_values.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::InputPort;
using backend::Result;
using backend::StrCat;

namespace {

// The core of a deep learning accelerator that the instance uses; -1: none.
Result<int> DlaCoreOf(TRITONBACKEND_ModelInstance* handle) {
  uint32_t count = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceSecondaryDeviceCount(handle, &count));
  if (count == 0) {
    return -1;
  }
  const char* kind = nullptr;
  int64_t id = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(handle, 0, &kind, &id));
  if (count > 1 || std::strcmp(kind, "KIND_NVDLA") != 0) {
    return Error::InvalidArgument("an instance can use one secondary device of kind KIND_NVDLA");
  }
  return static_cast<int>(id);
}

}  // namespace

Result<std::unique_ptr<Instance>> Instance::Create(TRITONBACKEND_ModelInstance* handle,
                                                   Model& model) {
  const char* name = nullptr;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
  int32_t device = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceName(handle, &name));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceKind(handle, &kind));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceDeviceId(handle, &device));
  // With KIND_MODEL the backend chooses: the first device.
  if (kind != TRITONSERVER_INSTANCEGROUPKIND_GPU && kind != TRITONSERVER_INSTANCEGROUPKIND_MODEL) {
    return Error::InvalidArgument(StrCat("unable to load model '", model.name(),
                                         "', TensorRT backend supports only GPU device"));
  }
  NEREID_KIT_ASSIGN(const int dla_core, DlaCoreOf(handle));
  NEREID_KIT_ASSIGN(std::shared_ptr<const Engine> engine, model.EngineOn(device, dla_core));
  std::unique_ptr<Instance> instance(new Instance(handle, model, name, device));
  NEREID_KIT_TRY(instance->Prepare(std::move(engine)));
  return instance;
}

Instance::Instance(TRITONBACKEND_ModelInstance* handle, Model& model, std::string name, int device)
    : handle_(handle),
      model_(model),
      name_(name),
      device_(device),
      ports_(model.ports()),
      gathering_(ports_, std::move(name), model.config().max_batch_size()),
      scattering_(ports_, gathering_),
      values_(ports_.inputs.size()) {}

Error Instance::Prepare(std::shared_ptr<const Engine> engine) {
  NEREID_KIT_ASSIGN(binding_,
                    Bind(ports_, model_.config(), engine->tensors(), model_.name(), name_));
  NEREID_KIT_ASSIGN(std::vector<Profile> profiles, ReadProfiles(*engine));
  std::string listed;
  for (const Profile& profile : profiles) {
    listed += StrCat(" ", profile.name(), "[", profile.index(), "];");
  }
  calls_.resize(engine->tensors().size());
  NEREID_KIT_ASSIGN(execution_,
                    Execution::Create({.device = {.driver = model_.driver(), .id = device_},
                                       .engine = std::move(engine),
                                       .settings = model_.settings(),
                                       .ports = ports_,
                                       .binding = binding_,
                                       .name = name_},
                                      std::move(profiles)));
  outputs_.emplace(OutputParts{.ports = ports_,
                               .binding = binding_,
                               .execution = *execution_,
                               .batch = batch_,
                               .gathering = gathering_,
                               .scattering = scattering_,
                               .device = device_});
  // What TensorRT itself allocates, weights above all, it does not tell.
  backend::LogIfError(backend::ReportMemoryUse(handle_, execution_->memory_uses()),
                      "cannot report memory");
  backend::LogInfo(StrCat("Created instance ", name_, " on GPU ", device_,
                          " with optimization profile", listed));
  return {};
}

Result<std::vector<Profile>> Instance::ReadProfiles(const Engine& engine) const {
  NEREID_KIT_ASSIGN(const std::vector<ProfileChoice> chosen,
                    ProfilesOf(handle_, engine.profile_count(), name_));
  std::vector<Profile> profiles;
  for (const ProfileChoice& choice : chosen) {
    NEREID_KIT_ASSIGN(Profile profile,
                      Profile::Create(choice, engine.tensors(), ports_, binding_,
                                      model_.config().max_batch_size(), model_.name()));
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

void Instance::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  batch_.Process(handle_, requests, count, [this] { return Serve(); });
}

uint64_t Instance::Serve() {
  OnDevice scope(*model_.driver(), device_);
  if (Error error = scope.TakeError(); !error.ok()) {
    batch_.FailAll(std::move(error));
    return 0;
  }
  return gathering_.ForEachExecution(batch_, [this] { return ServeRead(); });
}

Error Instance::ServeRead() {
  NEREID_KIT_TRY(ReadInputs());
  NEREID_KIT_TRY(execution_->Begin(calls_));
  Error error = Compute();
  // Also after a failure the device may still be using the requests' memory.
  Error waited = execution_->Wait();
  NEREID_KIT_TRY(std::move(error));
  NEREID_KIT_TRY(std::move(waited));
  const uint64_t now = backend::NowNs();
  const Execution::Times times = execution_->LastTimes();
  batch_.MarkComputeStart(now - times.output_ns - times.compute_ns);
  batch_.MarkComputeEnd(now - times.output_ns);
  if (Error error = outputs_->FetchComputedShapes(); !error.ok()) {
    execution_->Wait().Ignore();
    return error;
  }
  outputs_->DealOut(false);
  outputs_->DealOut(true);
  return {};
}

Error Instance::Compute() {
  NEREID_KIT_TRY(PutInputs());
  NEREID_KIT_TRY(execution_->Run());
  return outputs_->Fetch();
}

Error Instance::ReadInputs() {
  for (size_t i = 0; i < ports_.inputs.size(); ++i) {
    InputCall& call = calls_[binding_.inputs[i]];
    call = {};
    if (!gathering_.Has(i)) {
      return Error::InvalidArgument(StrCat("a request lacks the input '", ports_.inputs[i].name,
                                           "' of '", name_,
                                           "'; models of TensorRT have no optional inputs"));
    }
    call.shape = gathering_.ShapeOf(i);
    if (ports_.inputs[i].is_shape_tensor) {
      NEREID_KIT_TRY(ReadShapeValues(i));
      call.values = values_[i];
    }
  }
  return {};
}

Error Instance::ReadShapeValues(size_t i) {
  // The scheduler has seen to it that all requests of a batch have the same values.
  const InputPort& port = ports_.inputs[i];
  std::vector<char> bytes;
  Error error;
  bool is_first = true;
  gathering_.ForEachChunk(batch_, i, [&](uint64_t offset, const backend::InputChunk& chunk) {
    if (chunk.type == TRITONSERVER_MEMORY_GPU) {
      error = Error::InvalidArgument(StrCat("shape tensor for input '", port.name,
                                            "' must be in single contiguous buffer on CPU"));
    }
    is_first = is_first && offset == bytes.size();
    if (is_first && error.ok()) {
      bytes.insert(bytes.end(), chunk.data, chunk.data + chunk.size);
    }
    return Error();
  });
  NEREID_KIT_TRY(std::move(error));
  const size_t one = bytes.size() / gathering_.members().size();
  values_[i] = ToValues(std::span<const char>(bytes).first(one), port.datatype);
  if (gathering_.is_batching()) {
    values_[i].insert(values_[i].begin(), gathering_.total_batch_size());
  }
  return {};
}

Error Instance::PutInputs() {
  for (size_t i = 0; i < ports_.inputs.size(); ++i) {
    const size_t tensor = binding_.inputs[i];
    if (ports_.inputs[i].is_shape_tensor) {
      continue;
    }
    if (ports_.inputs[i].origin == InputPort::Origin::kBatchInput) {
      NEREID_KIT_ASSIGN(const std::span<const char> bytes, gathering_.Data(batch_, i));
      NEREID_KIT_TRY(execution_->Put(tensor, 0, {.data = bytes.data(), .size = bytes.size()}));
      continue;
    }
    gathering_.ForEachChunk(batch_, i, [&](uint64_t offset, const backend::InputChunk& chunk) {
      return execution_->Put(tensor, offset, chunk);
    });
  }
  return {};
}

}  // namespace nereid::tensorrt
