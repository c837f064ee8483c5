// SPDX-License-Identifier: Apache-2.0
// One pass of the loop handles, in this order: due timers; all ready events and the small replies
// to them; tasks that these requested with RunSoon; tasks that other threads posted; the work of
// the round and its small replies. Work from other threads comes through an inbox without a lock;
// only a thread that posts while the loop sleeps pays for waking it.
#include "net/reactor.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/log.h"
#include "base/no_wait.h"
#include "base/system_limits.h"

namespace nereid::net {
namespace {

thread_local Reactor* current_reactor = nullptr;

// The number of events handled in one pass.
constexpr int kEvents = 256;
// The number of tasks that may wait for each other.
constexpr int kMaxTogether = 16;

// Runs a function object once and deletes itself.
class FunctionTask final : public Task {
 public:
  explicit FunctionTask(base::UniqueFunction<void()> fn) : fn_(std::move(fn)) {}
  void Run() override {
    const std::unique_ptr<FunctionTask> self(this);
    fn_();
  }

 private:
  base::UniqueFunction<void()> fn_;
};

// Tasks may queue themselves and others again while they run; those wait for the next time.
void RunAll(base::Queue<Task> tasks) {
  while (Task* const task = tasks.Pop()) task->Run();
}

}  // namespace

Reactor* Reactor::Current() { return current_reactor; }

Reactor::Reactor(unsigned index, base::Watchdog* watchdog)
    : index_(index),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  NEREID_CHECK(epoll_.valid() && wake_.valid());
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  NEREID_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0);
  const std::string name = "nereid-net-" + std::to_string(index);
  if (watchdog != nullptr) {
    watch_ = watchdog->Add({.heartbeat = heartbeat_, .kind = "reactor", .name = name});
  }
  thread_ = base::Thread(name, [this] { Run(); });
}

Reactor::~Reactor() { Stop(); }

void Reactor::Run() {
  const base::NoWaitScope no_wait;
  current_reactor = this;
  heartbeat_.Start();
  while (!is_stopping_) {
    int timeout_ms = RunTimers();
    if (!soon_.empty() || !round_.empty()) timeout_ms = 0;
    HandleEvents(timeout_ms);
    RunAll(std::move(soon_));
    RunAll(inbox_.TakeAll());
    // Work of the round may queue more of it: replies that are sent together.
    is_in_round_ = true;
    while (!round_.empty()) RunAll(std::move(round_));
    is_in_round_ = false;
    RunTogetherNow();
  }
  heartbeat_.Rest();
  current_reactor = nullptr;
}

void Reactor::HandleEvents(int timeout_ms) {
  // A thread that posts while the inbox rests wakes the loop.
  if (timeout_ms != 0 && !inbox_.TryRest()) timeout_ms = 0;
  epoll_event events[kEvents];
  heartbeat_.Rest();
  const int count = ::epoll_wait(epoll_.get(), events, kEvents, timeout_ms);
  heartbeat_.Start();
  inbox_.EndRest();
  NEREID_CHECK(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == nullptr) continue;  // a wake-up
    events_left_ = count - 1 - i;
    static_cast<Watched*>(events[i].data.ptr)->OnEvents(events[i].events);
    if (together_count_ >= kMaxTogether) RunTogetherNow();
  }
  events_left_ = 0;
  RunTogetherNow();
}

void Reactor::RunTogetherNow() {
  together_count_ = 0;
  RunAll(std::move(together_));
}

bool Reactor::Watch(int fd, Watched& watched) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watched;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Reactor::Unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Reactor::Stop() {
  is_stopping_ = true;
  Wake();
  thread_.Join();
  while (posters_ != 0) std::this_thread::yield();
}

