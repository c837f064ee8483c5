// SPDX-License-Identifier: Apache-2.0
// A backend that contains the protobuf messages of the model configuration and the gRPC service, as
// a client of another server would: compiled from the same .proto files, with the shared library of
// protobuf.
#include "grpc_service.pb.h"
#include "model_config.pb.h"
#include "triton/core/tritonbackend.h"

extern "C" {

// Fails unless its messages work: they are described, written and read again.
TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* /*model*/) {
  inference::ModelInferRequest sent;
  sent.set_model_name("another");
  sent.add_inputs()->add_shape(16);
  inference::ModelInferRequest received;
  if (!received.ParseFromString(sent.SerializeAsString()) || received.ShortDebugString().empty() ||
      inference::ModelConfig::descriptor()->FindFieldByName("max_batch_size") == nullptr) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "the backend's messages are broken");
  }
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* /*instance*/,
                                                       TRITONBACKEND_Request** /*requests*/,
                                                       uint32_t /*count*/) {
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "this backend only loads");
}

}  // extern "C"
