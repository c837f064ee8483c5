// SPDX-License-Identifier: Apache-2.0
// Names, argument types and numbers are those of the CUDA driver API. Where an entry point has a
// version in its name, CUDA's header maps the plain name to it.
#include "memory/cuda_driver.h"

#include <type_traits>
#include <utility>

namespace nereid::memory {

struct CudaDriver::Functions {
  int (*init)(unsigned flags);
  int (*get_device_count)(int* count);
  int (*get_device)(int* device, int ordinal);
  int (*get_attribute)(int* value, int attribute, int device);
  int (*retain_context)(void** context, int device);
  int (*push_context)(void* context);
  int (*pop_context)(void** context);
  int (*get_memory_info)(size_t* free, size_t* total);
  int (*allocate)(CudaAddress* address, size_t size);
  int (*free)(CudaAddress address);
  int (*allocate_host)(void** memory, size_t size, unsigned flags);
  int (*free_host)(void* memory);
  int (*can_access_peer)(int* can, int device, int peer);
  int (*enable_peer)(void* context, unsigned flags);
  int (*open_handle)(CudaAddress* address, CudaIpcHandle handle, unsigned flags);
  int (*close_handle)(CudaAddress address);
  int (*get_address_range)(CudaAddress* base, size_t* size, CudaAddress address);
  int (*create_stream)(void** stream, unsigned flags);
  int (*destroy_stream)(void* stream);
  int (*copy)(CudaAddress to, CudaAddress from, size_t size, void* stream);
  int (*synchronize)(void* stream);
  int (*get_error_string)(int error, const char** text);
};

// Makes a device's primary context current in the calling thread for a scope. The driver counts and
// keeps primary contexts; like a CUDA runtime, we keep ours as long as the process lives.
class CudaDriver::CurrentContext {
 public:
  CurrentContext(const CudaDriver& driver, int64_t device) : driver_(driver) {
    auto used = driver.Use(device);
    status_ = used.status();
    if (!status_.ok()) return;
    device_ = *used;
    status_ = driver.Check(driver.functions_->push_context(device_.context));
  }
  ~CurrentContext() {
    void* context = nullptr;
    if (status_.ok()) driver_.functions_->pop_context(&context);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  const base::Status& status() const { return status_; }
  void* stream() const { return device_.stream; }

 private:
  const CudaDriver& driver_;
  Device device_;
  base::Status status_;
};

std::unique_ptr<CudaDriver> CudaDriver::Open(const std::string& path) {
  base::Result<std::unique_ptr<base::SharedLibrary>> opened = base::SharedLibrary::Open(path);
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
  find(functions->get_attribute, "cuDeviceGetAttribute");
  find(functions->retain_context, "cuDevicePrimaryCtxRetain");
  find(functions->push_context, "cuCtxPushCurrent_v2");
  find(functions->pop_context, "cuCtxPopCurrent_v2");
  find(functions->get_memory_info, "cuMemGetInfo_v2");
  find(functions->allocate, "cuMemAlloc_v2");
  find(functions->free, "cuMemFree_v2");
  find(functions->allocate_host, "cuMemHostAlloc");
  find(functions->free_host, "cuMemFreeHost");
  find(functions->can_access_peer, "cuDeviceCanAccessPeer");
  find(functions->enable_peer, "cuCtxEnablePeerAccess");
  find(functions->open_handle, "cuIpcOpenMemHandle_v2");
  find(functions->close_handle, "cuIpcCloseMemHandle");
  find(functions->get_address_range, "cuMemGetAddressRange_v2");
  find(functions->create_stream, "cuStreamCreate");
  find(functions->destroy_stream, "cuStreamDestroy_v2");
  find(functions->copy, "cuMemcpyAsync");
  find(functions->synchronize, "cuStreamSynchronize");
  find(functions->get_error_string, "cuGetErrorString");
  int count = 0;
  if (!is_complete || functions->init(0) != 0 || functions->get_device_count(&count) != 0 ||
      count <= 0) {
    return nullptr;
  }
  return std::unique_ptr<CudaDriver>(
      new CudaDriver(std::move(library), std::move(functions), count));
}

CudaDriver::CudaDriver(std::unique_ptr<base::SharedLibrary> library,
                       std::unique_ptr<Functions> functions, int device_count)
    : library_(std::move(library)),
      functions_(std::move(functions)),
      device_count_(device_count),
      devices_(static_cast<size_t>(device_count)) {}

CudaDriver::~CudaDriver() {
  for (const Device& device : devices_) {
    if (device.stream != nullptr) functions_->destroy_stream(device.stream);
  }
}

base::Status CudaDriver::Check(int result) const {
  if (result == 0) return base::OkStatus();
  const char* text = nullptr;
  functions_->get_error_string(result, &text);
  return base::InternalError(text != nullptr ? text : "CUDA error " + std::to_string(result));
}

base::Result<CudaDriver::Device> CudaDriver::Use(int64_t number) const {
  if (number < 0 || number >= device_count()) {
    return base::InvalidArgumentError("there is no GPU " + std::to_string(number));
  }
  base::MutexLock lock(mutex_);
  Device& device = devices_[static_cast<size_t>(number)];
  if (device.stream != nullptr) return device;
  int id = 0;
  NEREID_RETURN_IF_ERROR(Check(functions_->get_device(&id, static_cast<int>(number))));
  if (device.context == nullptr) {
    NEREID_RETURN_IF_ERROR(Check(functions_->retain_context(&device.context, id)));
  }
  // A stream of our own, because copies on the default stream would wait for every kernel.
  constexpr unsigned kNonBlocking = 1;
  NEREID_RETURN_IF_ERROR(Check(functions_->push_context(device.context)));
  const base::Status status = Check(functions_->create_stream(&device.stream, kNonBlocking));
  void* context = nullptr;
  functions_->pop_context(&context);
  NEREID_RETURN_IF_ERROR(status);
  return device;
}

base::Result<double> CudaDriver::ComputeCapability(int64_t device) const {
  constexpr int kMajor = 75;
  constexpr int kMinor = 76;
  int id = 0;
  int major = 0;
  int minor = 0;
  NEREID_RETURN_IF_ERROR(Check(functions_->get_device(&id, static_cast<int>(device))));
  NEREID_RETURN_IF_ERROR(Check(functions_->get_attribute(&major, kMajor, id)));
  NEREID_RETURN_IF_ERROR(Check(functions_->get_attribute(&minor, kMinor, id)));
  return major + minor / 10.0;
}

base::Result<CudaDriver::MemoryInfo> CudaDriver::ReadMemory(int64_t device) const {
  const CurrentContext context(*this, device);
  NEREID_RETURN_IF_ERROR(context.status());
  MemoryInfo info;
  NEREID_RETURN_IF_ERROR(Check(functions_->get_memory_info(&info.free, &info.total)));
  return info;
}

namespace {

// The errors after which, as the documentation of the driver says, the process must be ended and
// started again to use CUDA.
bool IsSticky(int error) {
  switch (error) {
    case 214:  // CUDA_ERROR_ECC_UNCORRECTABLE
    case 220:  // CUDA_ERROR_NVLINK_UNCORRECTABLE
    case 226:  // CUDA_ERROR_CONTAINED
    case 700:  // CUDA_ERROR_ILLEGAL_ADDRESS
    case 702:  // CUDA_ERROR_LAUNCH_TIMEOUT
    case 709:  // CUDA_ERROR_CONTEXT_IS_DESTROYED
    case 710:  // CUDA_ERROR_ASSERT
    case 714:  // CUDA_ERROR_HARDWARE_STACK_ERROR
    case 715:  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    case 716:  // CUDA_ERROR_MISALIGNED_ADDRESS
    case 717:  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    case 718:  // CUDA_ERROR_INVALID_PC
    case 719:  // CUDA_ERROR_LAUNCH_FAILED
      return true;
    default:
      return false;
  }
}

}  // namespace

base::Status CudaDriver::StickyError(int64_t device) const {
  NEREID_ASSIGN_OR_RETURN(const Device used, Use(device));
  int result = functions_->push_context(used.context);
  if (result == 0) {
    // Every call returns a sticky error; this one does nothing else and waits for nothing.
    MemoryInfo info;
    result = functions_->get_memory_info(&info.free, &info.total);
    void* context = nullptr;
    functions_->pop_context(&context);
  }
  return IsSticky(result) ? Check(result) : base::OkStatus();
}

base::Result<CudaAddress> CudaDriver::Allocate(size_t size, int64_t device) const {
  const CurrentContext context(*this, device);
  NEREID_RETURN_IF_ERROR(context.status());
  CudaAddress address = 0;
  NEREID_RETURN_IF_ERROR(Check(functions_->allocate(&address, size)));
  return address;
}

base::Status CudaDriver::Free(CudaAddress address, int64_t device) const {
  const CurrentContext context(*this, device);
  NEREID_RETURN_IF_ERROR(context.status());
  return Check(functions_->free(address));
}

base::Result<void*> CudaDriver::AllocatePinned(size_t size) const {
  constexpr unsigned kPortable = 1;  // pinned for all contexts
  const CurrentContext context(*this, 0);
  NEREID_RETURN_IF_ERROR(context.status());
  void* memory = nullptr;
  NEREID_RETURN_IF_ERROR(Check(functions_->allocate_host(&memory, size, kPortable)));
  return memory;
}

base::Status CudaDriver::FreePinned(void* memory) const {
  const CurrentContext context(*this, 0);
  NEREID_RETURN_IF_ERROR(context.status());
  return Check(functions_->free_host(memory));
}

base::Status CudaDriver::EnablePeerAccess(int64_t device, int64_t peer) const {
  constexpr int kAlreadyEnabled = 704;
  int ids[2] = {0, 0};
  NEREID_RETURN_IF_ERROR(Check(functions_->get_device(&ids[0], static_cast<int>(device))));
  NEREID_RETURN_IF_ERROR(Check(functions_->get_device(&ids[1], static_cast<int>(peer))));
  int can = 0;
  NEREID_RETURN_IF_ERROR(Check(functions_->can_access_peer(&can, ids[0], ids[1])));
  if (can == 0) return base::UnsupportedError("the devices cannot reach each other's memory");
  NEREID_ASSIGN_OR_RETURN(const Device theirs, Use(peer));
  const CurrentContext context(*this, device);
  NEREID_RETURN_IF_ERROR(context.status());
  const int result = functions_->enable_peer(theirs.context, 0);
  return result == kAlreadyEnabled ? base::OkStatus() : Check(result);
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

base::Status CudaDriver::Copy(void* to, const void* from, size_t size, int64_t device) const {
  if (size == 0) return base::OkStatus();
  const CurrentContext context(*this, device);
  NEREID_RETURN_IF_ERROR(context.status());
  NEREID_RETURN_IF_ERROR(
      Check(functions_->copy(ToCudaAddress(to), ToCudaAddress(from), size, context.stream())));
  return Check(functions_->synchronize(context.stream()));
}

}  // namespace nereid::memory
