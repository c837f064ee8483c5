// SPDX-License-Identifier: Apache-2.0
// One inference request on its way from a frontend to a model instance. Pooled: creating one in
// steady state does not call the allocator. A RequestPtr is the right to process the request; it
// moves forward only: frontend, engine, scheduler, instance. Dropping it releases the request,
// after which its inputs are not read any more; its memory stays until its last response is gone.
//
// Text and tensors are views into the request's arena or into buffers that it holds (Hold).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "core/caller.h"
#include "core/model_handle.h"
#include "core/parameter.h"
#include "core/response_sink.h"
#include "memory/arena.h"
#include "memory/memory_type.h"
#include "observe/trace.h"
#include "tensor/shape.h"

namespace nereid::core {

class CancelHandle;
class KeptResponse;
class OpenRequests;
class Request;
class Response;
class RoundExecutor;
class SequenceStates;

// The `model_index` of an input that the server adds (sequence controls, states). Its name ends
// with a zero byte and, like its data, outlives the execution.
inline constexpr uint32_t kServerInput = UINT32_MAX;

// A contiguous part of an input's data, valid until the request is released.
struct DataChunk {
  const std::byte* data = nullptr;
  size_t size = 0;
  memory::Placement where;
  // Another process can change the data at any time (a client's shared memory). Code that must read
  // the same bytes twice copies them first.
  bool may_change = false;
  void* cuda_ipc_handle = nullptr;  // of GPU memory, if known
};

// The data of an input for the instances of one host policy, which replaces the data for the
// others.
struct HostPolicyData {
  std::string policy;
  std::vector<DataChunk> chunks;
};

// An input of a request: its description and views of its data.
struct RequestInput {
  std::string_view name;
  tensor::DataType type = tensor::DataType::kInvalid;
  // The shape as the client sent it; the engine replaces it by the model's (reshape applied). With
  // max_batch_size > 0 the first dimension is the batch.
  tensor::Shape shape;
  size_t byte_size = 0;  // of all chunks
  // The position in the model's inputs, or kServerInput; set by the engine.
  uint32_t model_index = 0;
  // The first chunk of the data. The engine validates the data against `type` and `shape`,
  // including the elements of BYTES.
  DataChunk first;
  std::vector<DataChunk> more;                // in order after `first`
  std::vector<HostPolicyData> host_policies;  // only requests of the C API have any
  Request* owner = nullptr;                   // set by AddInput

  // Adds a chunk after the last one.
  void Append(const DataChunk& chunk) {
    byte_size += chunk.size;
    if (chunk_count() > 0) [[unlikely]]
      return AppendMore(chunk);
    first = chunk;
  }
  size_t chunk_count() const {
    return (first.data != nullptr || first.size > 0 ? 1 : 0) + more.size();
  }
  const DataChunk& chunk(size_t i) const { return i == 0 ? first : more[i - 1]; }

 private:
  void AppendMore(const DataChunk& chunk);
};

// An output that the client requested. A request without any requests all outputs of the model.
struct RequestedOutput {
  std::string_view name;
  uint32_t model_index = 0;  // set by the engine
  // The frontend's index of its options for this output (binary, classification, shared memory).
  uint32_t tag = 0;
};

// The values are those of TRITONSERVER_RequestFlag.
enum RequestFlag : uint32_t { kSequenceStart = 1, kSequenceEnd = 2 };

// The id of a sequence; 0 or "" is "none".
using CorrelationId = std::variant<uint64_t, std::string_view>;

// The points in time in statistics and traces, in monotonic nanoseconds; 0 is "not yet".
struct RequestTimes {
  uint64_t request_start_ns = 0;
  uint64_t queue_start_ns = 0;
  uint64_t batch_start_ns = 0;  // when an instance took it out of the queue
};

// Releases the request; see RequestPtr.
struct RequestDeleter {
  void operator()(Request* request) const;
};
using RequestPtr = std::unique_ptr<Request, RequestDeleter>;

// Keeps the memory of a request (arena, sink, model) without the right to process it.
class RequestRef {
 public:
  RequestRef() = default;
  explicit RequestRef(Request& request);
  RequestRef(RequestRef&& other) noexcept : request_(std::exchange(other.request_, nullptr)) {}
  RequestRef& operator=(RequestRef&& other) noexcept {
    if (Request* const old = std::exchange(request_, std::exchange(other.request_, nullptr))) {
      Drop(*old);
    }
    return *this;
  }
  ~RequestRef() { Reset(); }
  explicit operator bool() const { return request_ != nullptr; }
  Request& operator*() const { return *request_; }
  Request* operator->() const { return request_; }
  void Reset() {
    if (request_ != nullptr) Drop(*std::exchange(request_, nullptr));
  }
  // Returns the reference as a bare pointer, for Adopt.
  Request* Release() { return std::exchange(request_, nullptr); }
  static RequestRef Adopt(Request* released) {
    RequestRef ref;
    ref.request_ = released;
    return ref;
  }

