// SPDX-License-Identifier: Apache-2.0
#include "python_backend/instance.h"

#include <algorithm>

#include "backend_kit/batch.h"
#include "python_backend/batch_lender.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::LogIfError;
using backend::NowNs;
using backend::Result;
using backend::StrCat;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr seconds kFinalizeTimeout{30};

}  // namespace

Result<std::unique_ptr<Instance>> Instance::Create(TRITONBACKEND_ModelInstance* handle,
                                                   Model& model) {
  const char* name = nullptr;
  TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  int32_t device = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceName(handle, &name));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceKind(handle, &kind));
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceDeviceId(handle, &device));
  std::unique_ptr<Instance> instance(
      new Instance(handle, model, name,
                   model.Arguments(name, TRITONSERVER_InstanceGroupKindString(kind), device)));
  NEREID_KIT_TRY(instance->keeper_.Start().Release());
  return instance;
}

Instance::Instance(TRITONBACKEND_ModelInstance* handle, Model& model, const std::string& name,
                   std::string arguments)
    : handle_(handle),
      model_(model),
      context_{.calls = {.name = name, .server = model.server()},
               .model = model,
               .instance = handle,
               .arguments = std::move(arguments),
               .on_death = [this] { keeper_.NoticeDeath(); }},
      keeper_({.name = name, .on_death = [this] { model_.CountDeath(); }},
              [this] { return Service::Create(context_); }) {}

Instance::~Instance() {
  const ServicePtr service = keeper_.Stop();
  if (service != nullptr) service->Finalize(Clock::now() + kFinalizeTimeout);
}

Error Instance::CheckReady() {
  const ServicePtr service = keeper_.Ready();
  if (service == nullptr) {
    return Error::Internal(StrCat("Stub process '", context_.calls.name, "' is not healthy."));
  }
  return service->CheckReady();
}

uint64_t Instance::BatchSize() const {
  if (model_.max_batch_size() == 0) return batch_.size();
  uint64_t sum = 0;
  for (const Item& item : batch_) {
    auto input = backend::ReadInput(item.request, 0);
    const bool has_batch = input.ok() && !input.value().shape.empty();
    sum += has_batch ? static_cast<uint64_t>(input.value().shape[0]) : 1;
    if (!input.ok()) input.TakeError().Ignore();
  }
  return sum;
}

Result<Instance::Execution> Instance::Encode(ServicePtr service) {
  const std::shared_ptr<Worker>& worker = service->worker();
  table_ = service->pending();
  numbered_.clear();
  for (Item& item : batch_) {
    // The time since the request came may have been spent waiting for a worker.
    item.pending->NoteActivity();
    item.handle = table_->Add(item.pending);
    numbered_.push_back({item.request, item.handle});
  }
  NEREID_KIT_ASSIGN(BatchEncoder::Encoded batch,
                    encoder_.Encode(numbered_, worker->blocks(), worker->memory().inputs()));
  if (model_.timeout()) model_.watch().Wake();
  times_.compute_start = NowNs();
  batch.block.Share();
  for (const BlockPool::Block& block : batch.received) block.Share();
  return Execution{std::move(service), std::move(batch)};
}

Error Instance::Run() {
  NEREID_KIT_ASSIGN(ServicePtr service, keeper_.Acquire());
  NEREID_KIT_ASSIGN(Execution execution, Encode(std::move(service)));
  const BatchEncoder::Encoded& batch = execution.batch;
  return Complete(execution,
                  execution.service->worker()->work().Run(Work::kExecute, batch.block, batch.size));
}

Error Instance::Complete(Execution& execution, Result<WorkResult> result) {
  const std::shared_ptr<Worker>& worker = execution.service->worker();
  times_.compute_end = NowNs();
  if (!result.ok()) {
    // What the worker sent before it died precedes the error that completes the requests.
    worker->WaitForLastCalls();
    return Error::Internal(StrCat("Failed to process the request(s) for model instance '",
                                  context_.calls.name,
                                  "', message: ", result.TakeError().message()));
  }
  // What was sent before the end of the execution precedes what follows from it.
  worker->calls().WaitForCalls();
  Error error;
  const std::span<const char> payload = result.value().payload;
  if (result.value().outcome == Outcome::kOk) {
    error = ReadResponses(*worker, payload);
    if (!error.ok()) worker->Condemn("it sent a response that cannot be read");
  } else {
    error =
        Error::Internal(std::string(payload.data(), std::min<size_t>(payload.size(), kMaxMessage)));
  }
  if (error.ok()) {
    execution.service->NoteServed();
    BatchLender lender(worker, execution.batch, result.value());
    Finish({}, &lender);
  }
  return error;
}

