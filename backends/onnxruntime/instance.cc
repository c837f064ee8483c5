// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/instance.h"

namespace nereid::onnxruntime {

using backend::Error;
using backend::Result;
using backend::StrCat;

Result<std::unique_ptr<Instance>> Instance::Create(TRITONBACKEND_ModelInstance* handle,
                                                   Model& model) {
  const char* name = nullptr;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
  int32_t device = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceName(handle, &name));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceKind(handle, &kind));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceDeviceId(handle, &device));
  const bool gpu = kind == TRITONSERVER_INSTANCEGROUPKIND_GPU;
  NEREID_KIT_ASSIGN(std::shared_ptr<Session> session,
                    model.SessionAt({.gpu = gpu, .device = gpu ? device : 0}));
  return Create(handle, name, model.config(), model.settings(), std::move(session));
}

Result<std::unique_ptr<Instance>> Instance::Create(TRITONBACKEND_ModelInstance* handle,
                                                   std::string name,
                                                   const backend::ModelConfig& config,
                                                   const Settings& settings,
                                                   std::shared_ptr<Session> session) {
  OrtMemoryInfo* raw_info = nullptr;
  NEREID_ORT_TRY(Api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &raw_info));
  Owned<OrtMemoryInfo> memory_info(raw_info);
  Owned<OrtRunOptions> run_options;
  if (!settings.run_entries.empty()) {
    OrtRunOptions* raw_options = nullptr;
    NEREID_ORT_TRY(Api().CreateRunOptions(&raw_options));
    run_options.reset(raw_options);
    for (const auto& [key, value] : settings.run_entries) {
      NEREID_ORT_TRY(Api().AddRunConfigEntry(raw_options, key.c_str(), value.c_str()));
    }
  }
  return std::unique_ptr<Instance>(new Instance(handle, std::move(name), config, std::move(session),
                                                std::move(memory_info), std::move(run_options)));
}

Instance::Instance(TRITONBACKEND_ModelInstance* handle, std::string name,
                   const backend::ModelConfig& config, std::shared_ptr<Session> session,
                   Owned<OrtMemoryInfo> memory_info, Owned<OrtRunOptions> run_options)
    : handle_(handle),
      session_(std::move(session)),
      memory_info_(std::move(memory_info)),
      run_options_(std::move(run_options)),
      ports_(session_->signature(), config),
      gathering_(ports_, std::move(name), config.max_batch_size()),
      plan_maker_(ports_, gathering_),
      feeding_(ports_, gathering_, memory_info_.get(), *session_),
      scattering_(ports_, gathering_, config.max_batch_size() > 0) {}

void Instance::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  batch_.Process(handle_, requests, count, [this] { return Serve(); });
}

uint64_t Instance::Serve() {
  uint64_t total_batch_size = 0;
  gathering_.Begin(batch_);
  do {
    if (Error error = gathering_.Read(batch_); !error.ok()) {
      batch_.FailAll(std::move(error));
      break;
    }
    if (!gathering_.members().empty()) {
      if (const Error error = ServeRead(); !error.ok()) {
        for (const uint32_t r : gathering_.members()) {
          batch_.Fail(r, Error(error.code(), error.message()));
        }
      }
    }
    total_batch_size += static_cast<uint64_t>(gathering_.total_batch_size());
    ReleaseValues();
  } while (gathering_.HasMore(batch_));
  return total_batch_size;
}

Error Instance::ServeRead() {
  Plan* plan = plans_.Find(plan_maker_.MakeKey());
  if (plan == nullptr) {
    NEREID_KIT_ASSIGN(std::unique_ptr<Plan> made, plan_maker_.NewPlan());
    plan = plans_.Add(std::move(made));
  }
  return ServePlan(*plan);
}

Error Instance::ServePlan(Plan& plan) {
  NEREID_KIT_TRY(feeding_.Fill(batch_, plan, &input_values_));
  PrepareOutputs(plan);
  batch_.MarkComputeStart();
  Error error = Run(plan);
  if (!error.ok() && brings_outputs_) {
    error = RunAgain(plan);
  }
  batch_.MarkComputeEnd();
  if (!error.ok()) {
    return error;
  }
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    NEREID_KIT_TRY(DealOut(plan, o));
  }
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    if (ports_.outputs[plan.outputs[o].port].is_state) {
      NEREID_KIT_TRY(UpdateStates(plan, o));
    }
  }
  return {};
}

void Instance::PrepareOutputs(Plan& plan) {
  output_values_.assign(plan.outputs.size(), nullptr);
  direct_.assign(plan.outputs.size(), false);
  brings_outputs_ = false;
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    PlannedOutput& output = plan.outputs[o];
    if (!output.shape_known) {
      continue;
    }
    const size_t requests = gathering_.members().size();
    // A client may want even a small output on the GPU, which only its response tells.
    const bool is_direct = session_->placement().gpu && requests == 1;
    if (!is_direct && KeptTensor::Suits(output.byte_size, requests)) {
      // On failure ONNX Runtime allocates the output.
      LogIfError(output.kept.Prepare(memory_info_.get(), ports_.outputs[output.port], output.shape,
                                     output.byte_size),
                 "failed to prepare memory for an output");
      output_values_[o] = output.kept.value.get();
    } else if (requests == 1 && !ports_.outputs[output.port].is_state) {
      if (Error error = PrepareDirect(output, o); !error.ok()) {
        batch_.Fail(gathering_.members()[0], std::move(error));
      }
    }
    brings_outputs_ = brings_outputs_ || output_values_[o] != nullptr;
  }
}

