// SPDX-License-Identifier: Apache-2.0
#include "schedule/overload_guard.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "schedule/refuse.h"

namespace nereid::schedule {
namespace {

double Milliseconds(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

base::Status DoorError(const RefusedAtDoor& refused, const core::Model& model) {
  if (refused.reason == core::Refusal::kExpired) return DeadlineError(model);
  const std::string text =
      refused.reason == core::Refusal::kConcurrency
          ? fmt::format("model '{}' is overloaded: {} requests are in progress, its limit for now",
                        model.name(), refused.value)
          : fmt::format(
                "model '{}' is overloaded: a response would take about {:.1f} ms, and the "
                "deadline of the request is in {:.1f} ms",
                model.name(), Milliseconds(refused.value), Milliseconds(refused.left_ns));
  return base::UnavailableError(text).WithRetryAfter(
      std::chrono::nanoseconds(std::max<uint64_t>(refused.after_ns, 1)));
}

OverloadGuard::OverloadGuard(size_t max_items, bool is_adaptive) : times_(max_items) {
  if (!is_adaptive) return;
  limit_.emplace();
  times_.SwitchOn();
}

std::optional<RefusedAtDoor> OverloadGuard::Check(const core::Request& request,
                                                  const BatchQueue& queue, uint64_t now_ns) {
  if (limit_) [[unlikely]] {
    const size_t in_flight = times_.executing_count() + queue.size();
    if (!limit_->Admits(in_flight) && !queue.IsBelowShare(request, limit_->value())) {
      return RefusedAtDoor{.reason = core::Refusal::kConcurrency,
                           .value = limit_->value(),
                           .after_ns = times_.UntilStartNs(0, now_ns)};
    }
  }
  if (request.deadline_ns == 0 && request.timeout_us == 0) return std::nullopt;
  return CheckDeadline(request, queue, now_ns);
}

std::optional<RefusedAtDoor> OverloadGuard::CheckDeadline(const core::Request& request,
                                                          const BatchQueue& queue,
                                                          uint64_t now_ns) {
  const uint64_t timeout_ns = queue.OwnTimeoutNs(request);
  if (request.deadline_ns == 0 && timeout_ns == 0) return std::nullopt;
  times_.SwitchOn();
  const size_t ahead = queue.CountAhead(request);
  if (request.deadline_ns != 0) {
    if (request.deadline_ns <= now_ns) return RefusedAtDoor{.reason = core::Refusal::kExpired};
    const uint64_t left_ns = request.deadline_ns - now_ns;
    const uint64_t expected_ns = times_.UntilResponseNs(ahead, now_ns);
    if (expected_ns > left_ns) {
      return RefusedAtDoor{
          .value = expected_ns, .left_ns = left_ns, .after_ns = expected_ns - left_ns};
    }
  }
  // A queue timeout ends with the wait, not with the response, and has no reserve.
  const uint64_t until_start_ns = timeout_ns == 0 ? 0 : times_.UntilStartNs(ahead, now_ns);
  if (until_start_ns > timeout_ns) {
    return RefusedAtDoor{
        .value = until_start_ns, .left_ns = timeout_ns, .after_ns = until_start_ns - timeout_ns};
  }
  return std::nullopt;
}

void OverloadGuard::Remember(size_t instance, std::span<const core::RequestPtr> batch,
                             const BatchQueue& queue) {
  const uint64_t now_ns = base::NowNs();
  TakenBatch taken{.request_count = batch.size(), .leaves_others = queue.HasWaiting()};
  for (const core::RequestPtr& request : batch) {
    taken.item_count += request->batch_count();
    const uint64_t since_ns = request->times.queue_start_ns;
    taken.waited_ns += now_ns > since_ns ? now_ns - since_ns : 0;
  }
  taken.waited_ns /= std::max<size_t>(batch.size(), 1);
  times_.NoteTaken(instance, taken, now_ns);
}

void OverloadGuard::Learn(size_t instance, const BatchQueue& queue) {
  const PastExecution past = times_.NoteEnded(instance, base::NowNs());
  if (!limit_) return;
  limit_->Note(past, past.request_count + times_.executing_count() + queue.size(),
               times_.instance_count());
}

}  // namespace nereid::schedule
