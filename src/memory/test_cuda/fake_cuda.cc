// SPDX-License-Identifier: Apache-2.0
// A replacement for the CUDA driver in tests: GPUs whose memory is shared memory of this machine.
// What a real driver would punish with undefined behaviour is an error or a crash here:
//
// - Device memory cannot be touched by the CPU: its addresses are pages without permissions, and
//   only the functions below reach the bytes behind them.
// - A copy on a stream happens when the stream is synchronised, not before.
// - Calls without a current context fail.
//
// The environment variable FAKE_CUDA_CONTROL names a file with a Control. Tests read the counts in
// it while the process runs, and let calls fail.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

enum Call {
  kInit,
  kRetainContext,
  kMemoryInfo,
  kAllocate,
  kFree,
  kHostAllocate,
  kHostFree,
  kEnablePeer,
  kIpcOpen,
  kIpcClose,
  kCreateStream,
  kCopy,
  kSynchronize,
  kCallCount
};

// tests/harness/cuda.py has the same layout.
struct Control {
  std::atomic<uint64_t> device_count;  // 0: two
  std::atomic<uint64_t> has_no_peers;
  std::atomic<uint64_t> capability;  // times ten; 0: 9.0
  std::atomic<uint64_t> live_device_bytes;
  std::atomic<uint64_t> live_host_bytes;
  std::atomic<uint64_t> open_handles;
  std::atomic<uint64_t> to_device_copies;
  std::atomic<uint64_t> to_host_copies;
  std::atomic<uint64_t> on_device_copies;
  std::atomic<uint64_t> peers_enabled;
  std::array<std::atomic<uint64_t>, kCallCount> calls;
  std::array<std::atomic<uint64_t>, kCallCount> errors;  // what a call returns instead of success
};

Control* MapControl() {
  const char* const path = std::getenv("FAKE_CUDA_CONTROL");
  const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool is_file = file >= 0 && ::ftruncate(file, sizeof(Control)) == 0;
  void* const memory =
      ::mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE,
             is_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, is_file ? file : -1, 0);
  if (file >= 0) ::close(file);
  return static_cast<Control*>(memory);
}

Control& control() {
  static Control* const mapped = MapControl();
  return *mapped;
}

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidContext = 201;
constexpr int kPeerUnsupported = 217;
constexpr uint64_t kDeviceBytes = uint64_t{1} << 30;
constexpr size_t kPage = 4096;

int Enter(Call call) {
  control().calls[call].fetch_add(1);
  return static_cast<int>(control().errors[call].load());
}

int DeviceCount() {
  const uint64_t set = control().device_count.load();
  return set == 0 ? 2 : static_cast<int>(set);
}

// A context is a pointer to the element of its device.
std::array<char, 64> contexts;
thread_local std::vector<void*> current;

int CurrentDevice() {
  return current.empty() ? -1
                         : static_cast<int>(static_cast<char*>(current.back()) - contexts.data());
}

// A piece of device memory: pages without permissions, and the bytes of the shared memory object
// behind them.
struct Piece {
  size_t size = 0;
  size_t mapped = 0;
  char* bytes = nullptr;
  int device = 0;
  std::string name;
  bool is_ours = false;  // and not another process's
};

struct Copy {
  uintptr_t to;
  uintptr_t from;
  size_t size;
};

std::mutex mutex;
std::map<uintptr_t, Piece> pieces;
std::map<uintptr_t, size_t> host_memory;
std::map<void*, std::vector<Copy>> streams;
uint64_t next_stream = 1;

// Maps the object called `name`.
int Map(const std::string& name, size_t size, bool is_ours, unsigned long long* address) {
  const int flags = O_RDWR | O_CLOEXEC | (is_ours ? O_CREAT | O_EXCL : 0);
  const int object = ::shm_open(name.c_str(), flags, 0600);
  if (object < 0) return kInvalidValue;
  if (!is_ours) size = static_cast<size_t>(::lseek(object, 0, SEEK_END));
  const size_t mapped = (size + kPage - 1) / kPage * kPage;
  if (is_ours && ::ftruncate(object, static_cast<off_t>(size)) != 0) return kOutOfMemory;
  void* const bytes = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, object, 0);
  void* const place =
      ::mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ::close(object);
  if (bytes == MAP_FAILED || place == MAP_FAILED) return kOutOfMemory;
  *address = reinterpret_cast<uintptr_t>(place);
  const std::lock_guard lock(mutex);
  pieces[reinterpret_cast<uintptr_t>(place)] = {
      size, mapped, static_cast<char*>(bytes), CurrentDevice(), name, is_ours};
  return 0;
}