Error Instance::PrepareDirect(const PlannedOutput& output, size_t o) {
  const uint32_t r = gathering_.members()[0];
  const Port& port = ports_.outputs[output.port];
  const bool whole = output.shape.empty() || gathering_.max_batch_size() == 0 ||
                     output.shape[0] == gathering_.batch_size(r);
  if (!whole || !batch_.live(r)) {
    return {};
  }
  const char* const name = port.info.name.c_str();
  const std::span<const int64_t> shape = Scattering::ResponseShape(port, output.shape);
  const Placement& where = session_->placement();
  backend::OutputPlace place;
  if (where.gpu) {
    NEREID_KIT_ASSIGN(place, backend::AddOutputOnGpu(batch_.response(r), name, port.datatype, shape,
                                                     output.byte_size, where.device));
  } else {
    NEREID_KIT_ASSIGN(place.data, backend::AddOutput(batch_.response(r), name, port.datatype, shape,
                                                     output.byte_size));
  }
  const OrtMemoryInfo* const memory = place.is_on_gpu ? session_->gpu_memory() : memory_info_.get();
  OrtValue* value = nullptr;
  NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(memory, place.data, output.byte_size,
                                                      output.shape.data(), output.shape.size(),
                                                      port.info.type, &value));
  owned_values_.emplace_back(value);
  output_values_[o] = value;
  direct_[o] = true;
  return {};
}

Error Instance::Run(const Plan& plan) {
  if (plan.outputs.empty() || batch_.live_count() == 0) {
    return {};
  }
  made_values_.clear();
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    if (plan.outputs[o].passed_on < 0) {
      made_values_.push_back(output_values_[o]);
    }
  }
  Error error;
  if (!made_values_.empty()) {
    error = FromOrt(Api().Run(session_->get(), run_options_.get(), plan.input_names.data(),
                              input_values_.data(), input_values_.size(), plan.output_names.data(),
                              plan.output_names.size(), made_values_.data()));
  }
  TakeOutputs(plan);
  return error;
}

// What ONNX Runtime allocates must be released, also when the run fails.
void Instance::TakeOutputs(const Plan& plan) {
  size_t made = 0;
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    const PlannedOutput& output = plan.outputs[o];
    if (output.passed_on >= 0) {
      output_values_[o] =
          const_cast<OrtValue*>(input_values_[static_cast<size_t>(output.passed_on)]);  // only read
      continue;
    }
    OrtValue* const value = made_values_[made++];
    output_values_[o] = value;
    if (value != nullptr && value != output.kept.value.get() && !direct_[o]) {
      owned_values_.emplace_back(value);
    }
  }
}

Error Instance::RunAgain(Plan& plan) {
  for (size_t o = 0; o < plan.outputs.size(); ++o) {
    if (direct_[o]) {
      batch_.RenewResponse(gathering_.members()[0]);
      break;
    }
  }
  output_values_.assign(plan.outputs.size(), nullptr);
  direct_.assign(plan.outputs.size(), false);
  NEREID_KIT_TRY(Run(plan));
  plan.ForgetOutputShapes();
  return {};
}

Error Instance::ReadShape(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* raw_info = nullptr;
  NEREID_ORT_TRY(Api().GetTensorTypeAndShape(value, &raw_info));
  const Owned<OrtTensorTypeAndShapeInfo> info(raw_info);
  size_t rank = 0;
  NEREID_ORT_TRY(Api().GetDimensionsCount(raw_info, &rank));
  shape_.resize(rank);
  return FromOrt(Api().GetDimensions(raw_info, shape_.data(), rank));
}

Error Instance::DealOut(Plan& plan, size_t o) {
  const PlannedOutput& output = plan.outputs[o];
  OrtValue* const value = output_values_[o];
  if (direct_[o] || batch_.live_count() == 0) {
    return {};
  }
  const Port& port = ports_.outputs[output.port];
  if (value != nullptr && value == output.kept.value.get()) {
    if (port.is_declared) {
      scattering_.Fixed(batch_, output.port, output.shape, output.kept.data);
    }
    return {};
  }
  if (value == nullptr) {
    return Error::Internal(StrCat("output tensor '", port.info.name, "' is not found"));
  }
  NEREID_KIT_TRY(ReadShape(value));
  if (port.is_string()) {
    return port.is_declared ? scattering_.Strings(batch_, output.port, shape_, value) : Error();
  }
  void* data = nullptr;
  NEREID_ORT_TRY(Api().GetTensorMutableData(value, &data));
  if (port.scatter) {
    NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(shape_));
    scattering_.ByInputShapes(batch_, output.port, static_cast<uint64_t>(elements),
                              static_cast<const char*>(data));
  } else if (port.is_declared) {
    scattering_.Fixed(batch_, output.port, shape_, static_cast<const char*>(data));
  }
  return plan.Learn(o, ports_, shape_);
}

Error Instance::UpdateStates(const Plan& plan, size_t o) {
  const PlannedOutput& output = plan.outputs[o];
  OrtValue* const value = output_values_[o];
  if (value == nullptr) {
    return {};  // there is no live request
  }
  NEREID_KIT_TRY(ReadShape(value));
  if (ports_.outputs[output.port].is_string()) {
    return scattering_.StringStates(batch_, output.port, shape_, value);
  }
  void* data = nullptr;
  NEREID_ORT_TRY(Api().GetTensorMutableData(value, &data));
  scattering_.FixedStates(batch_, output.port, shape_, static_cast<const char*>(data));
  return {};
}

void Instance::ReleaseValues() {
  owned_values_.clear();
  output_values_.clear();
  feeding_.Release();
}

}  // namespace nereid::onnxruntime
