// SPDX-License-Identifier: Apache-2.0
// A batching library that limits the bytes of the first input in a batch to the model's parameter
// MAX_BATCH_BYTES.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "triton/core/tritonbackend.h"

namespace {

struct Batcher {
  uint64_t limit = 0;
};

// The library's data about the batch being formed: how many bytes still fit.
struct Room {
  uint64_t left = 0;
};

// Returns the number after the first quote that follows `key`'s string_value in the configuration.
uint64_t ReadLimit(const std::string& json, const char* key) {
  size_t at = json.find(key);
  if (at == std::string::npos) return UINT64_MAX;
  at = json.find("string_value", at);
  at = json.find('"', json.find(':', at));
  return std::strtoull(json.c_str() + at + 1, nullptr, 10);
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher** batcher,
                                                         TRITONBACKEND_Model* model) {
  TRITONSERVER_Message* message = nullptr;
  if (auto* error = TRITONBACKEND_ModelConfig(model, 1, &message)) return error;
  const char* json = nullptr;
  size_t size = 0;
  auto* error = TRITONSERVER_MessageSerializeToJson(message, &json, &size);
  if (error == nullptr) {
    *batcher = reinterpret_cast<TRITONBACKEND_Batcher*>(
        new Batcher{ReadLimit(std::string(json, size), "MAX_BATCH_BYTES")});
  }
  TRITONSERVER_MessageDelete(message);
  return error;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher* batcher) {
  delete reinterpret_cast<Batcher*>(batcher);
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher* batcher,
                                                       void** userp) {
  *userp = new Room{reinterpret_cast<const Batcher*>(batcher)->limit};
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request* request,
                                                           void* userp, bool* should_include) {
  TRITONBACKEND_Input* input = nullptr;
  if (auto* error = TRITONBACKEND_RequestInputByIndex(request, 0, &input)) return error;
  uint64_t size = 0;
  if (auto* error = TRITONBACKEND_InputProperties(input, nullptr, nullptr, nullptr, nullptr, &size,
                                                  nullptr)) {
    return error;
  }
  Room& room = *static_cast<Room*>(userp);
  *should_include = size <= room.left;
  if (*should_include) room.left -= size;
  return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBatchFinalize(void* userp) {
  delete static_cast<Room*>(userp);
  return nullptr;
}

}  // extern "C"
