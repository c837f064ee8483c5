// SPDX-License-Identifier: Apache-2.0
#include "python_backend/infer_call.h"

#include <cstring>
#include <string>
#include <vector>

#include "python_backend/infer_response.h"
#include "python_backend/pending.h"

namespace nereid::python {

using backend::Error;
using backend::LogIfError;
using backend::Result;

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

// `data` are the blocks to which the text refers.
void Deliver(InferCall& call, const std::string& text,
             const std::vector<BlockPool::Block*>& data = {}) {
  auto block = call.worker->blocks().Allocate(text.size());
  if (!block.ok()) {
    LogIfError(block.TakeError(), "failed to pass on a response");
    return call.Deliver({});
  }
  std::memcpy(block.value().payload(), text.data(), text.size());
  std::vector<BlockHeader*> shared;
  for (const BlockPool::Block* const of : data) {
    of->Share();
    shared.push_back(&of->header());
  }
  call.Deliver({std::move(block).value(), text.size(), std::move(shared)});
}

void OnReleased(TRITONSERVER_InferenceRequest*, const uint32_t flags, void* user) {
  if ((flags & TRITONSERVER_REQUEST_RELEASE_ALL) == 0) return;
  auto* const call = static_cast<InferCall*>(user);
  call->NoteReleased();
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
      Deliver(*call, text.value(), blocks);
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

}  // namespace

InferCall::~InferCall() {
  if (request != nullptr) Error(TRITONSERVER_InferenceRequestDelete(request)).Ignore();
  --*open;
}

void Encoded::PassTo(BlockHeader* call) {
  if (!block_.exists()) return Reply(call, Outcome::kError);
  data_.clear();
  Reply(call, Outcome::kOk, block_, size_);
}

void InferCall::Deliver(Encoded encoded) {
  const backend::MutexLock lock(mutex);
  if (is_abandoned) return;
  if (waiting != nullptr) {
    encoded.PassTo(std::exchange(waiting, nullptr));
  } else {
    responses.push_back(std::move(encoded));
  }
}

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

}  // namespace nereid::python
