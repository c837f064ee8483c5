// SPDX-License-Identifier: Apache-2.0
#include "core/gpu_inputs.h"

#include "memory/gpus.h"

namespace nereid::core {
namespace {

base::Status BringChunk(DataChunk& chunk, const RequestInput& input, Request& request,
                        const memory::Gpus* gpus) {
  if (chunk.where.type != memory::MemoryType::kGpu) return base::OkStatus();
  const auto prefix = [&] {
    return "input '" + std::string(input.name) + "' on GPU " + std::to_string(chunk.where.id) +
           ": ";
  };
  base::BufferRef copy = base::AcquireBuffer(chunk.size);
  base::Status status = gpus == nullptr ? base::UnsupportedError("this server has no GPU")
                        : !copy         ? base::UnavailableError("no memory for a copy")
                                : gpus->Copy(copy.data(), {}, chunk.data, chunk.where, chunk.size);
  if (!status.ok()) return status.WithPrefix(prefix());
  chunk = {.data = copy.data(), .size = chunk.size};
  request.Hold(std::move(copy));
  return base::OkStatus();
}

}  // namespace

base::Status BringToHost(RequestInput& input, Request& request, const memory::Gpus* gpus) {
  NEREID_RETURN_IF_ERROR(BringChunk(input.first, input, request, gpus));
  for (DataChunk& chunk : input.more) {
    NEREID_RETURN_IF_ERROR(BringChunk(chunk, input, request, gpus));
  }
  for (HostPolicyData& data : input.host_policies) {
    for (DataChunk& chunk : data.chunks) {
      NEREID_RETURN_IF_ERROR(BringChunk(chunk, input, request, gpus));
    }
  }
  return base::OkStatus();
}

base::Status BringInputsToHost(Request& request, const memory::Gpus* gpus) {
  for (RequestInput& input : request.inputs) {
    NEREID_RETURN_IF_ERROR(BringToHost(input, request, gpus));
  }
  request.has_gpu_inputs = false;
  return base::OkStatus();
}

}  // namespace nereid::core
