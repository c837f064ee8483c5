// SPDX-License-Identifier: Apache-2.0
// A backend for models with one input COMMAND (INT32, [1]), which it sends back as DONE after doing
// what the number says: nothing, wait until somebody writes to the pipe "gate" in the model's
// folder, or crash in one of several ways.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

#include "triton/core/tritonbackend.h"

namespace {

#define TRY(X)                                         \
  do {                                                 \
    if (TRITONSERVER_Error* error = (X)) return error; \
  } while (false)

// tests/harness/trouble.py has the same numbers.
enum Command : int32_t {
  kNothing,
  kWait,
  kWriteNowhere,
  kAbort,
  kDivideByZero,
  kIllegalInstruction,
  kReadPastFile,
  kRecurse,
  kWriteNowhereInThread,
  kThrowInThread,
};

volatile uintptr_t nowhere = 8;
volatile int zero = 0;

// Never ends: `zero` is zero.
[[gnu::noinline]] int Recurse(int depth) {
  if (zero == 1) return 0;
  volatile char frame[4096];
  frame[depth % 4096] = 1;
  return Recurse(depth + 1) + frame[depth % 7];
}

void WriteNowhere() { *reinterpret_cast<volatile int*>(nowhere) = 1; }

void ReadPastFile() {
  const int file = ::memfd_create("empty", 0);
  const auto* const bytes =
      static_cast<const volatile char*>(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0));
  zero = bytes[0];
}

void WaitAtGate(const std::string& folder) {
  char byte = 0;
  const int gate = ::open((folder + "/gate").c_str(), O_RDONLY | O_CLOEXEC);
  [[maybe_unused]] const ssize_t count = ::read(gate, &byte, 1);
  ::close(gate);
}

void Obey(int32_t command, const std::string& folder) {
  switch (command) {
    case kWait:
      return WaitAtGate(folder);
    case kWriteNowhere:
      return WriteNowhere();
    case kAbort:
      std::abort();
    case kDivideByZero:
      zero = 1000 / zero;  // 1 / x is no division for a compiler
      return;
    case kIllegalInstruction:
      __builtin_trap();
    case kReadPastFile:
      return ReadPastFile();
    case kRecurse:
      zero = Recurse(0);
      return;
    case kWriteNowhereInThread:
      return std::thread(WriteNowhere).join();
    case kThrowInThread:
      return std::thread([] { throw std::runtime_error("nobody catches this"); }).join();
    default:
      return;
  }
}

TRITONSERVER_Error* Answer(TRITONBACKEND_Request* request, TRITONBACKEND_Response* response,
                           const std::string& folder) {
  TRITONBACKEND_Input* input = nullptr;
  TRY(TRITONBACKEND_RequestInput(request, "COMMAND", &input));
  const void* data = nullptr;
  uint64_t bytes = 0;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  TRY(TRITONBACKEND_InputBuffer(input, 0, &data, &bytes, &type, &id));
  int32_t command = 0;
  std::memcpy(&command, data, sizeof command);
  Obey(command, folder);
  const int64_t shape[] = {1};
  TRITONBACKEND_Output* output = nullptr;
  TRY(TRITONBACKEND_ResponseOutput(response, &output, "DONE", TRITONSERVER_TYPE_INT32, shape, 1));
  void* buffer = nullptr;
  TRY(TRITONBACKEND_OutputBuffer(output, &buffer, sizeof command, &type, &id));
  std::memcpy(buffer, &command, sizeof command);
  return nullptr;
}

TRITONSERVER_Error* FolderOf(TRITONBACKEND_ModelInstance* instance, std::string& folder) {
  TRITONBACKEND_Model* model = nullptr;
  TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* path = nullptr;
  TRY(TRITONBACKEND_ModelRepository(model, &type, &path));
  folder = path;
  return nullptr;
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  std::string folder;
  TRY(FolderOf(instance, folder));
  for (uint32_t r = 0; r < request_count; ++r) {
    TRITONBACKEND_Response* response = nullptr;
    TRITONSERVER_Error* error = TRITONBACKEND_ResponseNew(&response, requests[r]);
    if (error == nullptr) {
      error = Answer(requests[r], response, folder);
      TRITONSERVER_ErrorDelete(
          TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error));
    }
    TRITONSERVER_ErrorDelete(error);
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_RequestRelease(requests[r], TRITONSERVER_REQUEST_RELEASE_ALL));
  }
  return nullptr;
}

}  // extern "C"
