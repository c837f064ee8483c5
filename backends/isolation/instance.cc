// SPDX-License-Identifier: Apache-2.0
#include "isolation_backend/instance.h"

#include <algorithm>

#include "backend_kit/batch.h"
#include "isolation_profile/confinement_text.h"

namespace nereid::isolation {
namespace {

using backend::Error;
using backend::LogIfError;
using backend::NowNs;
using backend::Result;
using backend::StrCat;
using python::BlockHeader;
using python::Outcome;
using python::ResponseKind;
using python::Work;
using python::WorkResult;

constexpr std::chrono::seconds kFinalizeTimeout{30};

// Lends the server the outputs of a batch, which stay until the result of the batch is released.
class ResultLender final : public python::Lender {
 public:
  // `result` outlives this; its block is taken when something is lent.
  ResultLender(std::shared_ptr<python::Worker> worker, WorkResult& result)
      : worker_(std::move(worker)), result_(result) {}

  std::shared_ptr<const void> Lend(std::span<const char> /*bytes*/) override {
    if (kept_ == nullptr) {
      kept_ = std::make_shared<Kept>();
      kept_->worker = worker_;
      kept_->result = std::move(result_.block);
    }
    return kept_;
  }

 private:
  struct Kept {
    std::shared_ptr<python::Worker> worker;  // destroyed last
    std::unique_ptr<BlockHeader, python::ReleaseBlock> result;
  };

  const std::shared_ptr<python::Worker> worker_;
  WorkResult& result_;
  std::shared_ptr<Kept> kept_;
};

// Collects what a process needs to make the instance: keys and values that each end with a zero
// byte.
Result<std::string> ArgumentsOf(TRITONBACKEND_ModelInstance* handle, const std::string& name) {
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int32_t device = 0;
  uint32_t profiles = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceKind(handle, &kind));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceDeviceId(handle, &device));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceProfileCount(handle, &profiles));
  TextList list('\0');
  list.Add("name", name);
  list.Add("kind", std::to_string(static_cast<int>(kind)));
  list.Add("device", std::to_string(device));
  for (uint32_t i = 0; i < profiles; ++i) {
    const char* profile = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceProfileName(handle, i, &profile));
    list.Add(StrCat("profile", std::to_string(i)), profile);
  }
  return list.text();
}

}  // namespace

Result<std::unique_ptr<Instance>> Instance::Create(TRITONBACKEND_ModelInstance* handle,
                                                   Model& model) {
  const char* name = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceName(handle, &name));
  NEREID_KIT_ASSIGN(std::string arguments, ArgumentsOf(handle, name));
  std::unique_ptr<Instance> instance(new Instance(handle, model, name, std::move(arguments)));
  NEREID_KIT_TRY(instance->keeper_.Start().Release());
  return instance;
}

Instance::Instance(TRITONBACKEND_ModelInstance* handle, Model& model, const std::string& name,
                   std::string arguments)
    : handle_(handle),
      model_(model),
      context_{.name = name,
               .model = model,
               .instance = handle,
               .arguments = std::move(arguments),
               .on_death = [this] { keeper_.NoticeDeath(); },
               .slow_clients = {}},
      keeper_({.name = name, .what = kProcess, .on_death = [this] { model_.CountDeath(); }},
              [this] { return Service::Create(context_); }) {}

Instance::~Instance() {
  const ServicePtr service = keeper_.Stop();
  if (service != nullptr) service->Finalize(Clock::now() + kFinalizeTimeout);
}

Error Instance::CheckReady() {
  const ServicePtr service = keeper_.Ready();
  if (service == nullptr) {
    return Error::Internal(StrCat(kProcess, " '", context_.name, "' is not healthy."));
  }
  return service->CheckReady();
}

uint64_t Instance::SizeOf(TRITONBACKEND_Request* request) const {
  if (model_.max_batch_size() == 0) return 1;
  auto input = backend::ReadInput(request, 0);
  if (!input.ok()) {
    input.TakeError().Ignore();
    return 1;
  }
  return input.value().shape.empty() ? 1 : static_cast<uint64_t>(input.value().shape[0]);
}

void Instance::TakeBatch(TRITONBACKEND_Request** requests, uint32_t count) {
  const uint64_t start = NowNs();
  batch_size_ = 0;
  for (uint32_t r = 0; r < count; ++r) {
    batch_size_ += SizeOf(requests[r]);
    batch_.push_back(
        {.request = requests[r],
         .open = std::make_shared<OpenRequest>(handle_, requests[r], model_.is_decoupled(), start,
                                               context_.slow_clients),
         .ending = {},
         .response = {}});
  }
}

