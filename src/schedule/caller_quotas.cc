// SPDX-License-Identifier: Apache-2.0
#include "schedule/caller_quotas.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/object_pool.h"
#include "core/forwarding_sink.h"
#include "core/model.h"

namespace nereid::schedule {
namespace {

// Without a rate, nobody knows when another request of the caller ends.
constexpr std::chrono::seconds kSoon{1};

bool AreLimited(const core::CallerLimits& limits) {
  return limits.requests_per_s > 0 || limits.bytes_per_s > 0 || limits.in_flight > 0;
}

double InputBytes(const core::Request& request) {
  size_t bytes = 0;
  for (const core::RequestInput& input : request.inputs) bytes += input.byte_size;
  return static_cast<double>(bytes);
}

base::Status OverError(const core::Caller& caller, double limit, std::string_view unit,
                       std::chrono::nanoseconds after) {
  return base::ResourceExhaustedError(
             fmt::format("'{}' has used up its limit of {:.10g} {}", caller.id, limit, unit))
      .WithRetryAfter(after);
}

}  // namespace

// Gives back a caller's place before the last response of the request is passed on, with which the
// caller may send the next request, or when the request is gone without one.
class CallerQuotas::InFlight final : public core::ForwardingSink {
 public:
  void Open(CallerQuotas& quotas, Uses uses, core::Request& request) {
    quotas_ = &quotas;
    uses_ = std::move(uses);
    PutBefore(request);
  }
  void Send(core::ResponsePtr response, bool is_final) override {
    if (is_final) End();
    ForwardingSink::Send(std::move(response), is_final);
  }
  void Recycle() {}

 protected:
  void Retire() override {
    End();
    base::ObjectPool<InFlight>::Give(this);
  }

 private:
  void End() {
    if (uses_ != Uses()) quotas_->Release(std::exchange(uses_, {}));
  }

  CallerQuotas* quotas_ = nullptr;
  Uses uses_;
};

CallerQuotas::Use::Use(const core::CallerLimits& of)
    : limits(of), requests(of.requests_per_s), bytes(of.bytes_per_s) {}

base::Status CallerQuotas::Admit(core::Request& request, uint64_t now_ns) {
  if (request.caller == nullptr) return base::OkStatus();
  const core::CallerLimits& own = request.caller->limits;
  const core::CallerLimits& of_model = request.model->caller_limits();
  if (!AreLimited(own) && !AreLimited(of_model)) return base::OkStatus();
  Uses uses;
  {
    base::MutexLock lock(mutex_);
    // Not between the two below: the first is nobody's yet.
    if (uses_.size() >= prune_at_) Prune(now_ns);
    if (AreLimited(own)) uses[0] = UseOf(request.caller, nullptr, own);
    if (AreLimited(of_model)) uses[1] = UseOf(request.caller, &*request.model, of_model);
    NEREID_RETURN_IF_ERROR(Take(request, uses, now_ns));
  }
  if (own.in_flight > 0 || of_model.in_flight > 0) {
    base::ObjectPool<InFlight>::Take()->Open(*this, std::move(uses), request);
  }
  return base::OkStatus();
}

std::shared_ptr<CallerQuotas::Use> CallerQuotas::UseOf(const core::CallerRef& caller,
                                                       const void* model,
                                                       const core::CallerLimits& limits) {
  Entry& entry = uses_[{caller.get(), model}];
  // Another model may have got the address of one that is gone.
  if (entry.use == nullptr || !(entry.use->limits == limits)) {
    entry = {.caller = caller, .use = std::make_shared<Use>(limits)};
  }
  return entry.use;
}

void CallerQuotas::Prune(uint64_t now_ns) {
  std::erase_if(uses_, [now_ns](const auto& item) {
    Use& use = *item.second.use;
    return use.in_flight == 0 && use.requests.Left(now_ns) >= use.requests.capacity() &&
           use.bytes.Left(now_ns) >= use.bytes.capacity();
  });
  prune_at_ = std::max<size_t>(64, 2 * uses_.size());
}

base::Status CallerQuotas::Take(core::Request& request, Uses& uses, uint64_t now_ns) {
  const double bytes = InputBytes(request);
  for (const auto& use : uses) {
    if (use == nullptr) continue;
    if (use->requests.is_limited()) {
      const double left = std::floor(use->requests.Left(now_ns));
      const auto reset = std::chrono::ceil<std::chrono::seconds>(
          use->requests.Until(use->requests.capacity(), now_ns));
      if (request.quota_left.limit == 0 || left < request.quota_left.remaining) {
        request.quota_left = {.limit = static_cast<uint32_t>(use->requests.capacity()),
                              .remaining = static_cast<uint32_t>(left),
                              .reset_s = static_cast<uint32_t>(reset.count())};
      }
    }
    if (!use->requests.Has(1, now_ns)) {
      return OverError(*request.caller, use->limits.requests_per_s, "requests per second",
                       use->requests.Until(1, now_ns));
    }
    if (!use->bytes.Has(bytes, now_ns)) {
      return OverError(*request.caller, use->limits.bytes_per_s, "bytes per second",
                       use->bytes.Until(bytes, now_ns));
    }
    if (use->limits.in_flight > 0 && use->in_flight >= use->limits.in_flight) {
      return OverError(*request.caller, use->limits.in_flight, "requests at the same time", kSoon);
    }
  }
  for (const auto& use : uses) {
    if (use == nullptr) continue;
    use->requests.Take(1, now_ns);
    use->bytes.Take(bytes, now_ns);
    if (use->limits.in_flight > 0) ++use->in_flight;
  }
  if (request.quota_left.remaining > 0) --request.quota_left.remaining;
  return base::OkStatus();
}

void CallerQuotas::Release(const Uses& uses) {
  base::MutexLock lock(mutex_);
  for (const auto& use : uses) {
    if (use != nullptr && use->limits.in_flight > 0) --use->in_flight;
  }
}

}  // namespace nereid::schedule
