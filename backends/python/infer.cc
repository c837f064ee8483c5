// SPDX-License-Identifier: Apache-2.0
#include "python_backend/infer.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <deque>
#include <optional>

#include "backend_kit/mutex.h"
#include "python_backend/json.h"
#include "python_backend/pending.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::LogIfError;
using backend::Result;
using backend::StrCat;

// Limits the requests of one worker that have not completed.
constexpr uint32_t kMaxOpen = 65536;

// A request as the worker describes it.
struct Wanted {
  InferRecord record;
  std::string model;
  std::string id;
  std::string correlation_text;
  std::string parameters;  // JSON
  std::vector<Tensor> inputs;
  std::vector<std::string> outputs;

  bool is_stream() const { return record.is_stream != 0; }

  static std::optional<Wanted> Read(const InferRecord& record, Reader& reader,
                                    const Region& region) {
    Wanted wanted{.record = record};
    wanted.model = reader.SizedText();
    wanted.id = reader.SizedText();
    wanted.correlation_text = reader.SizedText();
    wanted.parameters = reader.SizedText();
    if (record.inputs > kMaxTensors || record.outputs > kMaxTensors) return std::nullopt;
    for (uint32_t i = 0; i < record.inputs && reader.ok(); ++i) {
      std::optional<Tensor> tensor = ReadTensor(reader, region);
      if (!tensor) return std::nullopt;
      wanted.inputs.push_back(*std::move(tensor));
    }
    for (uint64_t i = 0; i < record.outputs && reader.ok(); ++i) {
      wanted.outputs.emplace_back(reader.SizedText());
    }
    if (!reader.ok()) return std::nullopt;
    return wanted;
  }
};

// A response in the form that a worker gets: a ReplyRecord and what follows it.
struct Encoded {
  BlockPool::Block block;
  uint64_t size = 0;
};

}  // namespace

// One request in progress, for the server's callbacks. Keeps itself alive until the last of them.
struct InferCall : std::enable_shared_from_this<InferCall> {
  // `waits` is the call that waits for the response; null for a stream.
  InferCall(std::shared_ptr<std::atomic<uint32_t>> counter, std::shared_ptr<Worker> from,
            BlockHeader* waits)
      : worker(std::move(from)),
        is_stream(waits == nullptr),
        open(std::move(counter)),
        waiting(waits) {
    ++*open;
  }
  // A released request may still get responses, and can be cancelled until it has completed.
  ~InferCall() {
    if (request != nullptr) Error(TRITONSERVER_InferenceRequestDelete(request)).Ignore();
    --*open;
  }

  const std::shared_ptr<Worker> worker;
  const bool is_stream;
  const std::shared_ptr<std::atomic<uint32_t>> open;  // how many requests the worker has open
  // Set once it is sent. Confined to the thread of the worker's calls.
  TRITONSERVER_InferenceRequest* request = nullptr;

  backend::Mutex mutex;
  // Reset after the last response and the release of the request.
  std::shared_ptr<InferCall> self NEREID_KIT_GUARDED_BY(mutex);
  std::shared_ptr<InferCall> while_held NEREID_KIT_GUARDED_BY(mutex);
  BlockHeader* waiting NEREID_KIT_GUARDED_BY(mutex);  // the call that waits for a response
  std::deque<Encoded> responses NEREID_KIT_GUARDED_BY(mutex);
  bool is_abandoned NEREID_KIT_GUARDED_BY(mutex) = false;

  void Deliver(Encoded encoded) {
    const backend::MutexLock lock(mutex);
    if (is_abandoned) return;
    if (waiting != nullptr) {
      Reply(std::exchange(waiting, nullptr), Outcome::kOk, encoded.block, encoded.size);
    } else {
      responses.push_back(std::move(encoded));
    }
  }
};

