// SPDX-License-Identifier: Apache-2.0
// Work from other threads goes through a lock-free stack; whoever finds it empty posts one drain to
// the event loop, so that many callers cost one wake-up. The storage of that one posted handler is a
// member, because the event loop's own recycling does not reach threads outside it.
#include "net/reactor.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/log.h"
#include "net/asio_pch.h"

namespace nereid::net {
namespace {

thread_local Reactor* current_reactor = nullptr;

constexpr std::chrono::seconds kBeat{1};

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

// Hands out one fixed block. At most one handler that uses it is queued at a time.
struct DrainStorage {
  alignas(std::max_align_t) std::byte bytes[256];
};

template <typename T>
struct DrainAllocator {
  using value_type = T;
  explicit DrainAllocator(DrainStorage* storage) : storage(storage) {}
  template <typename U>
  DrainAllocator(const DrainAllocator<U>& other) : storage(other.storage) {}
  T* allocate(size_t count) {
    NEREID_CHECK(count * sizeof(T) <= sizeof(storage->bytes));
    return reinterpret_cast<T*>(storage->bytes);
  }
  void deallocate(T*, size_t) {}
  template <typename U>
  bool operator==(const DrainAllocator<U>& other) const {
    return storage == other.storage;
  }
  DrainStorage* storage;
};

template <typename Fn>
struct DrainHandler {
  using allocator_type = DrainAllocator<void>;
  allocator_type get_allocator() const { return DrainAllocator<void>(storage); }
  void operator()() { fn(); }
  DrainStorage* storage;
  Fn fn;
};

}  // namespace

struct Reactor::Loop {
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
      context.get_executor()};
  boost::asio::steady_timer beat{context};
  DrainStorage drain_storage;
};

Reactor* Reactor::Current() { return current_reactor; }

Reactor::Reactor(unsigned index)
    : index_(index), loop_(std::make_unique<Loop>()), context_(&loop_->context) {
  Beat();
  thread_ = base::Thread("nereid-net-" + std::to_string(index), [this] { Run(); });
}

Reactor::~Reactor() { Stop(); }

void Reactor::Run() {
  current_reactor = this;
  try {
    loop_->context.run();
  } catch (const std::exception& error) {
    NEREID_LOG(kError, "event loop {} failed: {}", index_, error.what());
    base::CheckFailed(__FILE__, __LINE__, "no exception leaves an event handler");
  }
  current_reactor = nullptr;
}

void Reactor::Stop() {
  context_->stop();
  thread_.Join();
}

void Reactor::Beat() {
  loop_->beat.expires_after(kBeat);
  loop_->beat.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    heartbeats_.fetch_add(1, std::memory_order_relaxed);
    Beat();
  });
}

void Reactor::Post(base::UniqueFunction<void()> fn) { Post(*new FunctionTask(std::move(fn))); }

void Reactor::Post(Task& task) {
  Task* head = inbox_.load(std::memory_order_relaxed);
  do {
    task.next_in_queue = head;
    // Acquire: who finds the stack empty reuses the drain's storage after the drain that emptied it.
  } while (!inbox_.compare_exchange_weak(head, &task, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
  if (head == nullptr) ScheduleDrain();
}

void Reactor::ScheduleDrain() {
  auto drain = [this] { DrainInbox(); };
  boost::asio::post(*context_, DrainHandler<decltype(drain)>{&loop_->drain_storage, drain});
}

void Reactor::DrainInbox() {
  Task* newest = inbox_.exchange(nullptr, std::memory_order_acq_rel);
  Task* oldest = nullptr;
  while (newest != nullptr) {
    Task* next = newest->next_in_queue;
    newest->next_in_queue = oldest;
    oldest = newest;
    newest = next;
  }
  while (oldest != nullptr) {
    Task* task = oldest;
    oldest = task->next_in_queue;
    task->Run();
  }
}

void Reactor::RunAfterRound(base::UniqueFunction<void()> fn) {
  RunAfterRound(*new FunctionTask(std::move(fn)));
}

void Reactor::RunAfterRound(Task& task) {
  task.next_in_queue = nullptr;
  if (round_head_ != nullptr) {
    round_tail_->next_in_queue = &task;
    round_tail_ = &task;
    return;
  }
  round_head_ = round_tail_ = &task;
  // From the loop's own thread: queued behind the handlers that are ready, storage recycled.
  boost::asio::post(*context_, [this] { DrainRound(); });
}

void Reactor::DrainRound() {
  Task* task = std::exchange(round_head_, nullptr);
  round_tail_ = nullptr;
  while (task != nullptr) {
    Task* next = task->next_in_queue;
    task->Run();
    task = next;
  }
}

struct Timer::State {
  explicit State(Reactor& reactor) : timer(reactor.context()) {}
  boost::asio::steady_timer timer;
  base::UniqueFunction<void()> fn;
  uint64_t generation = 0;
};

Timer::Timer(Reactor& reactor) : state_(std::make_shared<State>(reactor)) {}

Timer::~Timer() { Cancel(); }

void Timer::Start(std::chrono::nanoseconds from_now, base::UniqueFunction<void()> fn) {
  const uint64_t generation = ++state_->generation;
  state_->fn = std::move(fn);
  state_->timer.expires_after(from_now);
  state_->timer.async_wait(
      [state = state_, generation](const boost::system::error_code& error) {
        if (error || generation != state->generation) return;
        base::UniqueFunction<void()> fn = std::move(state->fn);
        fn();
      });
}

void Timer::Cancel() {
  ++state_->generation;
  state_->fn = {};
  state_->timer.cancel();
}

ReactorPool::ReactorPool(unsigned threads) {
  if (threads == 0) {
    const unsigned cpus = base::AvailableCpus();
    threads = cpus == 1 ? 1 : std::clamp(cpus / 4, 2u, 16u);
  }
  for (unsigned i = 0; i < threads; ++i) {
    reactors_.push_back(std::unique_ptr<Reactor>(new Reactor(i)));
  }
}

ReactorPool::~ReactorPool() {
  // All loops stop before any is destroyed: a handler may still post to another reactor.
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
