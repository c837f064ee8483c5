// SPDX-License-Identifier: Apache-2.0
// A stand-in for the CUDA driver (libcuda.so.1), for tests on machines without a GPU. Memory of its
// devices is memory of the host at addresses that the CPU cannot use, and work on a stream is done
// only when somebody waits for it: code that touches a device's memory, or does not wait, fails at
// once.
//
// Environment: FAKE_CUDA_DEVICES (default 2), FAKE_CUDA_LOG (a file that gets a line for some of
// the calls), FAKE_CUDA_FAIL (a file that names a function and the error that it returns, like
// "cuMemAlloc_v2 2"; it may be absent, and may change).
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

using Address = unsigned long long;

constexpr Address kDeviceBit = Address{1} << 62;
constexpr int kInvalidValue = 1;
constexpr int kNoDevice = 100;
constexpr int kInvalidContext = 201;
constexpr int kCaptureInvalidated = 901;

struct Event;

struct Operation {
  std::function<void()> work;
  Event* reached = nullptr;
};

struct Stream {
  std::deque<Operation> queue;
  bool is_capturing = false;
  std::vector<std::function<void()>> captured;
};

struct Event {
  Stream* stream = nullptr;
  bool is_reached = true;
  std::chrono::steady_clock::time_point when;
};

struct Graph {
  std::vector<std::function<void()>> work;
};

struct IpcHandle {
  char bytes[64];
};

std::recursive_mutex mutex;
std::map<Address, size_t> allocations;
std::set<void*> host_allocations;
std::set<Stream*> streams;
thread_local std::vector<void*> contexts;

// Counts the call in the log.
void Note(const std::string& line) {
  const char* const path = std::getenv("FAKE_CUDA_LOG");
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t written = write(file, text.data(), text.size());
  close(file);
}

int Failure(const char* function) {
  const char* const path = std::getenv("FAKE_CUDA_FAIL");
  if (path == nullptr) return 0;
  std::ifstream file(path);
  std::string name;
  int error = 0;
  while (file >> name >> error) {
    if (name == function) return error;
  }
  return 0;
}

// Returns the host's address of `size` bytes of a device's memory, or of the host's own.
char* Resolve(Address address, size_t size) {
  if ((address & kDeviceBit) == 0) return reinterpret_cast<char*>(address);
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return nullptr;
  const auto& [start, length] = *--after;
  const bool is_inside = address - start <= length && size <= length - (address - start);
  return is_inside ? reinterpret_cast<char*>(address & ~kDeviceBit) : nullptr;
}

int Devices() {
  const char* const count = std::getenv("FAKE_CUDA_DEVICES");
  return count != nullptr ? std::atoi(count) : 2;
}

void Run(Stream* stream, const Event* until) {
  while (!stream->queue.empty() && (until == nullptr || !until->is_reached)) {
    const Operation next = std::move(stream->queue.front());
    stream->queue.pop_front();
    if (next.work) next.work();
    if (next.reached != nullptr) {
      next.reached->is_reached = true;
      next.reached->when = std::chrono::steady_clock::now();
    }
  }
}

void WaitFor(Event* event) {
  if (!event->is_reached && event->stream != nullptr) Run(event->stream, event);
}

int Add(Stream* stream, std::function<void()> work) {
  if (contexts.empty()) return kInvalidContext;
  if (stream->is_capturing) {
    stream->captured.push_back(std::move(work));
  } else {
    stream->queue.push_back({std::move(work)});
  }
  return 0;
}

int Copy(Address to, Address from, size_t size, void* stream, const char* what) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (const int error = Failure(what)) return error;
  char* const target = Resolve(to, size);
  const char* const source = Resolve(from, size);
  if (target == nullptr || source == nullptr || size == 0) return kInvalidValue;
  return Add(static_cast<Stream*>(stream), [=] { std::memcpy(target, source, size); });
}

}  // namespace

extern "C" {

// For the stand-in of TensorRT: adds work to a stream.
int fakeCudaEnqueue(void* stream, void (*work)(void*), void* user) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  return Add(static_cast<Stream*>(stream), [=] { work(user); });
}
// The host's address of a device's memory.
void* fakeCudaResolve(void* address, size_t size) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  return Resolve(reinterpret_cast<Address>(address), size);
}
int fakeCudaHasContext() { return contexts.empty() ? 0 : 1; }

