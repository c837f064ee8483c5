// SPDX-License-Identifier: Apache-2.0
// Sends many requests through the C API from several threads, in all variants: reused or new
// requests, cancelled, refused, with many responses. Made for the sanitizer builds:
//
//   capi_stress --backends build/asan/backends [--requests 1000000] [--threads 4]
//
// The exit status is 0 if every request got the expected result.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "triton/core/tritonserver.h"

namespace {

constexpr int kInFlight = 32;  // per thread

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  std::_Exit(1);
}

void Check(TRITONSERVER_Error* error, const char* what) {
  if (error != nullptr) Fail(std::string(what) + ": " + TRITONSERVER_ErrorMessage(error));
}
#define CHECKED(call) Check(call, #call)

struct Totals {
  std::atomic<uint64_t> answered{0}, cancelled{0}, refused{0}, responses{0};
};

// Sends one request at a time, reusing the object.
class Lane {
 public:
  Lane(TRITONSERVER_Server* server, TRITONSERVER_ResponseAllocator* allocator, Totals& totals,
       uint32_t number)
      : server_(server), allocator_(allocator), totals_(totals) {
    values_[0] = number;
  }
  ~Lane() {
    if (request_ != nullptr) CHECKED(TRITONSERVER_InferenceRequestDelete(request_));
  }

  // Waits for the last request and starts another; `turn` selects the variant.
  void Next(uint64_t turn) {
    Wait();
    is_decoupled_ = turn % 16 == 7;
    const bool is_bad = turn % 64 == 9;
    if (request_ == nullptr || turn % 4 == 0 || is_decoupled_ != was_decoupled_) Renew();
    was_decoupled_ = is_decoupled_;
    values_[1] = static_cast<uint32_t>(turn);
    expects_cancel_ = turn % 32 == 5;
    {
      const std::lock_guard lock(mutex_);
      is_released_ = is_final_ = false;
      outputs_ = 0;
      may_be_cancelled_ = expects_cancel_;
    }
    if (is_bad) return Refuse();
    CHECKED(TRITONSERVER_ServerInferAsync(server_, request_, nullptr));
    if (expects_cancel_) CHECKED(TRITONSERVER_InferenceRequestCancel(request_));
  }

