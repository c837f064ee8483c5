// SPDX-License-Identifier: Apache-2.0
// One inference request on its way from a frontend to a model instance. Pooled: creating one in
// steady state touches no allocator. A RequestPtr is the right to process it and moves forward,
// never back: frontend, engine, scheduler, instance. Dropping it releases the request, after which
// its inputs are not read again; its memory stays until its last response is gone.
//
// Text and tensors are views: into the request's arena or into buffers it holds (Hold).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/buffer.h"
#include "base/clock.h"
#include "core/model_handle.h"
#include "core/parameter.h"
#include "core/response_sink.h"
#include "memory/arena.h"
#include "memory/memory_type.h"
#include "observe/trace.h"
#include "tensor/shape.h"

namespace nereid::core {

class Request;
class Response;
class RoundExecutor;
class SequenceStates;

// `model_index` of an input that the server adds itself (sequence controls, states). Its name ends
// with a zero byte and, like its data, outlives the execution.
inline constexpr uint32_t kServerInput = UINT32_MAX;

// A contiguous piece of an input's data, alive until the request is released.
struct DataChunk {
  const std::byte* data = nullptr;
  size_t size = 0;
  memory::Placement where;
  // Another process can write it meanwhile (a client's shared memory): who must see the same bytes
  // twice copies them first.
  bool may_change = false;
};

// Data of an input for the instances of one host policy, in place of what the others see.
struct HostPolicyData {
  std::string policy;
  std::vector<DataChunk> chunks;
};

// An input of a request: its description, and views of its data.
struct RequestInput {
  std::string_view name;
  tensor::DataType type = tensor::DataType::kInvalid;
  // As the client sent it; the engine replaces it by what the model sees (reshape applied). With
  // max_batch_size > 0 the first dimension is the batch.
  tensor::Shape shape;
  size_t byte_size = 0;  // of all chunks
  // Position in the model's inputs, or kServerInput; set by the engine.
  uint32_t model_index = 0;
  // The data. The engine checks that they fit `type` and `shape`, down to the elements of BYTES.
  DataChunk first;
  std::vector<DataChunk> more;                // in order after `first`
  std::vector<HostPolicyData> host_policies;  // only requests of the C API have any
  Request* owner = nullptr;                   // set by AddInput

  // Adds a chunk at the end.
  void Append(DataChunk chunk);
  size_t chunk_count() const {
    return (first.data != nullptr || first.size > 0 ? 1 : 0) + more.size();
  }
  const DataChunk& chunk(size_t i) const { return i == 0 ? first : more[i - 1]; }
};

// An output the client asked for. A request without any asks for all of the model's.
struct RequestedOutput {
  std::string_view name;
  uint32_t model_index = 0;  // set by the engine
  // The frontend's own index of its options for this output (binary, classification, shared
  // memory).
  uint32_t tag = 0;
};

// The values are those of TRITONSERVER_RequestFlag.
enum RequestFlag : uint32_t { kSequenceStart = 1, kSequenceEnd = 2 };

// Identifies a sequence; 0 or "" is "none".
using CorrelationId = std::variant<uint64_t, std::string_view>;

// Monotonic nanoseconds of the points that statistics and traces name; 0 is "not yet".
struct RequestTimes {
  uint64_t request_start_ns = 0;
  uint64_t queue_start_ns = 0;
  uint64_t batch_start_ns = 0;  // taken out of the queue by an instance
};

// Ends the right to process the request; see RequestPtr.
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
    std::swap(request_, other.request_);
    return *this;
  }
  ~RequestRef();
  explicit operator bool() const { return request_ != nullptr; }
  Request& operator*() const { return *request_; }
  Request* operator->() const { return request_; }
  void Reset();
  // Hands the reference out as a bare pointer, for Adopt.
  Request* Release() { return std::exchange(request_, nullptr); }
  static RequestRef Adopt(Request* released) {
    RequestRef ref;
    ref.request_ = released;
    return ref;
  }

 private:
  Request* request_ = nullptr;
};

// What is behind both request types of the C APIs: a backend's TRITONBACKEND_Request* is a Request,
// an embedder's TRITONSERVER_InferenceRequest* only makes one each time it is submitted. In Triton
// they are one class, and code that has both in one process passes one for the other.
class RequestHandle {
 public:
  // The request that is executed. One that stands in, when none is: it answers nobody.
  virtual RequestRef Refer() = 0;
  // False: releasing it is not up to whoever holds the handle.
  virtual bool is_backends() const = 0;

 protected:
  ~RequestHandle() = default;
};

// Thread-compatible, except for the cancellation flag and references.
class Request final : public RequestHandle {
 public:
  // A fresh request that answers to `sink`. The sink outlives it (see ResponseSink::OnRequestGone).
  static RequestPtr Create(ResponseSink& sink);

