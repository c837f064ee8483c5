// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/instance.h"

#include <algorithm>

namespace nereid::pytorch {

using backend::ConfiguredName;
using backend::Error;
using backend::Result;
using backend::StrCat;

Result<std::unique_ptr<Instance>> Instance::Create(TRITONBACKEND_ModelInstance* handle,
                                                   Model& model) {
  const char* name = nullptr;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceName(handle, &name));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceKind(handle, &kind));
  Device device;
  if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU) {
    device.kind = Device::Kind::kGpu;
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceDeviceId(handle, &device.index));
    if (const int count = GpuCount(); device.index >= count) {
      return Error::Unsupported(StrCat(
          "instance '", name, "' is to run on GPU ", device.index,
          count == 0 ? ", but PyTorch has no GPU here: it needs the driver, and libtorch_cuda.so "
                       "beside its libtorch_cpu.so (tools/setup leaves it out); or use KIND_CPU"
                     : StrCat(", but PyTorch has ", count)));
    }
  } else if (kind == TRITONSERVER_INSTANCEGROUPKIND_MODEL && GpuCount() > 0) {
    device.kind = Device::Kind::kAsSaved;
  }
  NEREID_KIT_ASSIGN(std::shared_ptr<const BoundProgram> program,
                    model.ProgramForInstance(handle, device));
  return std::make_unique<Instance>(handle, name, model.ports(), model.config().max_batch_size(),
                                    std::move(program));
}

Instance::Instance(TRITONBACKEND_ModelInstance* handle, std::string name,
                   const backend::Ports& ports, int64_t max_batch_size,
                   std::shared_ptr<const BoundProgram> program)
    : handle_(handle),
      ports_(ports),
      program_(std::move(program)),
      needs_paths_(std::any_of(program_->outputs.begin(), program_->outputs.end(),
                               [](const OutputPlace& place) { return !place.path.empty(); })),
      gathering_(ports, std::move(name), max_batch_size),
      scattering_(ports, gathering_),
      inputs_(ports.inputs.size()),
      found_(ports.outputs.size()) {}

void Instance::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  batch_.Process(handle_, requests, count, [this] { return Serve(); });
}

uint64_t Instance::Serve() {
  return gathering_.ForEachExecution(batch_, [this] { return ServeRead(); });
}

Error Instance::ServeRead() {
  NEREID_KIT_TRY(FillInputs());
  if (batch_.live_count() == 0) {
    return {};
  }
  batch_.MarkComputeStart();
  auto results = program_->program->Run(program_->arguments, inputs_, needs_paths_);
  batch_.MarkComputeEnd();
  return results.ok() ? DealOut(results.value()) : results.TakeError();
}

Error Instance::FillInputs() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    CallInput& input = inputs_[i];
    input = {.name = ports_.inputs[i].name};
    if (!gathering_.Has(i)) {
      continue;
    }
    input.is_present = true;
    input.datatype = ports_.inputs[i].datatype;
    input.shape = gathering_.ShapeOf(i);
    const Device device = program_->program->device();
    if (input.datatype == TRITONSERVER_TYPE_BYTES) {
      input.strings = gathering_.Strings(i);
      continue;
    }
    if (device.kind == Device::Kind::kGpu) {
      NEREID_KIT_ASSIGN(input.data, gathering_.DataOnGpu(i, device.index));
      input.is_on_gpu = input.data != nullptr;
    }
    if (!input.is_on_gpu) {
      NEREID_KIT_ASSIGN(const std::span<const char> data, gathering_.Data(batch_, i));
      input.data = data.data();
    }
  }
  return {};
}

Result<const ResultTensor*> Instance::Find(const Results& results, size_t o) const {
  const OutputPlace& place = program_->outputs[o];
  for (const ResultTensor& tensor : results.tensors) {
    if (!place.path.empty() && tensor.path == place.path) {
      return &tensor;
    }
  }
  if (place.index >= 0 && static_cast<size_t>(place.index) < results.tensors.size()) {
    return &results.tensors[static_cast<size_t>(place.index)];
  }
  if (place.path.empty()) {
    return Error::InvalidArgument(
        StrCat("The output ", place.name,
               " in the model configuration refers to an output index which doesn't exist. This "
               "model has ",
               results.tensors.size(), " outputs"));
  }
  std::string paths;
  for (const ResultTensor& tensor : results.tensors) {
    paths += (paths.empty() ? "RESULT" : ", RESULT") + tensor.path;
  }
  return Error::InvalidArgument(
      StrCat("the model's result has no '", place.name, "'; it has ", paths));
}