int cuInit(unsigned) {
  Note("cuInit");
  return Failure("cuInit");
}
int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == kInvalidValue         ? "invalid argument"
          : error == 2                   ? "out of memory"
          : error == kNoDevice           ? "no CUDA-capable device is detected"
          : error == kInvalidContext     ? "invalid device context"
          : error == 700                 ? "an illegal memory access was encountered"
          : error == kCaptureInvalidated ? "operation failed due to a previous error during capture"
                                         : nullptr;
  return *text != nullptr ? 0 : kInvalidValue;
}
int cuDeviceGetCount(int* count) {
  *count = Devices();
  return Failure("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < Devices() ? 0 : kInvalidValue;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  // Device 0 has compute capability 9.0, the others 8.0.
  *value = attribute == 75 ? (device == 0 ? 9 : 8) : 0;
  return Failure("cuDeviceGetAttribute");
}
int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return 0;
}
int cuCtxEnablePeerAccess(void*, unsigned) { return 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<uintptr_t>(device) + 1);
  return Failure("cuDevicePrimaryCtxRetain");
}
int cuCtxPushCurrent_v2(void* context) {
  if (const int error = Failure("cuCtxPushCurrent_v2")) return error;
  contexts.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return 0;
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return Failure("cuCtxGetStreamPriorityRange");
}
int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  if (contexts.empty()) return kInvalidContext;
  if (const int error = Failure("cuStreamCreateWithPriority")) return error;
  Note("stream flags " + std::to_string(flags) + " priority " + std::to_string(priority));
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  auto* const made = new Stream();
  streams.insert(made);
  *stream = made;
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}
int cuStreamDestroy_v2(void* stream) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  auto* const ended = static_cast<Stream*>(stream);
  Run(ended, nullptr);
  streams.erase(ended);
  delete ended;
  return 0;
}
int cuStreamSynchronize(void* stream) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (contexts.empty()) return kInvalidContext;
  Run(static_cast<Stream*>(stream), nullptr);
  return Failure("cuStreamSynchronize");
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (const int error = Failure("cuStreamWaitEvent")) return error;
  Note("stream waits for event");
  return Add(static_cast<Stream*>(stream), [=] { WaitFor(static_cast<Event*>(event)); });
}
int cuEventCreate(void** event, unsigned flags) {
  if (contexts.empty()) return kInvalidContext;
  if (const int error = Failure("cuEventCreate")) return error;
  Note("event flags " + std::to_string(flags));
  *event = new Event();
  return 0;
}
int cuEventDestroy_v2(void* event) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  WaitFor(static_cast<Event*>(event));
  delete static_cast<Event*>(event);
  return 0;
}
int cuEventRecord(void* event, void* stream) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (const int error = Failure("cuEventRecord")) return error;
  auto* const point = static_cast<Event*>(event);
  point->stream = static_cast<Stream*>(stream);
  point->is_reached = false;
  point->stream->queue.push_back({{}, point});
  return 0;
}
int cuEventSynchronize(void* event) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  WaitFor(static_cast<Event*>(event));
  return Failure("cuEventSynchronize");
}
int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const auto* const first = static_cast<Event*>(from);
  const auto* const last = static_cast<Event*>(to);
  if (!first->is_reached || !last->is_reached) return 600;
  *milliseconds = std::chrono::duration<float, std::milli>(last->when - first->when).count();
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t{1} << 34;
  return 0;
}
int cuMemAlloc_v2(Address* address, size_t size) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (contexts.empty()) return kInvalidContext;
  if (const int error = Failure("cuMemAlloc_v2")) return error;
  if (size == 0) return kInvalidValue;
  void* const memory = std::malloc(size);
  if (memory == nullptr) return 2;
  std::memset(memory, 0x5a, size);
  *address = reinterpret_cast<Address>(memory) | kDeviceBit;
  allocations[*address] = size;
  return 0;
}
int cuMemFree_v2(Address address) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (!allocations.contains(address)) return kInvalidValue;
  // As in the driver, memory is not freed under work that uses it.
  for (Stream* const stream : streams) Run(stream, nullptr);
  allocations.erase(address);
  std::free(reinterpret_cast<void*>(address & ~kDeviceBit));
  return 0;
}
int cuMemGetAddressRange_v2(Address* start, size_t* size, Address address) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return kInvalidValue;
  --after;
  *start = after->first;
  *size = after->second;
  return 0;
}
int cuMemHostAlloc(void** memory, size_t size, unsigned) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (contexts.empty()) return kInvalidContext;
  if (const int error = Failure("cuMemHostAlloc")) return error;
  *memory = std::malloc(size);
  host_allocations.insert(*memory);
  return 0;
}
int cuMemFreeHost(void* memory) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (!host_allocations.contains(memory)) return kInvalidValue;
  for (Stream* const stream : streams) Run(stream, nullptr);
  host_allocations.erase(memory);
  std::free(memory);
  return 0;
}
int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t size, void* stream) {
  {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    Note("to device " + std::to_string(size));
  }
  return Copy(to, reinterpret_cast<Address>(from), size, stream, "cuMemcpyHtoDAsync_v2");
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t size, void* stream) {
  Note("to host " + std::to_string(size));
  return Copy(reinterpret_cast<Address>(to), from, size, stream, "cuMemcpyDtoHAsync_v2");
}
int cuMemcpyAsync(Address to, Address from, size_t size, void* stream) {
  if ((to & from & kDeviceBit) != 0) Note("on device " + std::to_string(size));
  return Copy(to, from, size, stream, "cuMemcpyAsync");
}
int cuMemcpyDtoH_v2(void* to, Address from, size_t size) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const char* const source = Resolve(from, size);
  if (source == nullptr) return kInvalidValue;
  std::memcpy(to, source, size);
  return 0;
}
int cuMemcpyHtoD_v2(Address to, const void* from, size_t size) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  char* const target = Resolve(to, size);
  if (target == nullptr) return kInvalidValue;
  std::memcpy(target, from, size);
  return 0;
}
int cuMemsetD8Async(Address to, unsigned char value, size_t size, void* stream) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (const int error = Failure("cuMemsetD8Async")) return error;
  char* const target = Resolve(to, size);
  if (target == nullptr || size == 0) return kInvalidValue;
  return Add(static_cast<Stream*>(stream), [=] { std::memset(target, value, size); });
}
int cuStreamBeginCapture_v2(void* stream, int mode) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (const int error = Failure("cuStreamBeginCapture_v2")) return error;
  if (mode != 1) return kInvalidValue;
  static_cast<Stream*>(stream)->is_capturing = true;
  static_cast<Stream*>(stream)->captured.clear();
  return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  auto* const captured = static_cast<Stream*>(stream);
  captured->is_capturing = false;
  if (const int error = Failure("cuStreamEndCapture")) return error;
  *graph = new Graph{std::move(captured->captured)};
  Note("graph captured");
  return 0;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  if (const int error = Failure("cuGraphInstantiateWithFlags")) return error;
  *executable = new Graph(*static_cast<Graph*>(graph));
  return 0;
}
int cuGraphLaunch(void* executable, void* stream) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (const int error = Failure("cuGraphLaunch")) return error;
  Note("graph launched");
  const auto* const graph = static_cast<Graph*>(executable);
  return Add(static_cast<Stream*>(stream), [graph] {
    for (const auto& work : graph->work) work();
  });
}
int cuGraphExecDestroy(void* executable) {
  delete static_cast<Graph*>(executable);
  return 0;
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return 0;
}
// A handle is the path of a file that a test shares as a device's memory.
int cuIpcOpenMemHandle_v2(Address* address, IpcHandle handle, unsigned) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const int file = open(handle.bytes, O_RDWR | O_CLOEXEC);
  if (file < 0) return kInvalidValue;
  const off_t size = lseek(file, 0, SEEK_END);
  void* const memory =
      mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return kInvalidValue;
  *address = reinterpret_cast<Address>(memory) | kDeviceBit;
  allocations[*address] = static_cast<size_t>(size);
  return 0;
}
int cuIpcCloseMemHandle(Address address) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const auto found = allocations.find(address);
  if (found == allocations.end()) return kInvalidValue;
  munmap(reinterpret_cast<void*>(address & ~kDeviceBit), found->second);
  allocations.erase(found);
  return 0;
}

}  // extern "C"