namespace {

using BlockPtr = std::unique_ptr<BlockPool::Block>;

TRITONSERVER_Error* Allocate(TRITONSERVER_ResponseAllocator*, const char*, size_t size,
                             TRITONSERVER_MemoryType, int64_t, void* user, void** buffer,
                             void** buffer_user, TRITONSERVER_MemoryType* memory_type,
                             int64_t* memory_type_id) {
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  *buffer = nullptr;
  *buffer_user = nullptr;
  if (size == 0) return nullptr;
  auto block = static_cast<InferCall*>(user)->worker->blocks().Allocate(size);
  if (!block.ok()) return block.TakeError().Release();
  BlockPtr kept(new BlockPool::Block(std::move(block).value()));
  *buffer = kept->payload();
  *buffer_user = kept.release();
  return nullptr;
}

TRITONSERVER_Error* Free(TRITONSERVER_ResponseAllocator*, void*, void* buffer_user, size_t,
                         TRITONSERVER_MemoryType, int64_t) {
  delete static_cast<BlockPool::Block*>(buffer_user);
  return nullptr;
}

TRITONSERVER_Error* Query(TRITONSERVER_ResponseAllocator*, void*, const char*, size_t*,
                          TRITONSERVER_MemoryType* memory_type, int64_t* memory_type_id) {
  *memory_type = TRITONSERVER_MEMORY_CPU;
  *memory_type_id = 0;
  return nullptr;
}

// One allocator for all requests, never deleted, because responses may outlive the model.
Result<TRITONSERVER_ResponseAllocator*> Allocator() {
  static backend::Mutex mutex;
  static TRITONSERVER_ResponseAllocator* allocator NEREID_KIT_GUARDED_BY(mutex) = nullptr;
  const backend::MutexLock lock(mutex);
  if (allocator == nullptr) {
    NEREID_KIT_TRY(TRITONSERVER_ResponseAllocatorNew(&allocator, Allocate, Free, nullptr));
    Error(TRITONSERVER_ResponseAllocatorSetQueryFunction(allocator, Query)).Ignore();
  }
  return allocator;
}

template <typename Value>
void Append(std::string& to, const Value& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

Error AppendOutput(std::string& to, const Region& region, TRITONSERVER_InferenceResponse* response,
                   uint32_t index, std::vector<BlockPool::Block*>& blocks) {
  const char* name = nullptr;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  const int64_t* shape = nullptr;
  uint64_t dims = 0;
  const void* base = nullptr;
  size_t size = 0;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  void* user = nullptr;
  NEREID_KIT_TRY(TRITONSERVER_InferenceResponseOutput(response, index, &name, &datatype, &shape,
                                                      &dims, &base, &size, &memory_type,
                                                      &memory_type_id, &user));
  const std::string_view text = name;
  const bool has_data = size != 0 && user != nullptr;
  Append(to, TensorRecord{.datatype = static_cast<uint32_t>(datatype),
                          .dims = static_cast<uint32_t>(dims),
                          .name_size = static_cast<uint32_t>(text.size()),
                          .data = has_data ? static_cast<uint64_t>(static_cast<const char*>(base) -
                                                                   region.base())
                                           : 0,
                          .byte_size = size});
  to.append(reinterpret_cast<const char*>(shape), dims * sizeof(*shape));
  to += text;
  to.resize(Padded(to.size()));
  if (has_data) blocks.push_back(static_cast<BlockPool::Block*>(user));
  return {};
}

Result<std::string> ResponseParameters(TRITONSERVER_InferenceResponse* response) {
  uint32_t count = 0;
  NEREID_KIT_TRY(TRITONSERVER_InferenceResponseParameterCount(response, &count));
  if (count == 0) return std::string();
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  writer.StartObject();
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
    const void* value = nullptr;
    NEREID_KIT_TRY(TRITONSERVER_InferenceResponseParameter(response, i, &name, &type, &value));
    writer.Key(name);
    if (type == TRITONSERVER_PARAMETER_INT) {
      writer.Int64(*static_cast<const int64_t*>(value));
    } else if (type == TRITONSERVER_PARAMETER_BOOL) {
      writer.Bool(*static_cast<const bool*>(value));
    } else if (type == TRITONSERVER_PARAMETER_STRING) {
      writer.String(static_cast<const char*>(value));
    } else {
      return Error::Internal(StrCat("Unsupported parameter type for parameter '", name, "'."));
    }
  }
  writer.EndObject();
  return std::string(text.GetString(), text.GetSize());
}

// Encodes the tensors and parameters of a response for the worker.
Result<std::string> EncodeTensors(const Region& region, TRITONSERVER_InferenceResponse* response,
                                  bool is_last, std::vector<BlockPool::Block*>& blocks) {
  NEREID_KIT_TRY(TRITONSERVER_InferenceResponseError(response));
  uint32_t count = 0;
  NEREID_KIT_TRY(TRITONSERVER_InferenceResponseOutputCount(response, &count));
  NEREID_KIT_ASSIGN(const std::string parameters, ResponseParameters(response));
  std::string text;
  Append(text, ReplyRecord{.kind = static_cast<uint32_t>(ResponseKind::kTensors),
                           .is_last = is_last,
                           .tensors = count,
                           .text_size = static_cast<uint32_t>(parameters.size())});
  for (uint32_t i = 0; i < count; ++i) {
    NEREID_KIT_TRY(AppendOutput(text, region, response, i, blocks).Release());
  }
  return text + parameters;
}

std::string EncodeError(const Error& error, bool is_last) {
  const std::string message = error.message();
  std::string text;
  Append(text, ReplyRecord{.kind = static_cast<uint32_t>(ResponseKind::kError),
                           .is_last = is_last,
                           .tensors = static_cast<uint32_t>(error.code()),
                           .text_size = static_cast<uint32_t>(message.size())});
  return text + message;
}

std::string EncodeNothing() {
  std::string text;
  Append(text, ReplyRecord{.kind = static_cast<uint32_t>(ResponseKind::kNone), .is_last = 1});
  return text;
}

void Deliver(InferCall& call, const std::string& text) {
  auto block = call.worker->blocks().Allocate(text.size());
  if (!block.ok()) return LogIfError(block.TakeError(), "failed to pass on a response");
  std::memcpy(block.value().payload(), text.data(), text.size());
  call.Deliver({std::move(block).value(), text.size()});
}

void OnReleased(TRITONSERVER_InferenceRequest*, const uint32_t flags, void* user) {
  if ((flags & TRITONSERVER_REQUEST_RELEASE_ALL) == 0) return;
  auto* const call = static_cast<InferCall*>(user);
  std::shared_ptr<InferCall> held;
  const backend::MutexLock lock(call->mutex);
  held.swap(call->while_held);
}

void OnResponse(TRITONSERVER_InferenceResponse* response, const uint32_t flags, void* user) {
  auto* const call = static_cast<InferCall*>(user);
  const bool is_final = (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
  const bool is_last = is_final || !call->is_stream;
  if (response != nullptr) {
    std::vector<BlockPool::Block*> blocks;
    auto text = EncodeTensors(call->worker->region(), response, is_last, blocks);
    if (text.ok()) {
      for (const BlockPool::Block* block : blocks) block->Share();
      Deliver(*call, text.value());
    } else {
      Deliver(*call, EncodeError(text.TakeError(), is_last));
    }
    LogIfError(Error(TRITONSERVER_InferenceResponseDelete(response)),
               "failed to delete a response");
  } else if (is_final && call->is_stream) {
    Deliver(*call, EncodeNothing());
  } else if (is_final) {
    // If a model with one response sends the end separately, no caller waits for that.
    Deliver(*call, EncodeError(Error::Internal("Unexpected empty response."), true));
  }
  if (is_final) {
    std::shared_ptr<InferCall> ended;
    const backend::MutexLock lock(call->mutex);
    ended.swap(call->self);
  }
}

Error SetParameters(TRITONSERVER_InferenceRequest* request, const std::string& json) {
  return ForEachParameter(
      json, "the parameters of a request",
      [&](const char* name, const char* value) {
        return TRITONSERVER_InferenceRequestSetStringParameter(request, name, value);
      },
      [&](const char* name, int64_t value) {
        return TRITONSERVER_InferenceRequestSetIntParameter(request, name, value);
      },
      [&](const char* name, bool value) {
        return TRITONSERVER_InferenceRequestSetBoolParameter(request, name, value);
      });
}

Error Fill(TRITONSERVER_InferenceRequest* request, const Wanted& wanted) {
  NEREID_KIT_TRY(TRITONSERVER_InferenceRequestSetId(request, wanted.id.c_str()));
  if (wanted.record.has_correlation_text != 0) {
    NEREID_KIT_TRY(TRITONSERVER_InferenceRequestSetCorrelationIdString(
        request, wanted.correlation_text.c_str()));
  } else {
    NEREID_KIT_TRY(
        TRITONSERVER_InferenceRequestSetCorrelationId(request, wanted.record.correlation_id));
  }
  NEREID_KIT_TRY(TRITONSERVER_InferenceRequestSetFlags(request, wanted.record.flags));
  NEREID_KIT_TRY(
      TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(request, wanted.record.timeout_us));
  NEREID_KIT_TRY(SetParameters(request, wanted.parameters).Release());
  for (const Tensor& input : wanted.inputs) {
    NEREID_KIT_TRY(TRITONSERVER_InferenceRequestAddInput(
        request, input.name.c_str(), input.datatype, input.shape.data(), input.shape.size()));
    NEREID_KIT_TRY(TRITONSERVER_InferenceRequestAppendInputData(
        request, input.name.c_str(), input.data.data(), input.data.size(), TRITONSERVER_MEMORY_CPU,
        0));
  }
  for (const std::string& output : wanted.outputs) {
    NEREID_KIT_TRY(TRITONSERVER_InferenceRequestAddRequestedOutput(request, output.c_str()));
  }
  return {};
}

Error CheckModel(TRITONSERVER_Server* server, const Wanted& wanted) {
  const char* const model = wanted.model.c_str();
  bool is_ready = false;
  NEREID_KIT_TRY(
      TRITONSERVER_ServerModelIsReady(server, model, wanted.record.model_version, &is_ready));
  if (!is_ready) {
    return Error::Internal(
        StrCat("Failed for execute the inference request. Model '", model, "' is not ready."));
  }
  uint32_t properties = 0;
  NEREID_KIT_TRY(TRITONSERVER_ServerModelTransactionProperties(
      server, model, wanted.record.model_version, &properties, nullptr));
  if (!wanted.is_stream() && (properties & TRITONSERVER_TXN_DECOUPLED) != 0) {
    return Error::Internal(StrCat(
        "Model ", model,
        " is using the decoupled. The current BLS request call doesn't support models using "
        "the decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' "
        "or 'async_exec' calls for decoupled models.'"));
  }
  return {};
}

// Sends a filled request. From then on it belongs to the server.
Error Submit(TRITONSERVER_Server* server, TRITONSERVER_InferenceRequest* request,
             const std::shared_ptr<InferCall>& call, Pending* parent) {
  NEREID_KIT_ASSIGN(TRITONSERVER_ResponseAllocator* const allocator, Allocator());
  NEREID_KIT_TRY(TRITONSERVER_InferenceRequestSetReleaseCallback(request, OnReleased, call.get()));
  NEREID_KIT_TRY(TRITONSERVER_InferenceRequestSetResponseCallback(request, allocator, call.get(),
                                                                  OnResponse, call.get()));
  call->request = request;
  {
    const backend::MutexLock lock(call->mutex);
    call->self = call;
    call->while_held = call;
  }
  const auto send = [&](TRITONSERVER_InferenceTrace* parent_trace) -> TRITONSERVER_Error* {
    TRITONSERVER_InferenceTrace* trace = nullptr;
    if (parent_trace != nullptr) {
      Error(TRITONSERVER_InferenceTraceSpawnChildTrace(parent_trace, &trace)).Ignore();
    }
    return TRITONSERVER_ServerInferAsync(server, request, trace);
  };
  Error error(parent == nullptr ? send(nullptr) : parent->WithTrace(send));
  if (!error.ok()) {
    call->request = nullptr;
    const backend::MutexLock lock(call->mutex);
    call->self.reset();
    call->while_held.reset();
  }
  return error;
}

Error Start(TRITONSERVER_Server* server, const Wanted& wanted,
            const std::shared_ptr<InferCall>& call, Pending* parent) {
  if (server == nullptr) return Error::Unsupported("the server does not let backends call it");
  NEREID_KIT_TRY(CheckModel(server, wanted).Release());
  TRITONSERVER_InferenceRequest* request = nullptr;
  NEREID_KIT_TRY(TRITONSERVER_InferenceRequestNew(&request, server, wanted.model.c_str(),
                                                  wanted.record.model_version));
  Error error = Fill(request, wanted);
  if (error.ok()) error = Submit(server, request, call, parent);
  if (!error.ok()) Error(TRITONSERVER_InferenceRequestDelete(request)).Ignore();
  return error;
}

}  // namespace

void Inferences::Infer(const std::shared_ptr<Worker>& worker, const CallBlock& block,
                       const InferRecord& record, Reader& reader, Pending* parent) {
  const std::optional<Wanted> wanted = Wanted::Read(record, reader, worker->region());
  if (!wanted) return worker->Condemn("it made a request that cannot be read");
  if (*open_ >= kMaxOpen) {
    return Reply(worker->blocks(), block.header, Outcome::kError,
                 "too many requests are on their way");
  }
  const auto call =
      std::make_shared<InferCall>(open_, worker, wanted->is_stream() ? nullptr : block.header);
  const Error error = Start(server_, *wanted, call, parent);
  if (!error.ok()) {
    const std::string text =
        StrCat("Model ", wanted->model, " - Error when running inference: ", error.message());
    return Reply(worker->blocks(), block.header, Outcome::kError, text);
  }
  if (!wanted->is_stream()) return;
  streams_.emplace(++last_, call);
  Reply(worker->blocks(), block.header, Outcome::kOk,
        std::string_view(reinterpret_cast<const char*>(&last_), sizeof(last_)));
}

void Inferences::Next(const std::shared_ptr<Worker>& worker, const CallBlock& block,
                      uint64_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) {
    return Reply(worker->blocks(), block.header, Outcome::kError, "the responses are gone");
  }
  InferCall& call = *found->second;
  const backend::MutexLock lock(call.mutex);
  if (call.responses.empty()) {
    if (call.waiting != nullptr)
      Reply(worker->blocks(), call.waiting, Outcome::kError, "asked for twice");
    call.waiting = block.header;
    return;
  }
  const Encoded encoded = std::move(call.responses.front());
  call.responses.pop_front();
  Reply(block.header, Outcome::kOk, encoded.block, encoded.size);
}

void Inferences::Cancel(uint64_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  // Called without the lock, because the request may complete at once, on this thread.
  LogIfError(Error(TRITONSERVER_InferenceRequestCancel(found->second->request)),
             "failed to cancel a request");
}

void Inferences::Close(uint64_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  {
    const backend::MutexLock lock(found->second->mutex);
    found->second->is_abandoned = true;
    found->second->responses.clear();
  }
  streams_.erase(found);
}

}  // namespace nereid::python