 private:
  static void Drop(Request& request);

  Request* request_ = nullptr;
};

// The common base of both request types of the C APIs: a backend's TRITONBACKEND_Request* is a
// Request, and an embedder's TRITONSERVER_InferenceRequest* makes a Request each time it is
// submitted. In Triton they are one class, and code that uses both APIs in one process passes one
// for the other.
class RequestHandle {
 public:
  // Returns the request in execution. If there is none, returns a placeholder whose responses go
  // nowhere.
  virtual RequestRef Refer() = 0;
  // Whether the holder of the handle may release the request.
  virtual bool is_backend_request() const = 0;

 protected:
  ~RequestHandle() = default;
};

// A request. Thread-compatible, except for the cancellation flag and references.
class Request final : public RequestHandle {
 public:
  // Makes a request whose responses go to `sink`. The sink outlives it (see
  // ResponseSink::OnRequestGone).
  static RequestPtr Create(ResponseSink& sink);

  RequestRef Refer() override { return RequestRef(*this); }
  bool is_backend_request() const override { return true; }

  // -- The client's request. Written by the frontend, then constant except for normalisation. --
  std::string_view id;
  ModelHandle model;  // pinned until the last response is gone
  std::vector<RequestInput> inputs;
  std::vector<RequestedOutput> outputs;
  std::vector<Parameter> parameters;
  CallerRef caller;    // null unless the server asks who sends requests
  uint32_t flags = 0;  // RequestFlag
  CorrelationId correlation_id = uint64_t{0};
  uint64_t priority = 0;    // 0: the model's default
  uint64_t timeout_us = 0;  // 0: the queue policy's default
  // When the client stops waiting for the response, in monotonic nanoseconds; 0: never.
  uint64_t deadline_ns = 0;
  // The reactor that received this request, or null: lets a scheduler run or wake up once per round
  // of arrivals.
  RoundExecutor* round = nullptr;

  // -- Set by the engine and the scheduler. --
  QuotaLeft quota_left;     // of a caller with a limit
  uint32_t batch_size = 0;  // 0 for a model without batching, which counts as 1
  RequestTimes times;
  // While in a scheduler's queue. REQUIRES: the lock of that scheduler is held.
  Request* next = nullptr;
  Request* previous = nullptr;
  void* queue = nullptr;       // the list that contains it; null: none
  uint64_t expires_at_ns = 0;  // when it leaves the queue or loses its turn; 0: never
  // Stands for an idle slot of a batch; its responses are discarded.
  bool is_padding = false;
  // The server made it beside its scheduler (padding, warm-up), which therefore cannot take it back
  // to execute it again.
  bool runs_once = false;
  // The model's backend has given the request back, so that this is not the first execution.
  bool was_rescheduled = false;
  // False if the server made the request (padding, warm-up), which leaves it out of statistics.
  bool is_counted = true;
  // The states of the request's sequence, if the model has states; set during execution.
  SequenceStates* states = nullptr;
  // Counts this request while the backend of an instance has it; null: no instance has taken it, or
  // its backend is done with it.
  OpenRequests* open_in = nullptr;
  // Null except for the few requests that are traced.
  std::shared_ptr<observe::Trace> trace;

  RequestInput& AddInput(std::string_view name, tensor::DataType type);
  // Adds an input with kServerInput and the given data. REQUIRES: the request is not being
  // executed.
  RequestInput& AddServerInput(std::string_view name, tensor::DataType type,
                               std::span<const int64_t> shape, DataChunk data);
  // Removes the inputs that AddServerInput added.
  void RemoveServerInputs();
  // Returns null if there is no such input.
  RequestInput* FindInput(std::string_view name);

