// SPDX-License-Identifier: Apache-2.0
// A backend for models with one input WHAT (BYTES, [1]) and one output SAID (BYTES, [1]) that do
// what the input says, as a model with a mistake might: "crash", "abort", "exit", "hang", "leak",
// "smash" (write over memory), "open PATH" or "write PATH" (SAID is the error's number), "connect
// PORT", "signal PID", "threads" (respond later, on another thread); anything else is said back,
// after the number of the process. With the parameter `fails`, the model or its instance
// ("instance") does not load.
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "triton/core/tritonbackend.h"

namespace {

#define TRY(X)                                         \
  do {                                                 \
    if (TRITONSERVER_Error* error = (X)) return error; \
  } while (false)

TRITONSERVER_Error* ReadText(TRITONBACKEND_Request* request, std::string* text) {
  TRITONBACKEND_Input* input = nullptr;
  TRY(TRITONBACKEND_RequestInput(request, "WHAT", &input));
  const void* buffer = nullptr;
  uint64_t bytes = 0;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  TRY(TRITONBACKEND_InputBuffer(input, 0, &buffer, &bytes, &type, &id));
  text->assign(static_cast<const char*>(buffer) + sizeof(uint32_t), bytes - sizeof(uint32_t));
  return nullptr;
}

TRITONSERVER_Error* Say(TRITONBACKEND_Request* request, const std::string& text) {
  TRITONBACKEND_Response* response = nullptr;
  TRY(TRITONBACKEND_ResponseNew(&response, request));
  const int64_t shape[] = {1};
  TRITONBACKEND_Output* output = nullptr;
  TRY(TRITONBACKEND_ResponseOutput(response, &output, "SAID", TRITONSERVER_TYPE_BYTES, shape, 1));
  void* buffer = nullptr;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
  const auto size = static_cast<uint32_t>(text.size());
  TRY(TRITONBACKEND_OutputBuffer(output, &buffer, sizeof(size) + size, &type, &id));
  std::memcpy(buffer, &size, sizeof(size));
  std::memcpy(static_cast<char*>(buffer) + sizeof(size), text.data(), size);
  TRY(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, nullptr));
  return TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL);
}

[[noreturn]] void Leak() {
  for (;;) {
    constexpr size_t kStep = 1 << 20;
    std::memset(std::malloc(kStep), 1, kStep);
  }
}

void Smash() {
  // Volatile, or a compiler would see what this does.
  char* volatile memory = static_cast<char*>(std::malloc(64));
  for (size_t i = 0; i < (size_t{64} << 20); ++i) memory[i] = static_cast<char>(i);
  std::abort();
}

std::string Open(const std::string& path, int flags) {
  const int file = open(path.c_str(), flags, 0600);
  if (file < 0) return std::to_string(errno);
  close(file);
  return "0";
}

std::string Connect(uint16_t port) {
  const int made = socket(AF_INET, SOCK_STREAM, 0);
  if (made < 0) return std::to_string(errno);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int done = connect(made, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  const std::string result = std::to_string(done == 0 ? 0 : errno);
  close(made);
  return result;
}

std::string TemporaryFolder() {
  const char* const folder = std::getenv("TMPDIR");
  return folder == nullptr ? "" : folder;
}

// Leaves a file where a test can see it.
[[noreturn]] void Hang() {
  Open(TemporaryFolder() + "/hangs", O_WRONLY | O_CREAT);
  for (;;) pause();
}

// What a model may say after doing it.
std::string Do(const std::string& what) {
  const size_t space = what.find(' ');
  const std::string verb = what.substr(0, space);
  const std::string object = space == std::string::npos ? "" : what.substr(space + 1);
  if (verb == "crash") raise(SIGSEGV);
  if (verb == "abort") std::abort();
  if (verb == "exit") _exit(3);
  if (verb == "hang") Hang();
  if (verb == "leak") Leak();
  if (verb == "smash") Smash();
  if (verb == "open") return Open(object, O_RDONLY);
  if (verb == "write") return Open(object, O_WRONLY | O_CREAT);
  if (verb == "connect") return Connect(static_cast<uint16_t>(std::atoi(object.c_str())));
  if (verb == "signal") return std::to_string(kill(std::atoi(object.c_str()), 0) == 0 ? 0 : errno);
  if (verb == "temporary") return TemporaryFolder();
  return std::to_string(getpid()) + " " + what;
}

void Serve(TRITONBACKEND_Request* request) {
  std::string what;
  TRITONSERVER_ErrorDelete(ReadText(request, &what));
  if (what.starts_with("threads")) {
    std::thread([request, what] { TRITONSERVER_ErrorDelete(Say(request, Do(what))); }).detach();
    return;
  }
  TRITONSERVER_ErrorDelete(Say(request, Do(what)));
}

TRITONSERVER_Error* FailIf(TRITONBACKEND_Model* model, const char* what) {
  TRITONSERVER_Message* message = nullptr;
  TRY(TRITONBACKEND_ModelConfig(model, 1, &message));
  const char* text = nullptr;
  size_t size = 0;
  TRY(TRITONSERVER_MessageSerializeToJson(message, &text, &size));
  const bool fails = std::string_view(text, size).find(what) != std::string_view::npos;
  TRY(TRITONSERVER_MessageDelete(message));
  if (!fails) return nullptr;
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_NOT_FOUND, what);
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) {
  return FailIf(model, "the model fails");
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) {
  TRITONBACKEND_Model* model = nullptr;
  TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
  return FailIf(model, "the instance fails");
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* /*instance*/,
                                                       TRITONBACKEND_Request** requests,
                                                       const uint32_t request_count) {
  for (uint32_t r = 0; r < request_count; ++r) Serve(requests[r]);
  return nullptr;
}

}  // extern "C"
