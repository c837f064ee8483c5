// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/driver.h"

#include <algorithm>
#include <cstdlib>

namespace nereid::tensorrt {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

constexpr const char* kLibrary = "libcuda.so.1";
// Of CUdevice_attribute, CUstream_flags and CUevent_flags.
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;
constexpr unsigned kNonBlockingStream = 1;
constexpr unsigned kBlockingSync = 1;

Error NoDriver(const std::string& reason) {
  return Error::Unavailable(
      StrCat("TensorRT needs a GPU of NVIDIA and its driver, which is not there: ", reason));
}

}  // namespace

Result<std::shared_ptr<const Driver>> Driver::Open() {
  auto opened = OpenedLibrary::Open(kLibrary);
  if (!opened.ok()) {
    return NoDriver(opened.TakeError().message());
  }
  std::shared_ptr<Driver> driver(new Driver());
  if (const Error error = driver->FindAll(opened.value()); !error.ok()) {
    return NoDriver(error.message());
  }
  if (const Error error = driver->Check(driver->functions_.init(0), "cuInit"); !error.ok()) {
    return NoDriver(error.message());
  }
  if (const Error error = driver->Check(driver->functions_.get_device_count(&driver->device_count_),
                                        "cuDeviceGetCount");
      !error.ok()) {
    return NoDriver(error.message());
  }
  if (driver->device_count_ <= 0) {
    return NoDriver("the driver knows no GPU");
  }
  const backend::MutexLock lock(driver->mutex_);
  driver->contexts_.resize(static_cast<size_t>(driver->device_count_), nullptr);
  return std::shared_ptr<const Driver>(driver);
}

Error Driver::FindAll(const OpenedLibrary& library) {
  DriverFunctions& f = functions_;
  NEREID_KIT_TRY(library.Find("cuInit", &f.init));
  NEREID_KIT_TRY(library.Find("cuGetErrorString", &f.get_error_string));
  NEREID_KIT_TRY(library.Find("cuDriverGetVersion", &f.get_version));
  NEREID_KIT_TRY(library.Find("cuDeviceGetCount", &f.get_device_count));
  NEREID_KIT_TRY(library.Find("cuDeviceGet", &f.get_device));
  NEREID_KIT_TRY(library.Find("cuDeviceGetAttribute", &f.get_attribute));
  NEREID_KIT_TRY(library.Find("cuDevicePrimaryCtxRetain", &f.retain_context));
  NEREID_KIT_TRY(library.Find("cuCtxPushCurrent_v2", &f.push_context));
  NEREID_KIT_TRY(library.Find("cuCtxPopCurrent_v2", &f.pop_context));
  NEREID_KIT_TRY(library.Find("cuCtxGetStreamPriorityRange", &f.get_priorities));
  NEREID_KIT_TRY(library.Find("cuStreamCreateWithPriority", &f.create_stream));
  NEREID_KIT_TRY(library.Find("cuStreamDestroy_v2", &f.destroy_stream));
  NEREID_KIT_TRY(library.Find("cuStreamSynchronize", &f.wait_for_stream));
  NEREID_KIT_TRY(library.Find("cuStreamWaitEvent", &f.stream_waits));
  NEREID_KIT_TRY(library.Find("cuEventCreate", &f.create_event));
  NEREID_KIT_TRY(library.Find("cuEventDestroy_v2", &f.destroy_event));
  NEREID_KIT_TRY(library.Find("cuEventRecord", &f.record_event));
  NEREID_KIT_TRY(library.Find("cuEventSynchronize", &f.wait_for_event));
  NEREID_KIT_TRY(library.Find("cuEventElapsedTime", &f.elapsed_time));
  NEREID_KIT_TRY(library.Find("cuMemAlloc_v2", &f.allocate));
  NEREID_KIT_TRY(library.Find("cuMemFree_v2", &f.free));
  NEREID_KIT_TRY(library.Find("cuMemHostAlloc", &f.allocate_host));
  NEREID_KIT_TRY(library.Find("cuMemFreeHost", &f.free_host));
  NEREID_KIT_TRY(library.Find("cuMemcpyHtoDAsync_v2", &f.copy_to_device));
  NEREID_KIT_TRY(library.Find("cuMemcpyDtoHAsync_v2", &f.copy_to_host));
  NEREID_KIT_TRY(library.Find("cuMemcpyAsync", &f.copy));
  NEREID_KIT_TRY(library.Find("cuMemsetD8Async", &f.fill));
  NEREID_KIT_TRY(library.Find("cuStreamBeginCapture_v2", &f.begin_capture));
  NEREID_KIT_TRY(library.Find("cuStreamEndCapture", &f.end_capture));
  NEREID_KIT_TRY(library.Find("cuGraphInstantiateWithFlags", &f.instantiate));
  NEREID_KIT_TRY(library.Find("cuGraphLaunch", &f.launch));
  NEREID_KIT_TRY(library.Find("cuGraphExecDestroy", &f.destroy_executable));
  return library.Find("cuGraphDestroy", &f.destroy_graph);
}

Error Driver::Check(int result, const char* what) const {
  if (result == 0) {
    return {};
  }
  const char* text = nullptr;
  functions_.get_error_string(result, &text);
  return Error::Internal(
      StrCat(what, ": ", text != nullptr ? std::string(text) : StrCat("CUDA error ", result)));
}

