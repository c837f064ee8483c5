// SPDX-License-Identifier: Apache-2.0
// What happens to each request on its way to the scheduler of its model.
#include <utility>

#include "engine/engine.h"
#include "engine/normalize.h"

namespace nereid::engine {

void Engine::Infer(core::RequestPtr request) {
  if (request->caller != nullptr) [[unlikely]] {
    if (base::Status status = AdmitCaller(*request); !status.ok()) {
      return core::CompleteWithError(std::move(request), std::move(status));
    }
  }
  Submit(std::move(request));
}

void Engine::Submit(core::RequestPtr request) {
  core::RequestTimes& times = request->times;
  if (request->trace != nullptr) [[unlikely]] {
    if (times.request_start_ns == 0) times.request_start_ns = base::NowNs();
    request->trace->Report(observe::TraceActivity::kRequestStart, times.request_start_ns);
  }
  const bool starts_now = times.request_start_ns == 0;
  if (base::Status status = Prepare(*request); !status.ok()) {
    return core::CompleteWithError(std::move(request), std::move(status));
  }
  if (starts_now) times.queue_start_ns = times.request_start_ns;
  Schedule(std::move(request));
}

base::Status Engine::AdmitCaller(core::Request& request) {
  base::Status status = quotas_.Admit(request, base::CoarseNowNs());
  if (!status.ok()) {
    const uint64_t now_ns = base::NowNs();
    core::ModelStatistics& statistics = request.model->statistics();
    statistics.RecordRefusal(core::Refusal::kRate);
    statistics.RecordFailure(
        core::FailureReason::kRejected,
        request.times.request_start_ns == 0 ? now_ns : request.times.request_start_ns, now_ns);
  }
  return status;
}

base::Status Engine::Prepare(core::Request& request) {
  base::Status status = NormalizeRequest(request);
  // As in Triton, a request without a frontend starts its time after validation.
  if (request.times.request_start_ns == 0) request.times.request_start_ns = base::NowNs();
  if (!status.ok()) {
    request.model->statistics().RecordFailure(core::FailureReason::kOther,
                                              request.times.request_start_ns, base::NowNs());
  }
  return status;
}

void Engine::Schedule(core::RequestPtr request) {
  core::Scheduler& scheduler = request->model->scheduler();
  scheduler.Enqueue(std::move(request));
}

base::Result<core::ModelHandle> Engine::PinModel(std::string_view name, int64_t version) {
  return life_cycle_.FindForStep(name, version);
}

void Engine::Cancel(core::Request& request) {
  request.Cancel();
  if (request.model) request.model->scheduler().OnCancelled(request);
}

}  // namespace nereid::engine
