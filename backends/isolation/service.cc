// SPDX-License-Identifier: Apache-2.0
#include "isolation_backend/service.h"

#include <unistd.h>

#include <fstream>

#include "backend_kit/batch.h"
#include "backend_kit/memory_use.h"
#include "python_backend/time_limit.h"

namespace nereid::isolation {

using backend::Error;
using backend::Result;
using backend::StrCat;
using python::Call;
using python::CallBlock;
using python::Reader;
using python::Work;
using python::Worker;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kReadyTimeout{5};
constexpr std::chrono::milliseconds kCancelTimeout{5};

// Returns the memory that a process uses and that is in no file, so without what it shares with the
// server.
uint64_t ResidentBytes(pid_t pid) {
  std::ifstream file(StrCat("/proc/", pid, "/statm"));
  uint64_t size = 0;
  uint64_t resident = 0;
  uint64_t shared = 0;
  if (!(file >> size >> resident >> shared) || resident < shared) return 0;
  return (resident - shared) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Handles the calls of a process: what becomes of requests after, or apart from, their execution.
class Calls {
 public:
  explicit Calls(std::shared_ptr<OpenRequests> requests) : requests_(std::move(requests)) {}

  void Handle(const std::shared_ptr<Worker>& from, const CallBlock& call) const {
    Worker& worker = *from;
    Reader reader(call.payload);
    bool is_readable = false;
    if (call.kind == Call::kAwaitSent) return AwaitSent(from, call, reader);
    if (call.kind == Call::kSend) is_readable = Send(reader, worker.region());
    if (call.kind == Call::kRelease) is_readable = Release(reader, worker.region());
    python::Release(call.header);
    if (!is_readable) worker.Condemn(python::kCorruption);
  }

 private:
  bool Send(Reader& reader, const python::Region& region) const {
    const auto record = reader.Read<python::SendRecord>();
    const std::shared_ptr<OpenRequest> request = requests_->Find(record.handle);
    std::optional<python::ModelResponse> response;
    if (record.has_response != 0) {
      response = ReadResponse(reader, region);
      if (!response) return false;
    }
    if (!reader.ok()) return false;
    if (request == nullptr) return true;
    if (response) {
      request->Send(*response, record.is_final != 0);
    } else if (record.is_final != 0) {
      request->End();
    }
    if (request->is_done()) requests_->Remove(record.handle);
    return true;
  }

  bool Release(Reader& reader, const python::Region& region) const {
    const auto number = reader.Read<uint64_t>();
    const std::optional<RequestEnding> ending = ReadEnding(reader, region);
    if (!ending) return false;
    const std::shared_ptr<OpenRequest> request = requests_->Find(number);
    if (request == nullptr) return true;
    request->Settle(*ending);
    request->Release(ending->kind);
    if (request->is_done()) requests_->Remove(number);
    return true;
  }

  void AwaitSent(const std::shared_ptr<Worker>& worker, const CallBlock& call,
                 Reader& reader) const {
    const std::shared_ptr<OpenRequest> request = requests_->Find(reader.Read<uint64_t>());
    const auto reply = [worker, call] { python::Reply(call.header, python::Outcome::kOk); };
    return request == nullptr ? reply() : request->WhenSent(reply);
  }

  const std::shared_ptr<OpenRequests> requests_;
};

}  // namespace

Result<std::shared_ptr<Service>> Service::Create(ServiceContext& context) {
  const auto requests = std::make_shared<OpenRequests>();
  NEREID_KIT_ASSIGN(Model::Made made, context.model.GetWorker(
                                          context.name,
                                          [calls = Calls(requests)](
                                              const std::shared_ptr<Worker>& from,
                                              const CallBlock& call) { calls.Handle(from, call); },
                                          context.on_death));
  auto service = std::make_shared<Service>(context, std::move(made), requests);
  context.model.watch().Add(service);
  return service;
}

Error Service::Initialize() {
  if (!has_model_) {
    NEREID_KIT_TRY(worker_->WaitForHello().Release());
    NEREID_KIT_TRY(context_.model.Load(*worker_).Release());
  }
  auto initialized = RunText(*worker_, Work::kInitialize, context_.arguments);
  if (!initialized.ok()) return initialized.TakeError();
  asks_ready_.store(initialized.value() == "y");
  ReportMemory();
  return {};
}

Error Service::CheckReady() {
  if (!asks_ready_.load()) return {};
  auto reply = worker_->questions().Ask(Work::kAskReady, Clock::now() + kReadyTimeout);
  if (reply.ok()) return {};
  Error error = reply.TakeError();
  if (error.code() == TRITONSERVER_ERROR_UNAVAILABLE) {
    return Error::Unavailable(StrCat("the process of isolated model instance '", context_.name,
                                     "' did not say in time whether it is ready"));
  }
  return error;
}

// What the process holds once it is initialized.
void Service::ReportMemory() const {
  const backend::MemoryUse use{.bytes = worker_->PrivateBytes()};
  if (use.bytes > 0) {
    backend::LogIfError(backend::ReportMemoryUse(context_.instance, {&use, 1}),
                        "memory of the instance");
  }
}

void Service::CheckMemory() {
  const uint64_t limit = context_.model.settings().memory_bytes;
  if (limit == 0) return;
  const uint64_t used = ResidentBytes(worker_->pid());
  if (used <= limit) return;
  worker_->Condemn(
      StrCat("it used ", used >> 20, " MiB of memory, and isolation_memory_mb is ", limit >> 20));
}

void Service::Retire() {
  const backend::MutexLock lock(look_mutex_);
  is_retired_ = true;
}

bool Service::Look() {
  const backend::MutexLock lock(look_mutex_);
  if (is_retired_ || !is_alive()) return false;
  CheckMemory();
  if (requests_->is_empty()) return false;
  for (const auto& [number, request] : requests_->List()) {
    if (!request->waits_for_client()) {
      python::CheckTime(*worker_, context_.model.settings().timeout, request->last_activity_ns());
    }
    if (!request->IsCancelled() || !is_alive()) continue;
    auto told = worker_->questions().Ask(Work::kCancel, Clock::now() + kCancelTimeout, number);
    if (!told.ok()) told.TakeError().Ignore();  // the next look tries again
  }
  return true;
}

Error Service::FailureOfRequests() const {
  return Error::Internal(StrCat("Failed to process the request(s) for model instance '",
                                context_.name, "', message: ", worker_->DeathMessage()));
}

void Service::Bury() {
  Retire();
  worker_->Stop(Clock::now());
  requests_->FailAll(FailureOfRequests());
}

void Service::Finalize(Clock::time_point deadline) {
  Retire();
  if (!RunText(*worker_, Work::kFinalize, "", deadline).ok()) deadline = Clock::now();
  worker_->Stop(deadline);
  requests_->FailAll(Error::Unavailable(StrCat("model '", context_.model.name(), "' is unloaded")));
}

}  // namespace nereid::isolation