  void Wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(5),
                           [&] { return is_released_ && is_final_; })) {
      Fail("no answer within five minutes");
    }
  }

 private:
  void Renew() {
    if (request_ != nullptr) CHECKED(TRITONSERVER_InferenceRequestDelete(request_));
    CHECKED(TRITONSERVER_InferenceRequestNew(&request_, server_,
                                             is_decoupled_ ? "repeat" : "identity", -1));
    CHECKED(TRITONSERVER_InferenceRequestSetId(request_, "a request with an id of some length"));
    CHECKED(TRITONSERVER_InferenceRequestSetStringParameter(request_, "key", "value"));
    if (is_decoupled_) {
      Add("IN", TRITONSERVER_TYPE_INT32, {3}, kRepeated, sizeof(kRepeated));
      Add("DELAY", TRITONSERVER_TYPE_UINT32, {3}, kZeros, sizeof(kZeros));
      Add("WAIT", TRITONSERVER_TYPE_UINT32, {1}, kZeros, sizeof(uint32_t));
    } else {
      Add("INPUT0", TRITONSERVER_TYPE_UINT32, {1, 2}, values_, sizeof(values_));
    }
    CHECKED(TRITONSERVER_InferenceRequestSetReleaseCallback(request_, OnRelease, this));
    CHECKED(TRITONSERVER_InferenceRequestSetResponseCallback(request_, allocator_, nullptr,
                                                             OnResponse, this));
  }

  void Add(const char* name, TRITONSERVER_DataType type, std::vector<int64_t> shape,
           const void* data, size_t size) {
    CHECKED(
        TRITONSERVER_InferenceRequestAddInput(request_, name, type, shape.data(), shape.size()));
    CHECKED(TRITONSERVER_InferenceRequestAppendInputData(request_, name, data, size,
                                                         TRITONSERVER_MEMORY_CPU, 0));
  }

  // Requests an output that does not exist.
  void Refuse() {
    CHECKED(TRITONSERVER_InferenceRequestAddRequestedOutput(request_, "NONE"));
    TRITONSERVER_Error* const error = TRITONSERVER_ServerInferAsync(server_, request_, nullptr);
    if (error == nullptr) Fail("a wrong request was accepted");
    TRITONSERVER_ErrorDelete(error);
    CHECKED(TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(request_));
    totals_.refused.fetch_add(1);
    const std::lock_guard lock(mutex_);
    is_released_ = is_final_ = true;
  }

  static void OnRelease(TRITONSERVER_InferenceRequest*, uint32_t, void* self) {
    auto& lane = *static_cast<Lane*>(self);
    const std::lock_guard lock(lane.mutex_);
    if (lane.is_released_) Fail("released twice");
    lane.is_released_ = true;
    lane.changed_.notify_all();
  }
  static void OnResponse(TRITONSERVER_InferenceResponse* response, uint32_t flags, void* self) {
    static_cast<Lane*>(self)->Take(response, (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0);
  }

  void Take(TRITONSERVER_InferenceResponse* response, bool is_final) {
    totals_.responses.fetch_add(1);
    bool is_cancelled = false;
    bool has_output = false;
    if (response != nullptr) {
      TRITONSERVER_Error* const error = TRITONSERVER_InferenceResponseError(response);
      if (error != nullptr) {
        is_cancelled = TRITONSERVER_ErrorCode(error) == TRITONSERVER_ERROR_CANCELLED;
        if (!is_cancelled) Fail(TRITONSERVER_ErrorMessage(error));
        TRITONSERVER_ErrorDelete(error);
      } else {
        has_output = true;
        CheckOutput(response);
      }
      CHECKED(TRITONSERVER_InferenceResponseDelete(response));
    }
    const std::lock_guard lock(mutex_);
    if (is_final_) Fail("a response after the last one");
    if (is_cancelled && !may_be_cancelled_) Fail("cancelled by nobody");
    outputs_ += has_output ? 1 : 0;
    if (!is_final) return;
    const int expected = is_decoupled_ ? 3 : 1;
    if (!may_be_cancelled_ && outputs_ != expected) Fail("a wrong number of responses");
    (is_cancelled ? totals_.cancelled : totals_.answered).fetch_add(1);
    is_final_ = true;
    changed_.notify_all();
  }

  void CheckOutput(TRITONSERVER_InferenceResponse* response) {
    const char* name = nullptr;
    TRITONSERVER_DataType type{};
    const int64_t* shape = nullptr;
    uint64_t rank = 0;
    const void* base = nullptr;
    size_t size = 0;
    TRITONSERVER_MemoryType memory{};
    int64_t memory_id = 0;
    void* userp = nullptr;
    CHECKED(TRITONSERVER_InferenceResponseOutput(response, 0, &name, &type, &shape, &rank, &base,
                                                 &size, &memory, &memory_id, &userp));
    if (is_decoupled_) return;
    if (size != sizeof(values_) || std::memcmp(base, values_, size) != 0) Fail("a wrong answer");
  }

  static constexpr int32_t kRepeated[] = {1, 2, 3};
  static constexpr uint32_t kZeros[] = {0, 0, 0};

  TRITONSERVER_Server* const server_;
  TRITONSERVER_ResponseAllocator* const allocator_;
  Totals& totals_;
  TRITONSERVER_InferenceRequest* request_ = nullptr;
  bool is_decoupled_ = false, was_decoupled_ = false, expects_cancel_ = false;
  uint32_t values_[2] = {};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_released_ = true, is_final_ = true, may_be_cancelled_ = false;
  int outputs_ = 0;
};

TRITONSERVER_Error* Allocate(TRITONSERVER_ResponseAllocator*, const char*, size_t size,
                             TRITONSERVER_MemoryType, int64_t, void*, void** buffer,
                             void** buffer_userp, TRITONSERVER_MemoryType* type, int64_t* type_id) {
  *buffer = std::malloc(size == 0 ? 1 : size);
  *buffer_userp = nullptr;
  *type = TRITONSERVER_MEMORY_CPU;
  *type_id = 0;
  return nullptr;
}

TRITONSERVER_Error* Release(TRITONSERVER_ResponseAllocator*, void* buffer, void*, size_t,
                            TRITONSERVER_MemoryType, int64_t) {
  std::free(buffer);
  return nullptr;
}