Error Instance::CheckType(const ResultTensor& tensor, size_t o) const {
  const backend::OutputPort& port = ports_.outputs[o];
  if (tensor.datatype == TRITONSERVER_TYPE_INVALID) {
    return Error::InvalidArgument(StrCat(
        "output '", port.name, "' must be of type Tensor or List[str], received ", tensor.type));
  }
  if (tensor.datatype != port.datatype) {
    return Error::InvalidArgument(StrCat("configuration expects datatype ",
                                         ConfiguredName(port.datatype), " for output '", port.name,
                                         "', model provides ", ConfiguredName(tensor.datatype)));
  }
  return {};
}

Error Instance::FindAll(const Results& results) {
  for (size_t o = 0; o < found_.size(); ++o) {
    found_[o] = nullptr;
    if (gathering_.is_wanted(o)) {
      NEREID_KIT_ASSIGN(found_[o], Find(results, o));
      NEREID_KIT_TRY(CheckType(*found_[o], o));
    }
  }
  return {};
}

Result<bool> Instance::DealFromGpu(const Results& results, size_t o) {
  const ResultTensor& tensor = *found_[o];
  const backend::OutputPort& port = ports_.outputs[o];
  const uint32_t r = gathering_.members()[0];
  const bool is_plain = gathering_.members().size() == 1 && !port.scatter && !port.is_state &&
                        port.is_declared && !tensor.shape.empty() &&
                        (!gathering_.is_batching() || tensor.shape[0] == gathering_.batch_size(r));
  if (!is_plain) {
    return false;
  }
  if (!batch_.live(r)) {
    return true;
  }
  NEREID_KIT_ASSIGN(
      const backend::OutputPlace place,
      backend::AddOutputOnGpu(batch_.response(r), port.name.c_str(), tensor.datatype, tensor.shape,
                              tensor.byte_size, program_->program->device().index));
  const auto index = static_cast<size_t>(&tensor - results.tensors.data());
  if (tensor.byte_size > 0) {
    NEREID_KIT_TRY(results.CopyTo(index, place.data, place.is_on_gpu));
  }
  return true;
}

Error Instance::DealOut(std::shared_ptr<const Results> results) {
  NEREID_KIT_TRY(FindAll(*results));
  std::vector<size_t> dealt;
  bool is_left = false;
  for (size_t o = 0; o < found_.size(); ++o) {
    if (found_[o] == nullptr || !found_[o]->is_on_gpu) {
      continue;
    }
    NEREID_KIT_ASSIGN(const bool is_dealt, DealFromGpu(*results, o));
    is_left = is_left || !is_dealt;
    if (is_dealt) {
      dealt.push_back(o);
    }
  }
  if (is_left) {
    NEREID_KIT_ASSIGN(results, results->OnHost());
    NEREID_KIT_TRY(FindAll(*results));
  }
  for (const size_t o : dealt) {
    found_[o] = nullptr;
  }
  const auto output_of = [&](size_t o) {
    const ResultTensor& tensor = *found_[o];
    return backend::ModelOutput{
        .shape = tensor.shape,
        .data = tensor.data,
        .strings = tensor.strings,
        .keeper = tensor.is_lendable ? std::shared_ptr<const void>(results) : nullptr};
  };
  for (size_t o = 0; o < found_.size(); ++o) {
    if (found_[o] != nullptr) {
      scattering_.ToResponses(batch_, o, output_of(o));
    }
  }
  for (size_t o = 0; o < found_.size(); ++o) {
    if (found_[o] != nullptr) {
      scattering_.ToStates(batch_, o, output_of(o));
    }
  }
  return {};
}

}  // namespace nereid::pytorch
