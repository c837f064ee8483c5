// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/instance.h"

namespace nereid::tensorflow {

using backend::Error;
using backend::Result;
using backend::StrCat;

Result<std::unique_ptr<Instance>> Instance::Create(TRITONBACKEND_ModelInstance* handle,
                                                   Model& model) {
  const char* name = nullptr;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceName(handle, &name));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceKind(handle, &kind));
  if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU) {
    return Error::Unsupported(StrCat("instance '", name,
                                     "' is to run on a GPU, which this TensorFlow cannot: use "
                                     "KIND_CPU"));
  }
  NEREID_KIT_ASSIGN(BoundSession bound, model.SessionForInstance());
  std::unique_ptr<Request> request = bound.session->NewRequest(bound.bound);
  return std::make_unique<Instance>(handle, name, model.ports(), model.config().max_batch_size(),
                                    std::move(bound.session), std::move(request));
}

Instance::Instance(TRITONBACKEND_ModelInstance* handle, std::string name,
                   const backend::Ports& ports, int64_t max_batch_size,
                   std::shared_ptr<Session> session, std::unique_ptr<Request> request)
    : handle_(handle),
      ports_(ports),
      session_(std::move(session)),
      request_(std::move(request)),
      gathering_(ports, std::move(name), max_batch_size),
      scattering_(ports, gathering_),
      inputs_(ports.inputs.size()),
      wanted_(ports.outputs.size()) {}

void Instance::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  batch_.Process(handle_, requests, count, [this] { return Serve(); });
}

uint64_t Instance::Serve() {
  return gathering_.ForEachExecution(batch_, [this] {
    Error error = ServeRead();
    // Tensors in the memory of requests must not outlive these.
    request_->Clear();
    return error;
  });
}

Error Instance::ServeRead() {
  NEREID_KIT_TRY(FillInputs());
  if (batch_.live_count() == 0) {
    return {};
  }
  for (size_t o = 0; o < wanted_.size(); ++o) {
    wanted_[o] = gathering_.is_wanted(o) ? 1 : 0;
  }
  batch_.MarkComputeStart();
  Error error = request_->Run(inputs_, wanted_);
  batch_.MarkComputeEnd();
  NEREID_KIT_TRY(std::move(error));
  DealOut(false);
  DealOut(true);
  return {};
}

Error Instance::FillInputs() {
  for (size_t i = 0; i < ports_.inputs.size(); ++i) {
    CallInput& input = inputs_[i];
    input = {};
    if (!gathering_.Has(i)) {
      continue;
    }
    input.is_present = true;
    input.shape = gathering_.ShapeOf(i);
    if (ports_.inputs[i].datatype == TRITONSERVER_TYPE_BYTES) {
      input.strings = gathering_.Strings(i);
    } else {
      NEREID_KIT_ASSIGN(input.data, gathering_.Data(batch_, i));
    }
  }
  return {};
}

void Instance::DealOut(bool to_states) {
  for (size_t o = 0; o < ports_.outputs.size(); ++o) {
    if (to_states ? !ports_.outputs[o].is_state : wanted_[o] == 0) {
      continue;
    }
    const CallOutput output = request_->Output(o);
    const backend::ModelOutput dealt{.shape = output.shape,
                                     .data = output.data,
                                     .strings = output.strings,
                                     .keeper = output.keeper};
    if (to_states) {
      scattering_.ToStates(batch_, o, dealt);
    } else {
      scattering_.ToResponses(batch_, o, dealt);
    }
  }
}

}  // namespace nereid::tensorflow
