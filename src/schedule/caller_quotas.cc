// SPDX-License-Identifier: Apache-2.0
#include "schedule/caller_quotas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/object_pool.h"
#include "base/per_thread.h"
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
  // `own` may be null. Its account is not forgotten while it has requests in flight.
  void Open(Use* own, std::shared_ptr<Use> of_model, core::Request& request) {
    own_ = own;
    of_model_ = std::move(of_model);
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
    if (Use* const own = std::exchange(own_, nullptr)) own->in_flight.fetch_sub(1);
    if (of_model_ == nullptr) return;
    of_model_->in_flight.fetch_sub(1);
    of_model_.reset();
  }

  Use* own_ = nullptr;
  std::shared_ptr<Use> of_model_;
};

// Found by the caller's address, of which two may share a place.
class CallerQuotas::Known {
 public:
  std::shared_ptr<Account>& PlaceOf(const core::Caller& caller) {
    constexpr size_t kAlignment = 64;
    return accounts_[reinterpret_cast<uintptr_t>(&caller) / kAlignment % accounts_.size()];
  }

 private:
  std::array<std::shared_ptr<Account>, 16> accounts_;
};

CallerQuotas::Use::Use(const core::CallerLimits& of)
    : limits(of), requests(of.requests_per_s), bytes(of.bytes_per_s) {}

bool CallerQuotas::Use::IsIdle(uint64_t now_ns) {
  return in_flight.load() == 0 && requests.Left(now_ns) >= requests.capacity() &&
         bytes.Left(now_ns) >= bytes.capacity();
}

void CallerQuotas::Use::SayWhatIsLeft(core::Request& request, uint64_t now_ns) {
  if (!requests.is_limited()) return;
  const double left = std::floor(requests.Left(now_ns));
  if (request.quota_left.limit != 0 && left >= request.quota_left.remaining) return;
  const auto reset =
      std::chrono::ceil<std::chrono::seconds>(requests.Until(requests.capacity(), now_ns));
  request.quota_left = {.limit = static_cast<uint32_t>(requests.capacity()),
                        .remaining = static_cast<uint32_t>(left),
                        .reset_s = static_cast<uint32_t>(reset.count())};
}

base::Status CallerQuotas::Use::Check(const core::Request& request, double size, uint64_t now_ns) {
  if (!requests.Has(1, now_ns)) {
    return OverError(*request.caller, limits.requests_per_s, "requests per second",
                     requests.Until(1, now_ns));
  }
  if (!bytes.Has(size, now_ns)) {
    return OverError(*request.caller, limits.bytes_per_s, "bytes per second",
                     bytes.Until(size, now_ns));
  }
  if (limits.in_flight > 0 && in_flight.load() >= limits.in_flight) {
    return OverError(*request.caller, limits.in_flight, "requests at the same time", kSoon);
  }
  return base::OkStatus();
}

void CallerQuotas::Use::Take(double size, uint64_t now_ns) {
  requests.Take(1, now_ns);
  bytes.Take(size, now_ns);
  if (limits.in_flight > 0) in_flight.fetch_add(1);
}

CallerQuotas::Account::Account(const CallerQuotas& of, core::CallerRef owner)
    : quotas(of), caller(std::move(owner)), own(caller->limits) {}

std::shared_ptr<CallerQuotas::Use> CallerQuotas::Account::UseOf(const core::Model& model,
                                                                uint64_t now_ns) {
  const auto found = models.find(&model);
  // Another model may have got the address of one that is gone.
  if (found != models.end() && found->second->limits == model.caller_limits()) {
    return found->second;
  }
  std::erase_if(models, [now_ns](const auto& item) { return item.second->IsIdle(now_ns); });
  return models[&model] = std::make_shared<Use>(model.caller_limits());
}

bool CallerQuotas::Account::IsIdle(uint64_t now_ns) {
  return own.IsIdle(now_ns) && std::ranges::all_of(models, [now_ns](const auto& item) {
           return item.second->IsIdle(now_ns);
         });
}

CallerQuotas::~CallerQuotas() {
  // Threads know accounts for longer.
  base::MutexLock lock(mutex_);
  for (const auto& [address, account] : accounts_) {
    base::MutexLock account_lock(account->mutex);
    account->caller.reset();
  }
}

base::Status CallerQuotas::Admit(core::Request& request, uint64_t now_ns) {
  if (request.caller == nullptr) return base::OkStatus();
  if (!AreLimited(request.caller->limits) && !AreLimited(request.model->caller_limits())) {
    return base::OkStatus();
  }
  std::shared_ptr<Account>& known = base::PerThread<Known>::Get().PlaceOf(*request.caller);
  while (true) {
    if (known != nullptr && &known->quotas == this) [[likely]] {
      if (std::optional<base::Status> status = AdmitTo(*known, request, now_ns)) return *status;
    }
    known = AccountOf(request.caller, now_ns);
  }
}

std::optional<base::Status> CallerQuotas::AdmitTo(Account& account, core::Request& request,
                                                  uint64_t now_ns) {
  const core::Model& model = *request.model;
  const double bytes = InputBytes(request);
  Use* own = nullptr;  // null if its requests in flight are not counted
  std::shared_ptr<Use> of_model;
  {
    base::MutexLock lock(account.mutex);
    if (account.caller != request.caller) return std::nullopt;
    base::Status status = account.own.Check(request, bytes, now_ns);
    if (status.ok() && AreLimited(model.caller_limits())) {
      of_model = account.UseOf(model, now_ns);
      status = of_model->Check(request, bytes, now_ns);
    }
    if (status.ok()) {
      account.own.Take(bytes, now_ns);
      if (of_model != nullptr) of_model->Take(bytes, now_ns);
    }
    account.own.SayWhatIsLeft(request, now_ns);
    if (of_model != nullptr) of_model->SayWhatIsLeft(request, now_ns);
    if (!status.ok()) return status;
    if (account.own.limits.in_flight > 0) own = &account.own;
  }
  if (of_model != nullptr && of_model->limits.in_flight == 0) of_model.reset();
  if (own != nullptr || of_model != nullptr) {
    base::ObjectPool<InFlight>::Take()->Open(own, std::move(of_model), request);
  }
  return base::OkStatus();
}

std::shared_ptr<CallerQuotas::Account> CallerQuotas::AccountOf(const core::CallerRef& caller,
                                                               uint64_t now_ns) {
  base::MutexLock lock(mutex_);
  if (accounts_.size() >= prune_at_) Prune(now_ns);
  std::shared_ptr<Account>& account = accounts_[caller.get()];
  if (account == nullptr) account = std::make_shared<Account>(*this, caller);
  return account;
}

void CallerQuotas::Prune(uint64_t now_ns) {
  std::erase_if(accounts_, [now_ns](const auto& item) {
    Account& account = *item.second;
    base::MutexLock lock(account.mutex);
    if (!account.IsIdle(now_ns)) return false;
    account.caller.reset();
    return true;
  });
  prune_at_ = std::max<size_t>(64, 2 * accounts_.size());
}

}  // namespace nereid::schedule
