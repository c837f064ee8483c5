// SPDX-License-Identifier: Apache-2.0
#include "grpc/region_methods.h"

#include <cstring>
#include <vector>

namespace nereid::grpc {

using memory::RegionKind;

base::Status SystemSharedMemoryStatus(service::Service& service,
                                      const inference::SystemSharedMemoryStatusRequest& request,
                                      inference::SystemSharedMemoryStatusResponse& reply) {
  NEREID_ASSIGN_OR_RETURN(const std::vector<memory::RegionStatus> list,
                          service.regions().ReadStatus(RegionKind::kSystem, request.name()));
  for (const memory::RegionStatus& region : list) {
    auto& entry = (*reply.mutable_regions())[region.name];
    entry.set_name(region.name);
    entry.set_key(region.key);
    entry.set_offset(region.offset);
    entry.set_byte_size(region.byte_size);
  }
  return base::OkStatus();
}

base::Status SystemSharedMemoryRegister(service::Service& service,
                                        const inference::SystemSharedMemoryRegisterRequest& request,
                                        inference::SystemSharedMemoryRegisterResponse&) {
  return service.regions().RegisterSystem({.name = request.name(),
                                           .key = request.key(),
                                           .offset = request.offset(),
                                           .byte_size = request.byte_size()});
}

base::Status SystemSharedMemoryUnregister(
    service::Service& service, const inference::SystemSharedMemoryUnregisterRequest& request,
    inference::SystemSharedMemoryUnregisterResponse&) {
  return service.regions().Unregister(RegionKind::kSystem, request.name());
}

base::Status CudaSharedMemoryStatus(service::Service& service,
                                    const inference::CudaSharedMemoryStatusRequest& request,
                                    inference::CudaSharedMemoryStatusResponse& reply) {
  NEREID_ASSIGN_OR_RETURN(const std::vector<memory::RegionStatus> list,
                          service.regions().ReadStatus(RegionKind::kCuda, request.name()));
  for (const memory::RegionStatus& region : list) {
    auto& entry = (*reply.mutable_regions())[region.name];
    entry.set_name(region.name);
    entry.set_device_id(static_cast<uint64_t>(region.device));
    entry.set_byte_size(region.byte_size);
  }
  return base::OkStatus();
}

base::Status CudaSharedMemoryRegister(service::Service& service,
                                      const inference::CudaSharedMemoryRegisterRequest& request,
                                      inference::CudaSharedMemoryRegisterResponse&) {
  NEREID_RETURN_IF_ERROR(service.regions().CheckCuda(request.name()));
  memory::CudaRegionSpec spec{.name = request.name(),
                              .handle = {},
                              .device = request.device_id(),
                              .byte_size = request.byte_size()};
  // S07: a handle of another size is invalid, and nothing is read beyond its end.
  if (request.raw_handle().size() != spec.handle.bytes.size()) {
    return base::InvalidArgumentError("failed to register shared memory region: invalid args");
  }
  std::memcpy(spec.handle.bytes.data(), request.raw_handle().data(), spec.handle.bytes.size());
  return service.regions().RegisterCuda(spec);
}

base::Status CudaSharedMemoryUnregister(service::Service& service,
                                        const inference::CudaSharedMemoryUnregisterRequest& request,
                                        inference::CudaSharedMemoryUnregisterResponse&) {
  return service.regions().Unregister(RegionKind::kCuda, request.name());
}

}  // namespace nereid::grpc
