// SPDX-License-Identifier: Apache-2.0
#include "python_backend/service.h"

#include "backend_kit/memory_use.h"
#include "python_backend/time_limit.h"

namespace nereid::python {

using backend::Error;
using backend::Result;
using backend::StrCat;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kReadyTimeout{5};

}  // namespace

Result<std::shared_ptr<Service>> Service::Create(ServiceContext& context) {
  // Used by the calls of one worker only, so that everything they hold ends with it.
  const auto pending = std::make_shared<PendingTable>();
  const auto calls = std::make_shared<Calls>(context.calls, pending);
  NEREID_KIT_ASSIGN(std::shared_ptr<Worker> worker,
                    context.model.GetWorker(
                        context.calls.name,
                        [calls](const std::shared_ptr<Worker>& from, const CallBlock& call) {
                          calls->Handle(from, call);
                        },
                        context.on_death));
  auto service = std::make_shared<Service>(context, std::move(worker), pending);
  if (context.model.timeout()) context.model.watch().Add(service);
  return service;
}

Error Service::Initialize() {
  NEREID_KIT_TRY(worker_->WaitForHello().Release());
  auto initialized = worker_->work().RunText(Work::kInitialize, context_.arguments);
  if (!initialized.ok()) return initialized.TakeError();
  asks_ready_.store(initialized.value() == "is_ready", std::memory_order_relaxed);
  context_.model.AddLender(context_.calls.name, worker_);
  ReportMemory();
  return {};
}

Error Service::CheckReady() {
  if (!asks_ready_.load(std::memory_order_relaxed)) return {};
  auto answer = worker_->questions().Ask(Work::kAskReady, Clock::now() + kReadyTimeout);
  if (!answer.ok()) {
    Error error = answer.TakeError();
    if (error.code() != TRITONSERVER_ERROR_UNAVAILABLE) return error;
    return Error::Unavailable("Timed out waiting for user-defined is_ready() response");
  }
  if (answer.value() == "yes") return {};
  return Error::Unavailable(
      StrCat("Model '", context_.calls.name, "' is not ready (user-defined check failed)."));
}

// What the model holds once it is initialized, with its interpreter.
void Service::ReportMemory() const {
  const backend::MemoryUse use{.bytes = worker_->PrivateBytes()};
  if (use.bytes > 0) {
    backend::LogIfError(backend::ReportMemoryUse(context_.instance, {&use, 1}),
                        "memory of the instance");
  }
}

bool Service::Look() {
  if (!is_alive() || pending_->is_empty()) return false;
  for (const auto& [number, pending] : pending_->List()) {
    if (pending->is_closed() || pending->waits_for_client()) continue;
    CheckTime(*worker_, timeout_, pending->last_activity_ns());
  }
  return true;
}

void Service::Bury() {
  worker_->Stop(Clock::now());
  pending_->FailAll(
      Error::Internal(StrCat("Failed to process the request(s) for model instance '",
                             context_.calls.name, "', message: ", worker_->DeathMessage())));
}

void Service::Finalize(Clock::time_point deadline) {
  if (!worker_->work().RunText(Work::kFinalize, "", deadline).ok()) deadline = Clock::now();
  worker_->Stop(deadline);
  pending_->FailAll(Error::Unavailable(StrCat("model '", context_.model.name(), "' is unloaded")));
}

}  // namespace nereid::python
