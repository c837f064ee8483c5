// SPDX-License-Identifier: Apache-2.0
// Names, argument types and numbers are those of the CUDA driver API. Where an entry point has a
// version in its name, CUDA's header maps the plain name to it.
#include "memory/cuda_driver.h"

#include <string>
#include <type_traits>
#include <utility>

namespace nereid::memory {

struct CudaDriver::Functions {
  using Context = void*;

  int (*init)(unsigned flags);
  int (*get_device_count)(int* count);
  int (*get_device)(int* device, int ordinal);
  int (*retain_context)(Context* context, int device);
  int (*push_context)(Context context);
  int (*pop_context)(Context* context);
  int (*open_handle)(CudaAddress* address, CudaIpcHandle handle, unsigned flags);
  int (*close_handle)(CudaAddress address);
  int (*get_address_range)(CudaAddress* base, size_t* size, CudaAddress address);
  int (*copy_to_host)(void* to, CudaAddress from, size_t size);
  int (*copy_to_device)(CudaAddress to, const void* from, size_t size);
  int (*get_error_string)(int error, const char** text);
};

// Makes a device's primary context current in the calling thread for a scope. The driver counts and
// keeps primary contexts; like a CUDA runtime, we keep ours as long as the process lives.
class CudaDriver::CurrentContext {
 public:
  CurrentContext(const CudaDriver& driver, int64_t device) : driver_(driver) {
    if (device < 0 || device >= driver.device_count_) {
      status_ = base::InvalidArgumentError("there is no GPU " + std::to_string(device));
      return;
    }
    const Functions& functions = *driver.functions_;
    int id = 0;
    Functions::Context context = nullptr;
    status_ = driver.Check(functions.get_device(&id, static_cast<int>(device)));
    if (status_.ok()) status_ = driver.Check(functions.retain_context(&context, id));
    if (status_.ok()) status_ = driver.Check(functions.push_context(context));
  }
  ~CurrentContext() {
    Functions::Context context = nullptr;
    if (status_.ok()) driver_.functions_->pop_context(&context);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  const base::Status& status() const { return status_; }

 private:
  const CudaDriver& driver_;
  base::Status status_;
};

std::unique_ptr<CudaDriver> CudaDriver::Open() {
  base::Result<std::unique_ptr<base::SharedLibrary>> opened =
      base::SharedLibrary::Open("libcuda.so.1");
  if (!opened.ok()) return nullptr;
  std::unique_ptr<base::SharedLibrary> library = std::move(opened).value();
  auto functions = std::make_unique<Functions>();
  bool is_complete = true;
  const auto find = [&library, &is_complete](auto& function, const char* name) {
    using Pointer = std::remove_reference_t<decltype(function)>;
    function = reinterpret_cast<Pointer>(library->FindSymbol(name));
    is_complete = is_complete && function != nullptr;
  };
  find(functions->init, "cuInit");
  find(functions->get_device_count, "cuDeviceGetCount");
  find(functions->get_device, "cuDeviceGet");
  find(functions->retain_context, "cuDevicePrimaryCtxRetain");
  find(functions->push_context, "cuCtxPushCurrent_v2");
  find(functions->pop_context, "cuCtxPopCurrent_v2");
  find(functions->open_handle, "cuIpcOpenMemHandle_v2");
  find(functions->close_handle, "cuIpcCloseMemHandle");
  find(functions->get_address_range, "cuMemGetAddressRange_v2");
  find(functions->copy_to_host, "cuMemcpyDtoH_v2");
  find(functions->copy_to_device, "cuMemcpyHtoD_v2");
  find(functions->get_error_string, "cuGetErrorString");
  int count = 0;
  if (!is_complete || functions->init(0) != 0 || functions->get_device_count(&count) != 0 ||
      count == 0) {
    return nullptr;
  }
  return std::unique_ptr<CudaDriver>(
      new CudaDriver(std::move(library), std::move(functions), count));
}

CudaDriver::CudaDriver(std::unique_ptr<base::SharedLibrary> library,
                       std::unique_ptr<Functions> functions, int device_count)
    : library_(std::move(library)), functions_(std::move(functions)), device_count_(device_count) {}

CudaDriver::~CudaDriver() = default;

base::Status CudaDriver::Check(int result) const {
  if (result == 0) return base::OkStatus();
  const char* text = nullptr;
  functions_->get_error_string(result, &text);
  return base::InternalError(text != nullptr ? text : "CUDA error " + std::to_string(result));
}

base::Result<CudaAddress> CudaDriver::OpenHandle(const CudaIpcHandle& handle,
                                                 int64_t device) const {
  constexpr unsigned kLazyEnablePeerAccess = 1;
  const CurrentContext context(*this, device);
  NEREID_RETURN_IF_ERROR(context.status());
  CudaAddress address = 0;
  NEREID_RETURN_IF_ERROR(Check(functions_->open_handle(&address, handle, kLazyEnablePeerAccess)));
  return address;
}

base::Status CudaDriver::CloseHandle(CudaAddress address, int64_t device) const {
  const CurrentContext context(*this, device);
  NEREID_RETURN_IF_ERROR(context.status());
  return Check(functions_->close_handle(address));
}

base::Result<size_t> CudaDriver::AllocationSize(CudaAddress address, int64_t device) const {
  const CurrentContext context(*this, device);
  NEREID_RETURN_IF_ERROR(context.status());
  CudaAddress start = 0;
  size_t size = 0;
  NEREID_RETURN_IF_ERROR(Check(functions_->get_address_range(&start, &size, address)));
  // Bytes before `address` in the allocation do not count.
  return start <= address && address - start <= size ? size - (address - start) : size_t{0};
}

base::Status CudaDriver::CopyToHost(void* to, CudaAddress from, size_t size, int64_t device) const {
  const CurrentContext context(*this, device);
  NEREID_RETURN_IF_ERROR(context.status());
  return Check(functions_->copy_to_host(to, from, size));
}

base::Status CudaDriver::CopyToDevice(CudaAddress to, const void* from, size_t size,
                                      int64_t device) const {
  const CurrentContext context(*this, device);
  NEREID_RETURN_IF_ERROR(context.status());
  return Check(functions_->copy_to_device(to, from, size));
}

}  // namespace nereid::memory