void WriteModel(const std::string& repository, const std::string& name, const char* config) {
  std::filesystem::create_directories(repository + "/" + name + "/1");
  std::ofstream(repository + "/" + name + "/config.pbtxt") << config;
}

std::string MakeRepository() {
  std::string path = (std::filesystem::temp_directory_path() / "nereid-stress-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) Fail("no temporary folder");
  WriteModel(path, "identity", R"(
    backend: "identity" max_batch_size: 8 dynamic_batching { }
    instance_group { kind: KIND_CPU count: 2 }
    input [ { name: "INPUT0" data_type: TYPE_UINT32 dims: [ 2 ] } ]
    output [ { name: "OUTPUT0" data_type: TYPE_UINT32 dims: [ 2 ] } ])");
  WriteModel(path, "repeat", R"(
    backend: "repeat" max_batch_size: 0 model_transaction_policy { decoupled: true }
    input [ { name: "IN" data_type: TYPE_INT32 dims: [ -1 ] },
            { name: "DELAY" data_type: TYPE_UINT32 dims: [ -1 ] },
            { name: "WAIT" data_type: TYPE_UINT32 dims: [ 1 ] } ]
    output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] },
             { name: "IDX" data_type: TYPE_UINT32 dims: [ 1 ] } ])");
  return path;
}

TRITONSERVER_Server* Start(const std::string& repository, const std::string& backends) {
  TRITONSERVER_ServerOptions* options = nullptr;
  TRITONSERVER_Server* server = nullptr;
  CHECKED(TRITONSERVER_ServerOptionsNew(&options));
  CHECKED(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options, repository.c_str()));
  CHECKED(TRITONSERVER_ServerOptionsSetBackendDirectory(options, backends.c_str()));
  CHECKED(TRITONSERVER_ServerOptionsSetLogInfo(options, false));
  CHECKED(TRITONSERVER_ServerNew(&server, options));
  CHECKED(TRITONSERVER_ServerOptionsDelete(options));
  return server;
}

void Run(TRITONSERVER_Server* server, TRITONSERVER_ResponseAllocator* allocator, Totals& totals,
         uint64_t requests) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (uint32_t i = 0; i < kInFlight; ++i) {
    lanes.push_back(std::make_unique<Lane>(server, allocator, totals, i));
  }
  for (uint64_t turn = 0; turn < requests; ++turn) lanes[turn % kInFlight]->Next(turn);
  for (auto& lane : lanes) lane->Wait();
}

}  // namespace

int main(int argc, char** argv) {
  std::string backends;
  uint64_t requests = 1'000'000;
  unsigned threads = 4;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--backends") backends = argv[i + 1];
    if (flag == "--requests") requests = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--threads") threads = static_cast<unsigned>(std::atoi(argv[i + 1]));
  }
  if (backends.empty() || threads == 0)
    Fail("usage: --backends FOLDER [--requests N] [--threads N]");
  const std::string repository = MakeRepository();
  TRITONSERVER_Server* const server = Start(repository, backends);
  TRITONSERVER_ResponseAllocator* allocator = nullptr;
  CHECKED(TRITONSERVER_ResponseAllocatorNew(&allocator, Allocate, Release, nullptr));
  Totals totals;
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < threads; ++i) {
      workers.emplace_back([&] { Run(server, allocator, totals, requests / threads); });
    }
    for (std::thread& worker : workers) worker.join();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECKED(TRITONSERVER_ServerDelete(server));
  CHECKED(TRITONSERVER_ResponseAllocatorDelete(allocator));
  std::filesystem::remove_all(repository);
  const uint64_t all = totals.answered + totals.cancelled + totals.refused;
  std::printf(
      "%llu requests in %.1f s: %llu answered, %llu cancelled, %llu refused; %llu responses\n",
      static_cast<unsigned long long>(all), took.count(),
      static_cast<unsigned long long>(totals.answered),
      static_cast<unsigned long long>(totals.cancelled),
      static_cast<unsigned long long>(totals.refused),
      static_cast<unsigned long long>(totals.responses));
  if (all != requests / threads * threads) Fail("requests are missing");
  return 0;
}
