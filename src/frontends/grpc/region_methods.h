// SPDX-License-Identifier: Apache-2.0
// The RPCs of the shared memory extension. Their effects and texts are those of
// memory::RegionTable.
#pragma once

#include "base/status.h"
#include "grpc_service.pb.h"
#include "service/service.h"

namespace nereid::grpc {

base::Status SystemSharedMemoryStatus(service::Service& service,
                                      const inference::SystemSharedMemoryStatusRequest& request,
                                      inference::SystemSharedMemoryStatusResponse& reply);
base::Status SystemSharedMemoryRegister(service::Service& service,
                                        const inference::SystemSharedMemoryRegisterRequest& request,
                                        inference::SystemSharedMemoryRegisterResponse& reply);
base::Status SystemSharedMemoryUnregister(
    service::Service& service, const inference::SystemSharedMemoryUnregisterRequest& request,
    inference::SystemSharedMemoryUnregisterResponse& reply);
base::Status CudaSharedMemoryStatus(service::Service& service,
                                    const inference::CudaSharedMemoryStatusRequest& request,
                                    inference::CudaSharedMemoryStatusResponse& reply);
base::Status CudaSharedMemoryRegister(service::Service& service,
                                      const inference::CudaSharedMemoryRegisterRequest& request,
                                      inference::CudaSharedMemoryRegisterResponse& reply);
base::Status CudaSharedMemoryUnregister(service::Service& service,
                                        const inference::CudaSharedMemoryUnregisterRequest& request,
                                        inference::CudaSharedMemoryUnregisterResponse& reply);

}  // namespace nereid::grpc