int Unmap(unsigned long long address, bool is_ours, size_t* size) {
  const std::lock_guard lock(mutex);
  const auto found = pieces.find(static_cast<uintptr_t>(address));
  if (found == pieces.end() || found->second.is_ours != is_ours) return kInvalidValue;
  const Piece piece = found->second;
  pieces.erase(found);
  *size = piece.size;
  ::munmap(piece.bytes, piece.mapped);
  ::munmap(reinterpret_cast<void*>(static_cast<uintptr_t>(address)), piece.mapped);
  if (is_ours) ::shm_unlink(piece.name.c_str());
  return 0;
}

// Returns the piece with the address, or null for host memory. REQUIRES: `mutex` is held.
const Piece* Find(uintptr_t address, char** bytes) {
  const auto after = pieces.upper_bound(address);
  *bytes = reinterpret_cast<char*>(address);
  if (after == pieces.begin()) return nullptr;
  const auto& [start, piece] = *std::prev(after);
  if (address >= start + piece.mapped) return nullptr;
  *bytes = piece.bytes + (address - start);
  return &piece;
}

bool Fits(const Piece* piece, const char* bytes, size_t size) {
  return piece == nullptr || size <= static_cast<size_t>(piece->bytes + piece->size - bytes);
}

// REQUIRES: `mutex` is held.
int Run(const Copy& copy) {
  char* to = nullptr;
  char* from = nullptr;
  const Piece* const to_piece = Find(copy.to, &to);
  const Piece* const from_piece = Find(copy.from, &from);
  if (!Fits(to_piece, to, copy.size) || !Fits(from_piece, from, copy.size)) return kInvalidValue;
  auto& count = to_piece == nullptr     ? control().to_host_copies
                : from_piece == nullptr ? control().to_device_copies
                                        : control().on_device_copies;
  count.fetch_add(1);
  std::memmove(to, from, copy.size);
  return 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int cuInit(unsigned) { return Enter(kInit); }
int cuDeviceGetCount(int* count) {
  *count = DeviceCount();
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < DeviceCount() ? 0 : 101;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const uint64_t set = control().capability.load();
  const int capability = set == 0 ? 90 : static_cast<int>(set);
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = &contexts[static_cast<size_t>(device)];
  return Enter(kRetainContext);
}
int cuCtxPushCurrent_v2(void* context) {
  current.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = current.empty() ? nullptr : current.back();
  return 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) {
  *total = kDeviceBytes;
  *free = kDeviceBytes - std::min<uint64_t>(control().live_device_bytes.load(), kDeviceBytes);
  return current.empty() ? kInvalidContext : Enter(kMemoryInfo);
}

int cuMemAlloc_v2(unsigned long long* address, size_t size) {
  static std::atomic<uint64_t> number{0};
  if (current.empty()) return kInvalidContext;
  if (const int error = Enter(kAllocate); error != 0) return error;
  if (size == 0) return kInvalidValue;
  if (control().live_device_bytes.load() + size > kDeviceBytes) return kOutOfMemory;
  const std::string name =
      "/fake_cuda_" + std::to_string(::getpid()) + "_" + std::to_string(number.fetch_add(1));
  const int error = Map(name, size, true, address);
  if (error == 0) control().live_device_bytes.fetch_add(size);
  return error;
}
int cuMemFree_v2(unsigned long long address) {
  if (current.empty()) return kInvalidContext;
  if (const int error = Enter(kFree); error != 0) return error;
  size_t size = 0;
  const int error = Unmap(address, true, &size);
  control().live_device_bytes.fetch_sub(size);
  return error;
}
int cuMemHostAlloc(void** memory, size_t size, unsigned) {
  if (current.empty()) return kInvalidContext;
  if (const int error = Enter(kHostAllocate); error != 0) return error;
  *memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (*memory == MAP_FAILED) return kOutOfMemory;
  const std::lock_guard lock(mutex);
  host_memory[reinterpret_cast<uintptr_t>(*memory)] = size;
  control().live_host_bytes.fetch_add(size);
  return 0;
}
int cuMemFreeHost(void* memory) {
  if (const int error = Enter(kHostFree); error != 0) return error;
  const std::lock_guard lock(mutex);
  const auto found = host_memory.find(reinterpret_cast<uintptr_t>(memory));
  if (found == host_memory.end()) return kInvalidValue;
  control().live_host_bytes.fetch_sub(found->second);
  ::munmap(memory, found->second);
  host_memory.erase(found);
  return 0;
}

int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = control().has_no_peers.load() == 0 ? 1 : 0;
  return 0;
}
int cuCtxEnablePeerAccess(void*, unsigned) {
  if (current.empty()) return kInvalidContext;
  if (control().has_no_peers.load() != 0) return kPeerUnsupported;
  control().peers_enabled.fetch_add(1);
  return Enter(kEnablePeer);
}