  RequestRef Refer() override { return RequestRef(*this); }
  bool is_backends() const override { return true; }

  // -- What the client asked. Written by the frontend, then constant but for normalisation. --
  std::string_view id;
  ModelHandle model;  // pinned until the last response is gone
  std::vector<RequestInput> inputs;
  std::vector<RequestedOutput> outputs;
  std::vector<Parameter> parameters;
  uint32_t flags = 0;  // RequestFlag
  CorrelationId correlation_id = uint64_t{0};
  uint64_t priority = 0;    // 0: the model's default
  uint64_t timeout_us = 0;  // 0: the queue policy's default
  // The reactor this request was received on, null elsewhere: lets a scheduler run or wake once per
  // round of arrivals.
  RoundExecutor* round = nullptr;

  // -- Set by the engine and the scheduler. --
  uint32_t batch_size = 0;  // 0 for a model without batching, which counts as 1
  RequestTimes times;
  // While in a scheduler's queue; guarded by that scheduler.
  Request* next = nullptr;
  Request* previous = nullptr;
  void* queue = nullptr;       // the list it stands in; null: none
  uint64_t expires_at_ns = 0;  // leaves the queue, or loses its turn, then; 0: never
  // Stands for an idle slot of a batch: its answers reach nobody.
  bool is_padding = false;
  // False: made by the server itself (padding, warm-up) and in no statistic.
  bool is_counted = true;
  // Null but for the few requests that are traced.
  std::shared_ptr<observe::Trace> trace;
  // Of the sequence this request belongs to, where the model keeps states; set while it is
  // executed.
  SequenceStates* states = nullptr;

  RequestInput& AddInput(std::string_view name, tensor::DataType type);
  // An input with kServerInput and the given data. Before the request is executed.
  RequestInput& AddServerInput(std::string_view name, tensor::DataType type,
                               std::span<const int64_t> shape, DataChunk data);
  // Takes away what AddServerInput added.
  void RemoveServerInputs();
  // Null when there is no such input.
  RequestInput* FindInput(std::string_view name);
  bool IsOutputRequested(uint32_t model_index) const;

  memory::Arena& arena() { return arena_; }
  // Keeps `buffer` until the request is released.
  void Hold(base::BufferRef buffer) { buffers_.push_back(std::move(buffer)); }
  ResponseSink& sink() const { return *sink_; }
  // For ForwardingSink: the sink until now.
  ResponseSink& ReplaceSink(ResponseSink& sink) { return *std::exchange(sink_, &sink); }
  uint32_t batch_count() const { return batch_size == 0 ? 1 : batch_size; }
  // "[request id: <id>] ", the prefix of every error about a request.
  std::string LogPrefix() const;

  void Cancel() { is_cancelled_.store(true, std::memory_order_release); }
  bool is_cancelled() const { return is_cancelled_.load(std::memory_order_acquire); }

  // -- Set by the backend host. --
  // Output buffers are cleared before the backend sees them: it may leave bytes of them unwritten.
  bool clears_outputs = false;
  // Id, correlation id, names and texts of parameters are followed by a zero byte.
  bool has_c_strings = false;

  // Notes that the final response is on its way. False when that was so already: a second one must
  // not reach the sink.
  bool MarkAnswered() { return !is_answered_.exchange(true, std::memory_order_relaxed); }
  bool is_answered() const { return is_answered_.load(std::memory_order_relaxed); }

  // The request begins to wait for its turn, now.
  void MarkQueued(uint64_t now_ns);
  // The same, at a time that is known already (times.queue_start_ns) or else read; returns it.
  uint64_t MarkQueued();
  // Before `response` goes to the sink, for metrics and traces.
  void NoteResponse(const Response& response);

  // For ObjectPool.
  void Recycle();

 private:
  friend class RequestRef;
  friend struct RequestDeleter;

  void Unreference();

  ResponseSink* sink_ = nullptr;
  std::atomic<uint32_t> references_{0};
  std::atomic<bool> is_cancelled_{false};
  std::atomic<bool> is_answered_{false};
  bool has_responded_ = false;  // confined to the sender
  std::vector<base::BufferRef> buffers_;
  // With it a request is a kilobyte: many wait at once.
  memory::InlineArena<640> arena_;
};

// Answers with `response` as the final one, unless there was one, and releases the request.
void Answer(RequestPtr request, ResponsePtr response);
// The same with an error.
void Respond(RequestPtr request, base::Status error);
// The same; its message gets LogPrefix.
void RespondError(RequestPtr request, base::Status error);

}  // namespace nereid::core
