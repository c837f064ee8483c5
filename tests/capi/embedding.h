// SPDX-License-Identifier: Apache-2.0
// Helpers for tests of the C API. Every error that a test does not expect fails it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "triton/core/tritonserver.h"

namespace embedding {

// Returns "" for success, else "<code>: <message>". Deletes the error.
inline std::string Take(TRITONSERVER_Error* error) {
  if (error == nullptr) return "";
  std::string text =
      std::string(TRITONSERVER_ErrorCodeString(error)) + ": " + TRITONSERVER_ErrorMessage(error);
  TRITONSERVER_ErrorDelete(error);
  return text;
}

#define OK(call) ASSERT_EQ(::embedding::Take(call), "")
#define EXPECT_OK(call) EXPECT_EQ(::embedding::Take(call), "")

// A temporary folder of models, removed by the destructor.
class Repository {
 public:
  Repository() {
    std::string name = (std::filesystem::temp_directory_path() / "nereid-capi-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Repository() { std::filesystem::remove_all(path_); }
  Repository(const Repository&) = delete;
  Repository& operator=(const Repository&) = delete;

  const std::string& path() const { return path_; }
  Repository& Add(const std::string& name, const std::string& config) {
    std::filesystem::create_directories(path_ + "/" + name + "/1");
    std::ofstream(path_ + "/" + name + "/config.pbtxt") << config;
    return *this;
  }
  // Adds a model of the identity backend with FP32 input INPUT0 and output OUTPUT0 of one variable
  // dimension.
  Repository& AddIdentity(const std::string& name, const std::string& more = "max_batch_size: 8") {
    return Add(name, R"(
      backend: "identity"
      input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
      output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
    )" + more);
  }

 private:
  std::string path_;
};

// A server on a repository, stopped by the destructor.
class Server {
 public:
  using Adjust = std::function<void(TRITONSERVER_ServerOptions*)>;

  explicit Server(const std::string& repository, const Adjust& adjust = {}) {
    TRITONSERVER_ServerOptions* options = nullptr;
    EXPECT_OK(TRITONSERVER_ServerOptionsNew(&options));
    EXPECT_OK(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, repository.c_str()));
    EXPECT_OK(TRITONSERVER_ServerOptionsSetBackendDirectory(options, TEST_BACKENDS));
    EXPECT_OK(TRITONSERVER_ServerOptionsSetLogInfo(options, false));
    EXPECT_OK(TRITONSERVER_ServerOptionsSetExitTimeout(options, 30));
    EXPECT_OK(
        TRITONSERVER_ServerOptionsSetModelControlMode(options, TRITONSERVER_MODEL_CONTROL_NONE));
    if (adjust) adjust(options);
    error_ = Take(TRITONSERVER_ServerNew(&server_, options));
    EXPECT_OK(TRITONSERVER_ServerOptionsDelete(options));
  }
  ~Server() { EXPECT_OK(TRITONSERVER_ServerDelete(server_)); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  TRITONSERVER_Server* get() const { return server_; }
  // The error of TRITONSERVER_ServerNew.
  const std::string& error() const { return error_; }

 private:
  TRITONSERVER_Server* server_ = nullptr;
  std::string error_;
};

inline std::string Text(TRITONSERVER_Message* message) {
  const char* base = nullptr;
  size_t size = 0;
  EXPECT_OK(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
  std::string text(base, size);
  EXPECT_OK(TRITONSERVER_MessageDelete(message));
  return text;
}

// An output as it was delivered.
struct Output {
  std::string name;
  TRITONSERVER_DataType type;
  std::vector<int64_t> shape;
  std::string bytes;
  const void* base;

  template <typename T>
  std::vector<T> As() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

// One call of the response callback.
struct Reply {
  bool has_response = false;
  bool is_final = false;
  std::string error;
  std::string id;
  std::string model;
  int64_t version = 0;
  std::vector<Output> outputs;
};

inline Output ReadOutput(TRITONSERVER_InferenceResponse* response, uint32_t index) {
  const char* name = nullptr;
  TRITONSERVER_DataType type{};
  const int64_t* shape = nullptr;
  uint64_t rank = 0;
  const void* base = nullptr;
  size_t size = 0;
  TRITONSERVER_MemoryType memory{};
  int64_t memory_id = 0;
  void* userp = nullptr;
  EXPECT_OK(TRITONSERVER_InferenceResponseOutput(response, index, &name, &type, &shape, &rank,
                                                 &base, &size, &memory, &memory_id, &userp));
  EXPECT_NE(memory, TRITONSERVER_MEMORY_GPU);
  return {
      name, type, {shape, shape + rank}, std::string(static_cast<const char*>(base), size), base};
}

inline Reply ReadReply(TRITONSERVER_InferenceResponse* response, uint32_t flags) {
  Reply reply;
  reply.is_final = (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
  if (response == nullptr) return reply;
  reply.has_response = true;
  reply.error = Take(TRITONSERVER_InferenceResponseError(response));
  const char* text = nullptr;
  EXPECT_OK(TRITONSERVER_InferenceResponseId(response, &text));
  reply.id = text;
  EXPECT_OK(TRITONSERVER_InferenceResponseModel(response, &text, &reply.version));
  reply.model = text;
  uint32_t count = 0;
  EXPECT_OK(TRITONSERVER_InferenceResponseOutputCount(response, &count));
  for (uint32_t i = 0; i < count; ++i) reply.outputs.push_back(ReadOutput(response, i));
  return reply;
}

// An allocator that places outputs in memory from malloc.
class Allocator {
 public:
  Allocator() {
    EXPECT_OK(TRITONSERVER_ResponseAllocatorNew(&allocator_, Allocate, Release, nullptr));
  }
  ~Allocator() { EXPECT_OK(TRITONSERVER_ResponseAllocatorDelete(allocator_)); }
  TRITONSERVER_ResponseAllocator* get() const { return allocator_; }

 private:
  static TRITONSERVER_Error* Allocate(TRITONSERVER_ResponseAllocator*, const char*, size_t size,
                                      TRITONSERVER_MemoryType, int64_t, void*, void** buffer,
                                      void** buffer_userp, TRITONSERVER_MemoryType* type,
                                      int64_t* type_id) {
    *buffer = size == 0 ? nullptr : std::malloc(size);
    *buffer_userp = nullptr;
    *type = TRITONSERVER_MEMORY_CPU;
    *type_id = 0;
    return nullptr;
  }
  static TRITONSERVER_Error* Release(TRITONSERVER_ResponseAllocator*, void* buffer, void*, size_t,
                                     TRITONSERVER_MemoryType, int64_t) {
    std::free(buffer);
    return nullptr;
  }

  TRITONSERVER_ResponseAllocator* allocator_ = nullptr;
};

// Collects the result of one request. The callbacks may run on any thread.
class Outcome {
 public:
  static void OnRelease(TRITONSERVER_InferenceRequest*, uint32_t flags, void* self) {
    auto& outcome = *static_cast<Outcome*>(self);
    const std::lock_guard lock(outcome.mutex_);
    if ((flags & TRITONSERVER_REQUEST_RELEASE_ALL) != 0) ++outcome.releases_;
    outcome.changed_.notify_all();
  }
  static void OnResponse(TRITONSERVER_InferenceResponse* response, uint32_t flags, void* self) {
    Reply reply = ReadReply(response, flags);
    if (response != nullptr) {
      EXPECT_OK(TRITONSERVER_InferenceResponseDelete(response));
    }
    auto& outcome = *static_cast<Outcome*>(self);
    const std::lock_guard lock(outcome.mutex_);
    outcome.is_final_ = outcome.is_final_ || reply.is_final;
    outcome.replies_.push_back(std::move(reply));
    outcome.changed_.notify_all();
  }

  // Waits for the release and the final response.
  const std::vector<Reply>& Wait() {
    std::unique_lock lock(mutex_);
    const bool is_done = changed_.wait_for(lock, std::chrono::minutes(1),
                                           [&] { return is_final_ && releases_ > 0; });
    EXPECT_TRUE(is_done);
    return replies_;
  }
  int releases() const {
    const std::lock_guard lock(mutex_);
    return releases_;
  }
  size_t replies() const {
    const std::lock_guard lock(mutex_);
    return replies_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int releases_ = 0;
  bool is_final_ = false;
  std::vector<Reply> replies_;
};

// A request whose result goes to `outcome`. The destructor deletes it after its release.
class Request {
 public:
  Request(const Server& server, const char* model, int64_t version = -1) : server_(server) {
    EXPECT_OK(TRITONSERVER_InferenceRequestNew(&request_, server.get(), model, version));
  }
  ~Request() { EXPECT_OK(TRITONSERVER_InferenceRequestDelete(request_)); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  TRITONSERVER_InferenceRequest* get() const { return request_; }

  Request& SendResponsesTo(Outcome& outcome, const Allocator& allocator) {
    EXPECT_OK(
        TRITONSERVER_InferenceRequestSetReleaseCallback(request_, Outcome::OnRelease, &outcome));
    EXPECT_OK(TRITONSERVER_InferenceRequestSetResponseCallback(request_, allocator.get(), nullptr,
                                                               Outcome::OnResponse, &outcome));
    return *this;
  }
  template <typename T>
  Request& Input(const char* name, TRITONSERVER_DataType type, std::vector<int64_t> shape,
                 const std::vector<T>& values) {
    EXPECT_OK(
        TRITONSERVER_InferenceRequestAddInput(request_, name, type, shape.data(), shape.size()));
    EXPECT_OK(TRITONSERVER_InferenceRequestAppendInputData(
        request_, name, values.data(), values.size() * sizeof(T), TRITONSERVER_MEMORY_CPU, 0));
    return *this;
  }
  std::string Submit() {
    return Take(TRITONSERVER_ServerInferAsync(server_.get(), request_, nullptr));
  }

 private:
  const Server& server_;
  TRITONSERVER_InferenceRequest* request_ = nullptr;
};

}  // namespace embedding
