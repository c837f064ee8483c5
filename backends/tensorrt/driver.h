// SPDX-License-Identifier: Apache-2.0
// The CUDA driver, opened at run time: the backend is built and loaded without CUDA, and a machine
// without a driver only lacks TensorRT models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend_kit/error.h"
#include "backend_kit/mutex.h"
#include "tensorrt_backend/opened_library.h"

namespace nereid::tensorrt {

using DeviceAddress = unsigned long long;  // CUdeviceptr
using StreamHandle = void*;                // CUstream, which is also the runtime's cudaStream_t
using EventHandle = void*;
using GraphHandle = void*;

// The compute capability of a device. Immutable.
struct Capability {
  int major = 0;
  int minor = 0;
  std::string text() const { return backend::StrCat(major, ".", minor); }
};

// Names, argument types and numbers are those of the CUDA driver API. Where an entry point has a
// version in its name, CUDA's header maps the plain name to it.
struct DriverFunctions {
  using Context = void*;

  int (*init)(unsigned flags);
  int (*get_error_string)(int error, const char** text);
  int (*get_version)(int* version);
  int (*get_device_count)(int* count);
  int (*get_device)(int* device, int ordinal);
  int (*get_attribute)(int* value, int attribute, int device);
  int (*retain_context)(Context* context, int device);
  int (*push_context)(Context context);
  int (*pop_context)(Context* context);
  int (*get_priorities)(int* least, int* greatest);
  int (*create_stream)(StreamHandle* stream, unsigned flags, int priority);
  int (*destroy_stream)(StreamHandle stream);
  int (*wait_for_stream)(StreamHandle stream);
  int (*stream_waits)(StreamHandle stream, EventHandle event, unsigned flags);
  int (*create_event)(EventHandle* event, unsigned flags);
  int (*destroy_event)(EventHandle event);
  int (*record_event)(EventHandle event, StreamHandle stream);
  int (*wait_for_event)(EventHandle event);
  int (*elapsed_time)(float* milliseconds, EventHandle from, EventHandle to);
  int (*allocate)(DeviceAddress* address, size_t size);
  int (*free)(DeviceAddress address);
  int (*allocate_host)(void** memory, size_t size, unsigned flags);
  int (*free_host)(void* memory);
  int (*copy_to_device)(DeviceAddress to, const void* from, size_t size, StreamHandle stream);
  int (*copy_to_host)(void* to, DeviceAddress from, size_t size, StreamHandle stream);
  // Between any two devices, or in one.
  int (*copy)(DeviceAddress to, DeviceAddress from, size_t size, StreamHandle stream);
  int (*fill)(DeviceAddress to, unsigned char value, size_t size, StreamHandle stream);
  int (*begin_capture)(StreamHandle stream, int mode);
  int (*end_capture)(StreamHandle stream, GraphHandle* graph);
  int (*instantiate)(GraphHandle* executable, GraphHandle graph, unsigned long long flags);
  int (*launch)(GraphHandle executable, StreamHandle stream);
  int (*destroy_executable)(GraphHandle executable);
  int (*destroy_graph)(GraphHandle graph);
};

// The driver of this machine. Thread-safe. It is never destroyed before what it was used for.
class Driver {
 public:
  // Opens and initialises the driver. Fails, with the reason, without a driver or without a GPU.
  static backend::Result<std::shared_ptr<const Driver>> Open();

  int device_count() const { return device_count_; }
  backend::Result<Capability> CapabilityOf(int device) const;

  // Fails with the driver's text if `result` is not success; `what` says what was tried.
  backend::Error Check(int result, const char* what) const;
  // The functions need a device's context in the calling thread, which OnDevice gives them.
  const DriverFunctions& functions() const { return functions_; }

 private:
  friend class OnDevice;

  Driver() = default;
  backend::Error FindAll(const OpenedLibrary& library);
  backend::Result<DriverFunctions::Context> ContextOf(int device) const;

  DriverFunctions functions_ = {};
  int device_count_ = 0;
  mutable backend::Mutex mutex_;
  // Each device's primary context. The driver counts them; like CUDA's runtime, we keep ours as
  // long as the process lives.
  mutable std::vector<DriverFunctions::Context> contexts_ NEREID_KIT_GUARDED_BY(mutex_);
};

// Makes a device the current one of the calling thread for a scope, for the driver and for
// TensorRT.
class OnDevice {
 public:
  OnDevice(const Driver& driver, int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  // Returns the error that kept the device from becoming the current one.
  backend::Error TakeError() { return std::move(error_); }

 private:
  const Driver& driver_;
  bool is_pushed_ = false;
  backend::Error error_;
};

// A driver and one of its devices, by which memory and streams are owned. Immutable.
struct Device {
  std::shared_ptr<const Driver> driver;
  int id = 0;
};

// Memory of a device. Thread-compatible.
class DeviceMemory {
 public:
  // Allocates at least one byte.
  static backend::Result<std::unique_ptr<DeviceMemory>> Allocate(const Device& device, size_t size);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  DeviceAddress address() const { return address_; }
  void* pointer() const { return reinterpret_cast<void*>(address_); }
  size_t size() const { return size_; }

 private:
  DeviceMemory(const Device& device, DeviceAddress address, size_t size)
      : device_(device), address_(address), size_(size) {}

  const Device device_;
  const DeviceAddress address_;
  const size_t size_;
};

// Memory of the host that the device copies from and to. Page-locked if the driver was asked for
// that, ordinary otherwise. Thread-compatible.
class HostMemory {
 public:
  // Allocates at least one byte.
  static backend::Result<std::unique_ptr<HostMemory>> Allocate(const Device& device, size_t size,
                                                               bool is_pinned);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  HostMemory(const Device& device, char* data, size_t size, bool is_pinned)
      : device_(device), data_(data), size_(size), is_pinned_(is_pinned) {}

  const Device device_;
  char* const data_;
  const size_t size_;
  const bool is_pinned_;
};

// A queue of work on a device. Thread-compatible.
class Stream {
 public:
  // Priorities as in `optimization.priority`.
  enum class Priority { kDefault, kMin, kMax };

  static backend::Result<std::unique_ptr<Stream>> Create(const Device& device, Priority priority);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  StreamHandle handle() const { return handle_; }

 private:
  Stream(const Device& device, StreamHandle handle) : device_(device), handle_(handle) {}

  const Device device_;
  const StreamHandle handle_;
};

// A point in a stream, with the time at which it was reached. Thread-compatible.
class Event {
 public:
  // With `is_busy_waiting` a thread that waits for it spins rather than sleeps.
  static backend::Result<std::unique_ptr<Event>> Create(const Device& device, bool is_busy_waiting);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  EventHandle handle() const { return handle_; }

 private:
  Event(const Device& device, EventHandle handle) : device_(device), handle_(handle) {}

  const Device device_;
  const EventHandle handle_;
};

}  // namespace nereid::tensorrt