Error Instance::ReadResponses(const Worker& worker, std::span<const char> payload) {
  Reader reader(payload);
  for (Item& item : batch_) {
    std::optional<ModelResponse> response = ReadResponse(reader, worker.region());
    if (!response) {
      return Error::Internal(StrCat("Stub process '", context_.calls.name,
                                    "' is not healthy: it sent a response that cannot be read"));
    }
    item.response = *std::move(response);
    if (Error error = model_.outputs().Check(item.response, item.request); !error.ok()) {
      item.response.Refuse(error);
    }
  }
  return {};
}

void Instance::Finish(const Error& error, Lender* lender) {
  const uint64_t end = NowNs();
  const uint64_t compute_start = times_.compute_start == 0 ? end : times_.compute_start;
  const uint64_t compute_end = times_.compute_end == 0 ? end : times_.compute_end;
  for (const Item& item : batch_) {
    const bool is_success = error.ok() && item.response.kind != ResponseKind::kError;
    LogIfError(
        Error(TRITONBACKEND_ModelInstanceReportStatistics(
            handle_, item.request, is_success, times_.exec_start, compute_start, compute_end, end)),
        "failed reporting request statistics");
  }
  if (times_.compute_end != 0) {
    LogIfError(Error(TRITONBACKEND_ModelInstanceReportBatchStatistics(
                   handle_, BatchSize(), times_.exec_start, compute_start, compute_end, end)),
               "failed reporting batch request statistics");
  }
  for (Item& item : batch_) {
    uint32_t flags = TRITONSERVER_REQUEST_RELEASE_ALL;
    if (!error.ok()) {
      item.pending->Fail(error);
    } else if (item.response.kind != ResponseKind::kNone) {
      LogIfError(item.pending->Send(item.response, true, lender), "failed to send a response");
    } else if (item.response.release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE) {
      flags = TRITONSERVER_REQUEST_RELEASE_RESCHEDULE;
    }
    // A request that is rescheduled gets another number.
    const bool comes_again = flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE;
    if (table_ != nullptr && (comes_again || item.pending->is_closed())) {
      table_->Remove(item.handle);
    }
    if (!comes_again) item.pending->Detach();
    Error released(TRITONBACKEND_RequestRelease(item.request, flags));
    if (!released.ok() && comes_again) {
      item.pending->Fail(released);
      item.pending->Detach();
      LogIfError(std::move(released), "failed to reschedule a request");
      released =
          Error(TRITONBACKEND_RequestRelease(item.request, TRITONSERVER_REQUEST_RELEASE_ALL));
    }
    LogIfError(std::move(released), "failed to release a request");
  }
  batch_.clear();
  table_ = nullptr;
}

void Instance::TakeBatch(TRITONBACKEND_Request** requests, uint32_t count) {
  times_ = {.exec_start = NowNs()};
  for (uint32_t r = 0; r < count; ++r) {
    batch_.push_back(
        {.request = requests[r],
         .pending = std::make_shared<Pending>(requests[r], model_.is_decoupled(), model_.outputs(),
                                              context_.calls.slow_clients)});
  }
}

void Instance::Execute(TRITONBACKEND_Request** requests, uint32_t count) {
  TakeBatch(requests, count);
  const Error error = Run();
  if (!error.ok()) Finish(error);
}

bool Instance::Begin(TRITONBACKEND_Request** requests, uint32_t count,
                     std::chrono::nanoseconds patience) {
  TakeBatch(requests, count);
  ServicePtr service = keeper_.Ready();
  if (service == nullptr) return false;
  auto encoded = Encode(std::move(service));
  if (!encoded.ok()) {
    Finish(encoded.TakeError());
    return true;
  }
  begun_ = std::move(encoded.value());
  Worker& worker = *begun_->service->worker();
  worker.work().Begin(Work::kExecute, begun_->batch.block, begun_->batch.size);
  std::optional<WorkResult> result = worker.work().Look(patience);
  if (!result) return false;
  Execution execution = *std::exchange(begun_, std::nullopt);
  const Error error = Complete(execution, *std::move(result));
  if (!error.ok()) Finish(error);
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
  if (!error.ok()) Finish(error);
}

}  // namespace nereid::python