  memory::Arena& arena() { return arena_; }
  // Keeps `buffer` until the request is released.
  void Hold(base::BufferRef buffer) { buffers_.push_back(std::move(buffer)); }
  ResponseSink& sink() const { return *sink_; }
  // Returns the previous sink. Used by ForwardingSink.
  ResponseSink& ReplaceSink(ResponseSink& sink) { return *std::exchange(sink_, &sink); }
  uint32_t batch_count() const { return batch_size == 0 ? 1 : batch_size; }
  // Returns "[request id: <id>] ", the prefix of every error about a request.
  std::string LogPrefix() const;

  void Cancel() { is_cancelled_.store(true, std::memory_order_release); }  // pairs with the load
  bool is_cancelled() const { return is_cancelled_.load(std::memory_order_acquire); }

  // Whether a chunk of any input is in the memory of a GPU. Set by those who add such chunks.
  bool has_gpu_inputs = false;

  // -- Set by the backend host. --
  // Clears output buffers before the backend receives them, because it may not write all bytes.
  bool clears_outputs = false;
  // Id, correlation id, names and texts of parameters are followed by a zero byte.
  bool has_c_strings = false;

  // Records that the final response was chosen. Returns false if that had happened before: a second
  // one must not reach the sink. Relaxed, because no other data depends on the flag, and a
  // request's responses are ordered.
  bool MarkCompleted() { return !is_completed_.exchange(true, std::memory_order_relaxed); }
  bool is_completed() const { return is_completed_.load(std::memory_order_relaxed); }

  // Records that the request begins to wait for its turn at `now_ns`.
  void MarkQueued(uint64_t now_ns) {
    times.queue_start_ns = now_ns;
    if (trace != nullptr) [[unlikely]]
      TraceQueued();
  }
  // Records the same at times.queue_start_ns, or at the current time if that is not set; returns
  // it.
  uint64_t MarkQueued() {
    MarkQueued(times.queue_start_ns != 0 ? times.queue_start_ns : base::NowNs());
    return times.queue_start_ns;
  }
  // Records `response` for metrics and traces. Called before it goes to the sink.
  void NoteResponse(const Response& response);

  // Called by ObjectPool.
  void Recycle();

 private:
  friend class CancelHandle;
  friend class KeptResponse;
  friend class RequestRef;
  friend struct RequestDeleter;

  // The parts of references_ that count who refers to the request without keeping it: handle_,
  // while it is open, and a KeptResponse; and the part that counts those who keep it.
  static constexpr uint32_t kHandle = uint32_t{1} << 31;
  static constexpr uint32_t kKept = uint32_t{1} << 30;
  static constexpr uint32_t kKeepers = kKept - 1;

  void TraceQueued();
  // Records that no backend uses the request any more: it was released after its final response, or
  // it is gone. A backend that releases a request first answers it through references.
  void LeaveBackend();
  void Unreference();
  // Ends what refers to the request without keeping it. REQUIRES: the caller alone keeps it.
  void DropObservers();
  void DropHandle();
  // Returns it to its pool, without references.
  void End();

  ResponseSink* sink_ = nullptr;
  CancelHandle* handle_ = nullptr;  // the one that was opened, if any
  std::atomic<uint32_t> references_{0};
  std::atomic<bool> is_cancelled_{false};
  std::atomic<bool> is_completed_{false};
  bool has_responded_ = false;  // confined to the sender
  std::vector<base::BufferRef> buffers_;
  // Sized so that a request takes one kilobyte, because many wait at once.
  memory::InlineArena<640> arena_;
};

inline RequestRef::RequestRef(Request& request) : request_(&request) {
  request.references_.fetch_add(1);
}

// Sends `response` as the final one, unless there was one before, and releases the request.
void Complete(RequestPtr request, ResponsePtr response);
// Completes the request with a response that has only this error.
void CompleteWithError(RequestPtr request, base::Status error);
// Completes the request with this error, after LogPrefix.
void CompleteWithPrefixedError(RequestPtr request, base::Status error);

}  // namespace nereid::core
