// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/plan.h"

#include <algorithm>

#include "onnxruntime_backend/data_types.h"

namespace nereid::onnxruntime {

using backend::Error;

namespace {

Port MakePort(const TensorInfo& info) {
  Port port{.info = info, .datatype = ToServerType(info.type), .scalar_shape = {}};
  port.element_size = backend::ElementByteSize(port.datatype);
  return port;
}

}  // namespace

Ports::Ports(const Signature& signature, const backend::ModelConfig& config) {
  for (const auto* list : {&signature.inputs, &signature.initializers}) {
    for (const TensorInfo& info : *list) {
      inputs.push_back(MakePort(info));
    }
  }
  for (const rapidjson::Value& io : backend::ArrayOf(config.json(), "input")) {
    const int port = Find(inputs, 0, backend::StringMember(io, "name"));
    if (port >= 0) {
      inputs[static_cast<size_t>(port)].is_ragged =
          config.max_batch_size() > 0 && backend::BoolMember(io, "allow_ragged_batch");
    }
  }
  AddOutputs(signature, config);
  AddStates(signature, config);
  AddBatchInputs(config);
  std::sort(outputs.begin(), outputs.end(),
            [](const Port& a, const Port& b) { return a.info.name < b.info.name; });
}

void Ports::AddOutputs(const Signature& signature, const backend::ModelConfig& config) {
  const size_t first = config.max_batch_size() > 0 ? 1 : 0;
  for (const rapidjson::Value& io : backend::ArrayOf(config.json(), "output")) {
    const TensorInfo* info = FindTensor(signature.outputs, backend::StringMember(io, "name"));
    if (info == nullptr) {
      continue;
    }
    Port port = MakePort(*info);
    port.scalar_shape = backend::ModelDims(io);
    port.scatter = backend::FindBatchOutput(config, io);
    // ONNX Runtime leaves memory for an output that is an unchanged input as it is.
    const bool is_input = Find(inputs, 0, info->name) >= 0;
    port.fixed_shape = !is_input && !port.is_string() && !port.scatter &&
                       info->dims.size() >= first &&
                       std::all_of(info->dims.begin() + static_cast<std::ptrdiff_t>(first),
                                   info->dims.end(), [](int64_t dim) { return dim >= 0; });
    outputs.push_back(std::move(port));
  }
}

void Ports::AddStates(const Signature& signature, const backend::ModelConfig& config) {
  const rapidjson::Value* sequences = backend::Find(config.json(), "sequence_batching");
  if (sequences == nullptr) {
    return;
  }
  for (const rapidjson::Value& state : backend::ArrayOf(*sequences, "state")) {
    const int input = Find(inputs, 0, backend::StringMember(state, "input_name"));
    if (input >= 0) {
      inputs[static_cast<size_t>(input)].is_state = true;
    }
    const std::string_view name = backend::StringMember(state, "output_name");
    int output = Find(outputs, 0, name);
    const TensorInfo* info = FindTensor(signature.outputs, name);
    if (output < 0 && info != nullptr) {
      output = static_cast<int>(outputs.size());
      outputs.push_back(MakePort(*info));
      outputs.back().scalar_shape = backend::DimsMember(state, "dims");
      outputs.back().is_declared = false;
    }
    if (output >= 0) {
      outputs[static_cast<size_t>(output)].is_state = true;
    }
  }
}

void Ports::AddBatchInputs(const backend::ModelConfig& config) {
  auto specs = backend::ReadBatchInputs(config);
  if (!specs.ok()) {
    return specs.TakeError().Ignore();  // Validate has reported it
  }
  for (backend::BatchInput& spec : specs.value()) {
    BatchInputPort port;
    const int source = Find(inputs, 0, spec.source);
    for (const std::string& target : spec.targets) {
      if (const int input = Find(inputs, 0, target); input >= 0) {
        port.inputs.push_back(static_cast<size_t>(input));
      }
    }
    port.source = source < 0 ? SIZE_MAX : static_cast<size_t>(source);
    port.spec = std::move(spec);
    batch_inputs.push_back(std::move(port));
  }
}

int Ports::Find(const std::vector<Port>& ports, size_t hint, std::string_view name) {
  for (size_t i = 0; i < ports.size(); ++i) {
    const size_t at = (hint + i) % ports.size();
    if (ports[at].info.name == name) {
      return static_cast<int>(at);
    }
  }
  return -1;
}

Error KeptTensor::Prepare(const OrtMemoryInfo* memory_info, const Port& port,
                          std::span<const int64_t> shape, uint64_t byte_size) {
  if (value != nullptr) {
    return {};
  }
  data = memory.Ensure(byte_size);
  OrtValue* raw = nullptr;
  NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(memory_info, data, byte_size, shape.data(),
                                                      shape.size(), port.info.type, &raw));
  value.reset(raw);
  return {};
}

Error Plan::Learn(size_t o, const Ports& ports, std::span<const int64_t> shape) {
  PlannedOutput& output = outputs[o];
  const Port& port = ports.outputs[output.port];
  if (!port.fixed_shape || outputs_vary || output.shape_known) {
    return {};
  }
  NEREID_KIT_ASSIGN(output.byte_size, backend::TensorByteSize(port.datatype, shape));
  output.shape.assign(shape.begin(), shape.end());
  output.shape_known = true;
  return {};
}

void Plan::ForgetOutputShapes() {
  outputs_vary = true;
  for (PlannedOutput& output : outputs) {
    output.shape_known = false;
    output.kept = {};
  }
}

Plan* PlanCache::Find(std::span<const int64_t> key) {
  for (size_t i = 0; i < plans_.size(); ++i) {
    if (std::equal(key.begin(), key.end(), plans_[i]->key.begin(), plans_[i]->key.end())) {
      std::rotate(plans_.begin(), plans_.begin() + static_cast<std::ptrdiff_t>(i),
                  plans_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return plans_.front().get();
    }
  }
  return nullptr;
}

Plan* PlanCache::Add(std::unique_ptr<Plan> plan) {
  if (plans_.size() == kMaxPlans) {
    plans_.pop_back();
  }
  plans_.insert(plans_.begin(), std::move(plan));
  return plans_.front().get();
}

}  // namespace nereid::onnxruntime
