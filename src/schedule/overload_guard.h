// SPDX-License-Identifier: Apache-2.0
// Decides at the door of a model's queue which requests it is better to refuse at once: those that
// cannot be answered before their deadline, and those beyond the adaptive limit. Pure logic on
// clock readings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "core/model.h"
#include "core/request.h"
#include "core/statistics.h"
#include "schedule/batch_queue.h"
#include "schedule/concurrency_limit.h"
#include "schedule/service_times.h"

namespace nereid::schedule {

// Why a request is refused, before it is put into words.
struct RefusedAtDoor {
  core::Refusal reason = core::Refusal::kHopeless;
  // How long it would take; kConcurrency: the limit.
  uint64_t value = 0;
  uint64_t left_ns = 0;   // until the deadline
  uint64_t after_ns = 0;  // when it makes sense to try again
};

// Returns the error for the client.
base::Status DoorError(const RefusedAtDoor& refused, const core::Model& model);

// Confined to the lock of its scheduler.
class OverloadGuard {
 public:
  // `max_items`: see ServiceTimes. `is_adaptive`: whether there is a limit of requests in flight.
  OverloadGuard(size_t max_items, bool is_adaptive);

  // Whether anything of `request` is to be checked.
  bool Concerns(const core::Request& request) const {
    return limit_.has_value() || request.deadline_ns != 0 || request.timeout_us != 0;
  }
  // Returns why `request`, which is not in `queue` yet, should not join it; nothing if it should.
  std::optional<RefusedAtDoor> Check(const core::Request& request, const BatchQueue& queue,
                                     uint64_t now_ns);

  // Notes of the source. `batch` was taken from `queue` just now.
  void AddInstance(size_t instance) { times_.AddInstance(instance); }
  void RetireInstance(size_t instance) { times_.RetireInstance(instance); }
  void NoteTaken(size_t instance, std::span<const core::RequestPtr> batch,
                 const BatchQueue& queue) {
    if (times_.is_on()) [[unlikely]]
      Remember(instance, batch, queue);
  }
  void NoteExecuted(size_t instance, const BatchQueue& queue) {
    if (times_.is_on()) [[unlikely]]
      Learn(instance, queue);
  }

 private:
  void Remember(size_t instance, std::span<const core::RequestPtr> batch, const BatchQueue& queue);
  void Learn(size_t instance, const BatchQueue& queue);
  std::optional<RefusedAtDoor> CheckDeadline(const core::Request& request, const BatchQueue& queue,
                                             uint64_t now_ns);

  ServiceTimes times_;
  std::optional<ConcurrencyLimit> limit_;
};

}  // namespace nereid::schedule