Result<Capability> Driver::CapabilityOf(int device) const {
  int id = 0;
  Capability found;
  NEREID_KIT_TRY(Check(functions_.get_device(&id, device), "cuDeviceGet"));
  NEREID_KIT_TRY(
      Check(functions_.get_attribute(&found.major, kCapabilityMajor, id), "cuDeviceGetAttribute"));
  NEREID_KIT_TRY(
      Check(functions_.get_attribute(&found.minor, kCapabilityMinor, id), "cuDeviceGetAttribute"));
  return found;
}

Result<DriverFunctions::Context> Driver::ContextOf(int device) const {
  if (device < 0 || device >= device_count_) {
    return Error::InvalidArgument(StrCat("there is no GPU ", device));
  }
  const backend::MutexLock lock(mutex_);
  DriverFunctions::Context& context = contexts_[static_cast<size_t>(device)];
  if (context == nullptr) {
    int id = 0;
    NEREID_KIT_TRY(Check(functions_.get_device(&id, device), "cuDeviceGet"));
    NEREID_KIT_TRY(Check(functions_.retain_context(&context, id), "cuDevicePrimaryCtxRetain"));
  }
  return context;
}

OnDevice::OnDevice(const Driver& driver, int device) : driver_(driver) {
  auto context = driver.ContextOf(device);
  if (!context.ok()) {
    error_ = context.TakeError();
    return;
  }
  error_ = driver.Check(driver.functions().push_context(context.value()), "cuCtxPushCurrent");
  is_pushed_ = error_.ok();
}

OnDevice::~OnDevice() {
  DriverFunctions::Context context = nullptr;
  if (is_pushed_) {
    driver_.functions().pop_context(&context);
  }
}

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::Allocate(const Device& device, size_t size) {
  OnDevice scope(*device.driver, device.id);
  NEREID_KIT_TRY(scope.TakeError());
  DeviceAddress address = 0;
  NEREID_KIT_TRY(device.driver->Check(
      device.driver->functions().allocate(&address, std::max<size_t>(size, 1)), "cuMemAlloc"));
  return std::unique_ptr<DeviceMemory>(new DeviceMemory(device, address, size));
}

DeviceMemory::~DeviceMemory() {
  const OnDevice scope(*device_.driver, device_.id);
  device_.driver->functions().free(address_);
}

Result<std::unique_ptr<HostMemory>> HostMemory::Allocate(const Device& device, size_t size,
                                                         bool is_pinned) {
  constexpr size_t kAlignment = 64;
  const size_t rounded = (size + kAlignment) / kAlignment * kAlignment;
  void* memory = nullptr;
  if (is_pinned) {
    OnDevice scope(*device.driver, device.id);
    NEREID_KIT_TRY(scope.TakeError());
    constexpr unsigned kPortable = 1;  // for all devices
    NEREID_KIT_TRY(device.driver->Check(
        device.driver->functions().allocate_host(&memory, rounded, kPortable), "cuMemHostAlloc"));
  } else {
    memory = std::aligned_alloc(kAlignment, rounded);
    if (memory == nullptr) {
      return Error::Internal(StrCat("there is no memory for ", rounded, " bytes"));
    }
  }
  return std::unique_ptr<HostMemory>(
      new HostMemory(device, static_cast<char*>(memory), rounded, is_pinned));
}

HostMemory::~HostMemory() {
  if (!is_pinned_) {
    std::free(data_);
    return;
  }
  const OnDevice scope(*device_.driver, device_.id);
  device_.driver->functions().free_host(data_);
}

Result<std::unique_ptr<Stream>> Stream::Create(const Device& device, Priority priority) {
  OnDevice scope(*device.driver, device.id);
  NEREID_KIT_TRY(scope.TakeError());
  const DriverFunctions& f = device.driver->functions();
  int least = 0;
  int greatest = 0;
  NEREID_KIT_TRY(
      device.driver->Check(f.get_priorities(&least, &greatest), "cuCtxGetStreamPriorityRange"));
  const int number = priority == Priority::kMax ? greatest : priority == Priority::kMin ? least : 0;
  StreamHandle handle = nullptr;
  NEREID_KIT_TRY(device.driver->Check(f.create_stream(&handle, kNonBlockingStream, number),
                                      "cuStreamCreateWithPriority"));
  return std::unique_ptr<Stream>(new Stream(device, handle));
}

Stream::~Stream() {
  const OnDevice scope(*device_.driver, device_.id);
  device_.driver->functions().destroy_stream(handle_);
}

Result<std::unique_ptr<Event>> Event::Create(const Device& device, bool is_busy_waiting) {
  OnDevice scope(*device.driver, device.id);
  NEREID_KIT_TRY(scope.TakeError());
  EventHandle handle = nullptr;
  NEREID_KIT_TRY(device.driver->Check(
      device.driver->functions().create_event(&handle, is_busy_waiting ? 0 : kBlockingSync),
      "cuEventCreate"));
  return std::unique_ptr<Event>(new Event(device, handle));
}

Event::~Event() {
  const OnDevice scope(*device_.driver, device_.id);
  device_.driver->functions().destroy_event(handle_);
}

}  // namespace nereid::tensorrt
