// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/instance.h"

namespace nereid::openvino {

using backend::Error;
using backend::Result;
using backend::StrCat;

Result<std::unique_ptr<Instance>> Instance::Create(TRITONBACKEND_ModelInstance* handle,
                                                   Model& model) {
  const char* name = nullptr;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
  int32_t id = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceName(handle, &name));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceKind(handle, &kind));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceDeviceId(handle, &id));
  std::string device = model.settings().device;
  if (device.empty()) {
    device = kind == TRITONSERVER_INSTANCEGROUPKIND_GPU ? StrCat("GPU.", id) : std::string("CPU");
  }
  NEREID_KIT_ASSIGN(const std::shared_ptr<Program> program, model.ProgramAt(device));
  NEREID_KIT_ASSIGN(std::unique_ptr<Request> request, program->NewRequest());
  return std::unique_ptr<Instance>(new Instance(handle, name, model, std::move(request)));
}

Instance::Instance(TRITONBACKEND_ModelInstance* handle, std::string name, const Model& model,
                   std::unique_ptr<Request> request)
    : handle_(handle),
      ports_(model.ports()),
      binding_(model.binding()),
      fixed_batch_(model.settings().fixed_batch ? model.config().max_batch_size() : 0),
      request_(std::move(request)),
      gathering_(ports_, std::move(name), model.config().max_batch_size()),
      scattering_(ports_, gathering_),
      inputs_(ports_.inputs.size()),
      padded_(ports_.inputs.size()) {}

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
  Error error = request_->Run(inputs_);
  batch_.MarkComputeEnd();
  NEREID_KIT_TRY(std::move(error));
  NEREID_KIT_TRY(DealOut(false));
  return DealOut(true);
}

Error Instance::FillInputs() {
  for (size_t i = 0; i < ports_.inputs.size(); ++i) {
    CallInput& input = inputs_[binding_.inputs[i]];
    input = {};
    if (!gathering_.Has(i)) {
      continue;
    }
    input.is_present = true;
    input.shape = gathering_.ShapeOf(i);
    if (ports_.inputs[i].datatype == TRITONSERVER_TYPE_BYTES) {
      input.strings = gathering_.Strings(i);
    } else {
      NEREID_KIT_ASSIGN(const std::span<const char> data, gathering_.Data(batch_, i));
      input.data = data.data();
    }
    NEREID_KIT_TRY(AddRows(i, &input));
  }
  return {};
}

Error Instance::AddRows(size_t i, CallInput* input) {
  const bool has_rows = !input->shape.empty() && !ports_.inputs[i].is_ragged &&
                        ports_.inputs[i].origin != backend::InputPort::Origin::kBatchInput;
  if (fixed_batch_ == 0 || !has_rows || input->shape[0] >= fixed_batch_) {
    return {};
  }
  Padded& padded = padded_[i];
  NEREID_KIT_ASSIGN(const int64_t before, backend::ElementCount(input->shape));
  padded.shape.assign(input->shape.begin(), input->shape.end());
  padded.shape[0] = fixed_batch_;
  NEREID_KIT_ASSIGN(const int64_t after, backend::ElementCount(padded.shape));
  if (input->data == nullptr) {
    padded.strings.assign(input->strings.begin(), input->strings.end());
    padded.strings.resize(static_cast<size_t>(after));
    input->strings = padded.strings;
  } else {
    const uint64_t element = backend::ElementByteSize(ports_.inputs[i].datatype);
    const uint64_t used = static_cast<uint64_t>(before) * element;
    const uint64_t all = static_cast<uint64_t>(after) * element;
    char* const to = padded.bytes.Ensure(all);
    std::memcpy(to, input->data, used);
    std::memset(to + used, 0, all - used);
    input->data = to;
  }
  input->shape = padded.shape;
  return {};
}

Error Instance::DealOut(bool to_states) {
  for (size_t o = 0; o < ports_.outputs.size(); ++o) {
    if (to_states ? !ports_.outputs[o].is_state : !gathering_.is_wanted(o)) {
      continue;
    }
    NEREID_KIT_ASSIGN(const CallOutput output, request_->Output(binding_.outputs[o]));
    shape_.assign(output.shape.begin(), output.shape.end());
    // Responses do not contain the rows that AddRows added.
    if (fixed_batch_ != 0 && !shape_.empty() && shape_[0] == fixed_batch_) {
      shape_[0] = gathering_.total_batch_size();
    }
    const backend::ModelOutput dealt{
        .shape = shape_, .data = output.data, .strings = output.strings, .keeper = output.keeper};
    if (to_states) {
      scattering_.ToStates(batch_, o, dealt);
    } else {
      scattering_.ToResponses(batch_, o, dealt);
    }
  }
  return {};
}

}  // namespace nereid::openvino