Result<Instance::Execution> Instance::Encode(ServicePtr service) {
  python::Worker& worker = *service->worker();
  requests_ = service->requests();
  numbered_.clear();
  for (Item& item : batch_) {
    // The time since the request came may have been spent waiting for a process.
    item.open->NoteActivity();
    item.number = requests_->NewNumber();
    numbered_.push_back({item.request, item.number});
  }
  NEREID_KIT_ASSIGN(python::BatchEncoder::Encoded batch,
                    encoder_.Encode(numbered_, worker.blocks(), worker.memory().inputs()));
  // Not before they have been read: should the process die, the keeper releases what is in the
  // table.
  for (const Item& item : batch_) requests_->Add(item.number, item.open);
  batch.block.Share();
  for (const python::BlockPool::Block& block : batch.received) block.Share();
  model_.watch().Wake();
  return Execution{std::move(service), std::move(batch)};
}

Error Instance::Run() {
  NEREID_KIT_ASSIGN(ServicePtr service, keeper_.Acquire());
  NEREID_KIT_ASSIGN(Execution execution, Encode(std::move(service)));
  const python::BatchEncoder::Encoded& batch = execution.batch;
  return Complete(execution,
                  execution.service->worker()->work().Run(Work::kExecute, batch.block, batch.size));
}

Error Instance::Complete(Execution& execution, Result<WorkResult> result) {
  const std::shared_ptr<python::Worker>& worker = execution.service->worker();
  if (!result.ok()) {
    result.TakeError().Ignore();  // FailureOfRequests says why, too
    // What the process sent before it died precedes the error that completes the requests.
    worker->WaitForLastCalls();
    return execution.service->FailureOfRequests();
  }
  // What was sent before the end of the execution precedes what follows from it.
  worker->calls().WaitForCalls();
  const std::span<const char> payload = result.value().payload;
  Error error;
  if (result.value().outcome == Outcome::kOk) {
    error = ReadResult(*worker, payload);
  } else {
    const std::span<const char> text =
        payload.first(std::min<size_t>(payload.size(), python::kMaxMessage));
    error = Error::Internal(std::string(text.begin(), text.end()).substr(text.empty() ? 0 : 1));
  }
  if (!error.ok()) return error;
  execution.service->NoteServed();
  ResultLender lender(worker, result.value());
  Finish(lender);
  return {};
}

Error Instance::ReadResult(python::Worker& worker, std::span<const char> payload) {
  python::Reader reader(payload);
  for (Item& item : batch_) {
    std::optional<RequestEnding> ending = ReadEnding(reader, worker.region());
    std::optional<python::ModelResponse> response;
    if (ending) response = ReadResponse(reader, worker.region());
    if (!response) {
      worker.Condemn(python::kCorruption);
      return Error::Internal(StrCat("Failed to process the request(s) for model instance '",
                                    context_.name, "', message: ", worker.DeathMessage()));
    }
    item.ending = *std::move(ending);
    item.response = *std::move(response);
  }
  return {};
}

void Instance::ReportBatch() const {
  const auto executed = std::ranges::find_if(
      batch_, [](const Item& item) { return item.ending.report == Report::kSuccess; });
  if (executed == batch_.end()) return;
  const EndingRecord& times = executed->ending.record;
  LogIfError(Error(TRITONBACKEND_ModelInstanceReportBatchStatistics(
                 handle_, batch_size_, times.exec_start_ns, times.compute_start_ns,
                 times.compute_end_ns, times.exec_end_ns)),
             "failed reporting batch request statistics");
}

void Instance::Finish(python::Lender& lender) {
  for (const Item& item : batch_) item.open->Settle(item.ending);
  ReportBatch();
  for (const Item& item : batch_) {
    if (item.response.kind != ResponseKind::kNone) item.open->Send(item.response, true, &lender);
    item.open->Release(item.ending.kind);
    if (item.open->is_done()) requests_->Remove(item.number);
  }
  batch_.clear();
}

void Instance::Fail(const Error& error) {
  for (const Item& item : batch_) {
    item.open->Fail(error);
    if (item.number != 0) requests_->Remove(item.number);
  }
  batch_.clear();
}

void Instance::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  TakeBatch(requests, count);
  const Error error = Run();
  if (!error.ok()) Fail(error);
}

bool Instance::Begin(TRITONBACKEND_Request** requests, uint32_t count,
                     std::chrono::nanoseconds patience) {
  TakeBatch(requests, count);
  ServicePtr service = keeper_.Ready();
  if (service == nullptr) return false;
  auto encoded = Encode(std::move(service));
  if (!encoded.ok()) {
    Fail(encoded.TakeError());
    return true;
  }
  begun_ = std::move(encoded.value());
  python::Worker& worker = *begun_->service->worker();
  worker.work().Begin(Work::kExecute, begun_->batch.block, begun_->batch.size);
  std::optional<WorkResult> result = worker.work().Look(patience);
  if (!result) return false;
  Execution execution = *std::exchange(begun_, std::nullopt);
  const Error error = Complete(execution, *std::move(result));
  if (!error.ok()) Fail(error);
  return true;
}

void Instance::End() {
  Error error;
  if (begun_) {
    Execution execution = *std::exchange(begun_, std::nullopt);
    error = Complete(execution, execution.service->worker()->work().Wait());
  } else {
    error = Run();
  }
  if (!error.ok()) Fail(error);
}

}  // namespace nereid::isolation
