// SPDX-License-Identifier: Apache-2.0
#include "schedule/thread_shortage.h"

#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace nereid::schedule {
namespace {

constexpr uint64_t kPauseNs = 100'000'000;
// A shortage that lasts is reported no more often.
constexpr uint64_t kReportNs = 60'000'000'000;

}  // namespace

ThreadShortage::ThreadShortage(base::Timers& timers, std::string model, std::function<void()> look)
    : model_(std::move(model)), look_(std::move(look)), timer_(timers, [this] { OnTimer(); }) {}

base::Status ThreadShortage::Prepare() {
  try {
    timer_.ArmAt(base::NowNs());
    return base::OkStatus();
  } catch (const std::system_error& error) {
    return base::UnavailableError(std::string("could not start the thread of the timers: ") +
                                  error.what());
  }
}

void ThreadShortage::Note() {
  is_noted_.store(true);
  timer_.ArmAt(base::NowNs() + kPauseNs);
}

void ThreadShortage::OnTimer() {
  if (!is_noted_.exchange(false)) return;
  look_();
  const uint64_t now_ns = base::NowNs();
  if (reported_at_ns_ == 0 || now_ns - reported_at_ns_ >= kReportNs) {
    reported_at_ns_ = now_ns;
    NEREID_LOG(kError,
               "model '{}': the thread of an instance could not be started, because the process "
               "or its user has as many threads as it may have; requests wait until there is one",
               model_);
  }
}

}  // namespace nereid::schedule