int cuIpcGetMemHandle(char* handle, unsigned long long address) {
  const std::lock_guard lock(mutex);
  const auto found = pieces.find(static_cast<uintptr_t>(address));
  if (found == pieces.end()) return kInvalidValue;
  std::memset(handle, 0, 64);
  std::snprintf(handle, 64, "%s", found->second.name.c_str());
  return 0;
}
struct IpcHandle {
  char bytes[64];
};
int cuIpcOpenMemHandle_v2(unsigned long long* address, IpcHandle handle, unsigned) {
  if (current.empty()) return kInvalidContext;
  if (const int error = Enter(kIpcOpen); error != 0) return error;
  const std::string name(handle.bytes, ::strnlen(handle.bytes, sizeof handle.bytes));
  if (!name.starts_with("/fake_cuda_")) return kInvalidValue;
  const int error = Map(name, 0, false, address);
  if (error == 0) control().open_handles.fetch_add(1);
  return error;
}
int cuIpcCloseMemHandle(unsigned long long address) {
  if (const int error = Enter(kIpcClose); error != 0) return error;
  size_t size = 0;
  const int error = Unmap(address, false, &size);
  if (error == 0) control().open_handles.fetch_sub(1);
  return error;
}
int cuMemGetAddressRange_v2(unsigned long long* base, size_t* size, unsigned long long address) {
  const std::lock_guard lock(mutex);
  char* bytes = nullptr;
  const Piece* const piece = Find(static_cast<uintptr_t>(address), &bytes);
  if (piece == nullptr) return kInvalidValue;
  *base = address - static_cast<unsigned long long>(bytes - piece->bytes);
  *size = piece->size;
  return 0;
}

int cuStreamCreate(void** stream, unsigned) {
  if (current.empty()) return kInvalidContext;
  if (const int error = Enter(kCreateStream); error != 0) return error;
  const std::lock_guard lock(mutex);
  *stream = reinterpret_cast<void*>(static_cast<uintptr_t>(next_stream++));
  streams[*stream] = {};
  return 0;
}
int cuStreamDestroy_v2(void* stream) {
  const std::lock_guard lock(mutex);
  return streams.erase(stream) == 1 ? 0 : kInvalidValue;
}
int cuMemcpyAsync(unsigned long long to, unsigned long long from, size_t size, void* stream) {
  if (current.empty()) return kInvalidContext;
  if (const int error = Enter(kCopy); error != 0) return error;
  const std::lock_guard lock(mutex);
  const auto found = streams.find(stream);
  if (found == streams.end()) return kInvalidValue;
  found->second.push_back({static_cast<uintptr_t>(to), static_cast<uintptr_t>(from), size});
  return 0;
}
int cuStreamSynchronize(void* stream) {
  if (current.empty()) return kInvalidContext;
  if (const int error = Enter(kSynchronize); error != 0) {
    // A device that failed does not do later what it was asked to do before.
    const std::lock_guard lock(mutex);
    streams[stream].clear();
    return error;
  }
  const std::lock_guard lock(mutex);
  int result = 0;
  for (const Copy& copy : streams[stream]) {
    const int error = Run(copy);
    if (error != 0) result = error;
  }
  streams[stream].clear();
  return result;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == kOutOfMemory      ? "out of memory"
          : error == kInvalidValue   ? "invalid argument"
          : error == kInvalidContext ? "invalid device context"
          : error == 700             ? "an illegal memory access was encountered"
                                     : "unspecified launch failure";
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