void Reactor::Wake() {
  const uint64_t one = 1;
  // If the counter is full, a wake-up is pending already.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void Reactor::Post(base::UniqueFunction<void()> fn) { Post(*new FunctionTask(std::move(fn))); }

void Reactor::Post(Task& task) {
  if (IsCurrent()) {
    inbox_.Push(task);  // checked before the next wait
    return;
  }
  // As soon as the task runs, a thread that waits for it may destroy the pool; Stop waits until
  // this wake-up is complete.
  ++posters_;
  if (inbox_.Push(task)) Wake();
  --posters_;
}

void Reactor::RunSoon(Task& task) { soon_.Append(task); }

void Reactor::RunTogether(Task& task) {
  together_.Append(task);
  ++together_count_;
}

void Reactor::RunAfterRound(base::UniqueFunction<void()> fn) {
  RunAfterRound(*new FunctionTask(std::move(fn)));
}

void Reactor::RunAfterRound(Task& task) { round_.Append(task); }

int Reactor::RunTimers() {
  const uint64_t now_ns = base::NowNs();
  while (!timers_.empty() && timers_.front()->due_ns_ <= now_ns) {
    Timer& timer = *timers_.front();
    RemoveTimer(timer);
    // The callback may restart the timer, or destroy it.
    base::UniqueFunction<void()> fn = std::move(timer.fn_);
    fn();
  }
  if (timers_.empty()) return -1;
  const uint64_t wait_ms = (timers_.front()->due_ns_ - now_ns + 999'999) / 1'000'000;
  return static_cast<int>(std::min<uint64_t>(wait_ms, INT_MAX));
}

void Reactor::AddTimer(Timer& timer) {
  timer.index_ = timers_.size();
  timers_.push_back(&timer);
  SiftTimer(timer.index_);
}

void Reactor::RemoveTimer(Timer& timer) {
  const size_t index = std::exchange(timer.index_, Timer::kNotQueued);
  Timer* const last = timers_.back();
  timers_.pop_back();
  if (last == &timer) return;
  timers_[index] = last;
  SiftTimer(index);
}

void Reactor::SiftTimer(size_t index) {
  Timer* const timer = timers_[index];
  const auto place = [this](size_t at, Timer* moved) {
    timers_[at] = moved;
    moved->index_ = at;
  };
  while (index > 0 && timer->due_ns_ < timers_[(index - 1) / 2]->due_ns_) {
    place(index, timers_[(index - 1) / 2]);
    index = (index - 1) / 2;
  }
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= timers_.size()) break;
    if (child + 1 < timers_.size() && timers_[child + 1]->due_ns_ < timers_[child]->due_ns_)
      ++child;
    if (timers_[child]->due_ns_ >= timer->due_ns_) break;
    place(index, timers_[child]);
    index = child;
  }
  place(index, timer);
}

Timer::Timer(Reactor& reactor) : reactor_(reactor) {}

Timer::~Timer() { Cancel(); }

void Timer::Start(std::chrono::nanoseconds from_now, base::UniqueFunction<void()> fn) {
  Cancel();
  fn_ = std::move(fn);
  due_ns_ = base::NowNs() + static_cast<uint64_t>(std::max<int64_t>(from_now.count(), 0));
  reactor_.AddTimer(*this);
}

void Timer::Cancel() {
  if (index_ == kNotQueued) return;
  reactor_.RemoveTimer(*this);
  fn_ = {};
}

ReactorPool::ReactorPool(unsigned threads, base::Watchdog* watchdog)
    : workers_("nereid-work", std::clamp(base::AvailableCpus() / 2, 2u, 16u)) {
  if (threads == 0) {
    const unsigned cpus = base::AvailableCpus();
    threads = cpus == 1 ? 1 : std::clamp(cpus / 4, 2u, 16u);
  }
  for (unsigned i = 0; i < threads; ++i) {
    reactors_.push_back(std::unique_ptr<Reactor>(new Reactor(i, watchdog)));
  }
}

ReactorPool::~ReactorPool() {
  // All loops stop before any is destroyed, because a handler may still post to another reactor.
  for (const auto& reactor : reactors_) reactor->Stop();
}

Reactor& ReactorPool::LeastLoaded() {
  Reactor* least = reactors_.front().get();
  for (const auto& reactor : reactors_) {
    if (reactor->connections() < least->connections()) least = reactor.get();
  }
  return *least;
}

}  // namespace nereid::net
