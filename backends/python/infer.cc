// SPDX-License-Identifier: Apache-2.0
#include "python_backend/infer.h"

#include <optional>

#include "backend_kit/handles.h"
#include "backend_kit/mutex.h"
#include "python_backend/infer_call.h"
#include "python_backend/infer_request.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::LogIfError;
using backend::StrCat;

// Limits the requests of one worker that have not completed.
constexpr uint32_t kMaxOpen = 65536;

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
  const auto refuse = [&](const std::string& text) {
    block.header->is_released.store(1);
    Reply(worker->blocks(), block.header, Outcome::kError, text);
  };
  if (*open_ >= kMaxOpen) return refuse("too many requests are on their way");
  const auto call = std::make_shared<InferCall>(open_, worker, block.header, wanted->is_stream());
  const Error error = Start(server_, *wanted, call, parent);
  if (!error.ok()) {
    return refuse(
        StrCat("Model ", wanted->model, " - Error when running inference: ", error.message()));
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
  call.responses.front().PassTo(block.header);
  call.responses.pop_front();
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
