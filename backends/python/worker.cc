// SPDX-License-Identifier: Apache-2.0
#include "python_backend/worker.h"

#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backend_kit/handles.h"
#include "python_backend/decode.h"
#include "python_backend/wait.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;
using backend::StrCat;
using Clock = std::chrono::steady_clock;

// Those that this process may use.
int CoreCount() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0
             ? CPU_COUNT(&cores)
             : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

// About what an execution of a small model takes: while it runs, waking up would cost more.
// With one core, whoever looks keeps the worker from what is looked for.
const std::chrono::nanoseconds kSpin = std::chrono::microseconds(CoreCount() > 1 ? 50 : 0);

// A call may load a model, which takes any time; who waits for a dead worker hears of it soon.
constexpr std::chrono::milliseconds kPatienceWithLastCalls{300};

// Clients that stop in the middle of what they send hold no more than this. Sizes of blocks are
// few: this much of each fits into the place for them.
constexpr uint64_t kMostInputBytes = uint64_t{256} << 20;
constexpr uint64_t kKeptInputBytes = uint64_t{128} << 20;

// Hands the greeting and the memory to the other end.
Error SendGreeting(int channel, const std::string& greeting, int memory) {
  iovec data{const_cast<char*>(greeting.data()), greeting.size()};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof(ancillary);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &memory, sizeof(memory));
  if (sendmsg(channel, &message, MSG_NOSIGNAL) != static_cast<ssize_t>(greeting.size())) {
    return Error::Internal(StrCat("failed to reach a process: ", std::strerror(errno)));
  }
  return {};
}

}  // namespace

Worker::Worker(WorkerOptions options, std::unique_ptr<Region> region, CallHandler on_call,
               DeathHandler on_death)
    : options_(std::move(options)),
      region_(std::move(region)),
      blocks_(*region_, {.begin = kBlocksBegin, .end = region_->inputs_begin()}),
      inputs_(*region_, {.begin = region_->inputs_begin(),
                         .end = region_->worker_begin(),
                         .most_bytes = kMostInputBytes,
                         .kept_bytes = kKeptInputBytes}),
      name_(options_.name),
      owner_(std::make_shared<const Owner>(Owner{std::move(on_call), std::move(on_death)})) {}

std::string Worker::name() const {
  const backend::MutexLock lock(owner_mutex_);
  return name_;
}

std::shared_ptr<const Worker::Owner> Worker::owner() const {
  const backend::MutexLock lock(owner_mutex_);
  return owner_;
}

void Worker::Adopt(std::string name, CallHandler on_call, DeathHandler on_death) {
  auto owner = std::make_shared<const Owner>(Owner{std::move(on_call), std::move(on_death)});
  const backend::MutexLock lock(owner_mutex_);
  name_ = std::move(name);
  owner_.swap(owner);
}

Worker::~Worker() {
  if (process_ != nullptr) Stop(Clock::now());
  if (channel_ >= 0) close(channel_);
}

Result<std::shared_ptr<Worker>> Worker::Start(Supervisor& supervisor, WorkerOptions options,
                                              CallHandler on_call, DeathHandler on_death) {
  NEREID_KIT_ASSIGN(std::unique_ptr<Region> region, Region::Create());
  std::shared_ptr<Worker> worker(
      new Worker(std::move(options), std::move(region), std::move(on_call), std::move(on_death)));
  NEREID_KIT_TRY(worker->Launch(supervisor).Release());
  return worker;
}

Error Worker::Launch(Supervisor& supervisor) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error::Internal(StrCat("failed to create a socket pair: ", std::strerror(errno)));
  }
  channel_ = ends[0];
  NEREID_KIT_TRY(SendGreeting(channel_, options_.greeting, region_->fd()).Release());
  Command command = options_.command;
  command.channel = ends[1];
  // The process keeps this object: it ends before.
  auto process = supervisor.Start(
      std::move(command), [self = shared_from_this()](std::string how) { self->OnExit(how); });
  close(ends[1]);
  if (!process.ok()) return process.TakeError();
  process_ = std::move(process).value();
  listener_ = std::thread([this] { Listen(); });
  return {};
}

Error Worker::WaitForHello() {
  Mailbox& done = region_->control().done;
  const auto deadline = Clock::now() + options_.start_timeout;
  while (done.word.load(std::memory_order_acquire) == 0 && is_alive()) {
    if (Clock::now() >= deadline) {
      return Error::Internal(StrCat("Stub process '", name(),
                                    "' is not healthy: it did not start in ",
                                    options_.start_timeout.count(), " seconds"));
    }
    WaitWhile(done.word, done.sleeping, 0, kSpin, deadline);
  }
  if (is_alive()) return {};
  const std::string words = LastWords();
  return Error::Internal(words.empty()
                             ? DeathMessage()
                             : StrCat("Stub process '", name(), "' is not healthy: ", words));
}

std::string Worker::LastWords() const {
  char text[4096];
  const ssize_t size = recv(channel_, text, sizeof(text), MSG_DONTWAIT);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

void Worker::OnExit(std::string how) {
  {
    const backend::MutexLock lock(death_mutex_);
    has_exited_ = true;
    if (why_.empty()) why_ = std::move(how);
    is_dead_.store(true, std::memory_order_release);
  }
  WakeAll();
  const backend::MutexLock lock(death_mutex_);
  died_.NotifyAll();
}

void Worker::WakeAll() {
  // Whatever the flags say of who sleeps: the worker may have overwritten them.
  std::atomic<uint32_t> somebody{1};
  Control& control = region_->control();
  for (std::atomic<uint32_t>* word :
       {&control.done.word, &control.reply.word, &control.ring_bell}) {
    Signal(*word, somebody);
  }
}

std::string Worker::DeathMessage() const {
  const std::string name = this->name();
  const backend::MutexLock lock(death_mutex_);
  return StrCat("Stub process '", name, "' is not healthy: ", why_);
}

void Worker::Condemn(const std::string& why) {
  {
    const backend::MutexLock lock(death_mutex_);
    if (has_exited_ || !why_.empty()) return;
    why_ = why;
    is_dead_.store(true, std::memory_order_release);
  }
  process_->Kill();
  WakeAll();
}

void Worker::Stop(Clock::time_point deadline) {
  {
    const backend::MutexLock lock(death_mutex_);
    while (!has_exited_ && died_.WaitUntil(death_mutex_, deadline)) {
    }
    // The signal takes no lock, and does nothing to a process that has ended.
    if (!has_exited_) process_->Kill();
    while (!has_exited_) died_.Wait(death_mutex_);
  }
  if (listener_.joinable()) {
    if (listener_.get_id() == std::this_thread::get_id()) {
      listener_.detach();
    } else {
      listener_.join();
    }
  }
}

bool Worker::TakeCall() {
  Control& control = region_->control();
  const uint32_t tail = control.ring_tail.load(std::memory_order_relaxed);
  const uint32_t head = control.ring_head.load(std::memory_order_acquire);
  if (head == tail) return false;
  // A call may pass on what it found in its work. Who checks threads sees only this process, and
  // not that the worker came in between.
  control.work.word.load(std::memory_order_acquire);
  if (head - tail > kRingCapacity) {
    Condemn("it corrupted the memory shared with the server");
    return false;
  }
  const uint64_t offset = std::atomic_ref(control.ring[tail % kRingCapacity]).load();
  control.ring_tail.store(tail + 1, std::memory_order_release);
  if (control.ring_waiting.load() != 0) Publish(control.ring_tail, control.ring_waiting, tail + 1);
  if (offset % alignof(BlockHeader) != 0 || !region_->Holds(offset, sizeof(BlockHeader))) {
    Condemn("it corrupted the memory shared with the server");
    return false;
  }
  auto* const header = reinterpret_cast<BlockHeader*>(region_->At(offset));
  const auto kind = static_cast<Call>(std::atomic_ref(header->kind).load());
  const uint64_t size = std::atomic_ref(header->size).load();
  if (!region_->Holds(offset + sizeof(BlockHeader), size)) {
    Condemn("it corrupted the memory shared with the server");
    return false;
  }
  owner()->on_call(
      shared_from_this(),
      {header, kind, {reinterpret_cast<const char*>(header + 1), static_cast<size_t>(size)}});
  handled_calls_.store(tail + 1, std::memory_order_release);
  handled_calls_.notify_all();
  return true;
}

bool Worker::HasOpenCalls() const {
  const uint32_t made = region_->control().ring_head.load(std::memory_order_acquire);
  return static_cast<int32_t>(made - handled_calls_.load(std::memory_order_acquire)) > 0;
}

void Worker::WaitForCalls() {
  const uint32_t made = region_->control().ring_head.load(std::memory_order_acquire);
  for (;;) {
    const uint32_t handled = handled_calls_.load(std::memory_order_acquire);
    if (static_cast<int32_t>(made - handled) <= 0 || !is_listening_.load()) return;
    handled_calls_.wait(handled);
  }
}

void Worker::WaitForLastCalls() const {
  const auto deadline = Clock::now() + kPatienceWithLastCalls;
  while (is_listening_.load() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Worker::Listen() {
  pthread_setname_np(pthread_self(), "python-calls");
  Control& control = region_->control();
  for (;;) {
    const uint32_t seen = control.ring_bell.load(std::memory_order_acquire);
    if (TakeCall()) continue;
    if (!is_alive()) break;
    WaitWhile(control.ring_bell, control.ring_sleeping, seen, std::chrono::nanoseconds(0));
  }
  is_listening_.store(false);
  handled_calls_.fetch_add(1u << 31);
  handled_calls_.notify_all();
  owner()->on_death();
}

Worker::Ticket Worker::Put(Mailbox& to, const Mailbox& from, Work work, uint64_t offset,
                           uint64_t size) {
  const uint32_t seen = from.word.load(std::memory_order_acquire);
  to.kind = static_cast<uint32_t>(work);
  to.offset = offset;
  to.size = size;
  const uint32_t number = to.word.load(std::memory_order_relaxed) + 1;
  Signal(to.word, to.sleeping);
  return {number, seen};
}

Result<Worker::Answer> Worker::Await(Mailbox& from, Ticket ticket, std::chrono::nanoseconds spin,
                                     Clock::time_point deadline, BlockHeader** answer_block) {
  // What was asked before and never waited for may still be answered; the ticket tells.
  for (;;) {
    if (!is_alive()) return Error::Internal(DeathMessage());
    const uint32_t word = WaitWhile(from.word, from.sleeping, ticket.seen, spin, deadline);
    if (word == ticket.seen) {
      if (Clock::now() < deadline) continue;
      return Error::Unavailable(StrCat("Stub process '", name(), "' did not answer in time"));
    }
    ticket.seen = word;
    if (from.ticket == ticket.number) break;
  }
  const auto outcome = static_cast<Outcome>(from.kind);
  const uint64_t at = std::atomic_ref(from.offset).load();
  const uint64_t length = std::atomic_ref(from.size).load();
  *answer_block = nullptr;
  if (at == 0) return Answer{outcome, {}};
  if (at % alignof(BlockHeader) != 0 || !region_->Holds(at, sizeof(BlockHeader)) ||
      !region_->Holds(at + sizeof(BlockHeader), length)) {
    Condemn("it corrupted the memory shared with the server");
    return Error::Internal(StrCat("Stub process '", name(), "' is not healthy: ",
                                  "it corrupted the memory shared with the server"));
  }
  *answer_block = reinterpret_cast<BlockHeader*>(region_->At(at));
  return Answer{outcome, {region_->At(at + sizeof(BlockHeader)), static_cast<size_t>(length)}};
}

Result<Worker::Answer> Worker::Run(Work work, const BlockPool::Block& block, uint64_t size,
                                   Clock::time_point deadline) {
  Control& control = region_->control();
  // Looking pays where models are quick; where they were not, it is tried less and less.
  const bool looks = misses_ == 0 || ++skipped_looks_ >= misses_;
  if (looks) skipped_looks_ = 0;
  const Clock::time_point start = Clock::now();
  Begin(work, block, size);
  Result<Answer> answer =
      Await(control.done, begun_, looks ? kSpin : std::chrono::nanoseconds(0), deadline, &answer_);
  if (looks) misses_ = Clock::now() - start <= kSpin ? 0 : std::min(misses_ * 2 + 1, 63u);
  return answer;
}

void Worker::Begin(Work work, const BlockPool::Block& block, uint64_t size) {
  Control& control = region_->control();
  begun_ = Put(control.work, control.done, work, block.exists() ? block.payload_offset() : 0, size);
}

std::optional<Worker::Answer> Worker::Look(std::chrono::nanoseconds patience) {
  Control& control = region_->control();
  if (LookWhile(control.done.word, begun_.seen, patience) == begun_.seen) return std::nullopt;
  if (!is_alive() || control.done.ticket != begun_.number) return std::nullopt;
  if (HasOpenCalls()) return std::nullopt;
  auto answer = Await(control.done, begun_, {}, Clock::time_point::max(), &answer_);
  if (answer.ok()) return answer.value();
  answer.TakeError().Ignore();  // Wait finds it, too
  return std::nullopt;
}

Result<Worker::Answer> Worker::Wait() {
  return Await(region_->control().done, begun_, {}, Clock::time_point::max(), &answer_);
}

void Worker::ReleaseAnswer() {
  if (answer_ != nullptr) Release(std::exchange(answer_, nullptr));
}

Result<std::string> Worker::RunText(Work work, std::string_view text, Clock::time_point deadline) {
  NEREID_KIT_ASSIGN(const BlockPool::Block block, blocks_.Allocate(text.size()));
  std::memcpy(block.payload(), text.data(), text.size());
  block.Share();
  NEREID_KIT_ASSIGN(const Answer answer, Run(work, block, text.size(), deadline));
  if (answer.payload.size() > kMaxText) {
    ReleaseAnswer();
    return Error::Internal(StrCat("a worker's text is longer than ", kMaxText, " bytes"));
  }
  std::string payload(answer.payload.begin(), answer.payload.end());
  ReleaseAnswer();
  if (answer.outcome != Outcome::kOk) return Error::Internal(payload);
  return payload;
}

Result<std::string> Worker::Ask(Work question, Clock::time_point deadline) {
  const backend::MutexLock lock(question_mutex_);
  Control& control = region_->control();
  Ticket ticket = std::exchange(open_question_, {});
  BlockHeader* block = nullptr;
  if (ticket.number != 0 && control.reply.word.load(std::memory_order_acquire) != ticket.seen) {
    // An answer that came when nobody waited any more is old.
    auto old = Await(control.reply, ticket, std::chrono::nanoseconds(0), deadline, &block);
    if (!old.ok()) old.TakeError().Ignore();
    if (block != nullptr) Release(block);
    ticket = {};
  }
  if (ticket.number == 0) ticket = Put(control.question, control.reply, question, 0, 0);
  auto answered = Await(control.reply, ticket, std::chrono::nanoseconds(0), deadline, &block);
  if (!answered.ok()) {
    open_question_ = ticket;
    return answered.TakeError();
  }
  const Answer answer = answered.value();
  const std::span<const char> text =
      answer.payload.first(std::min<size_t>(answer.payload.size(), kMaxMessage));
  std::string payload(text.begin(), text.end());
  if (block != nullptr) Release(block);
  if (answer.outcome != Outcome::kOk) return Error::Internal(payload);
  return payload;
}

void Worker::Reply(BlockHeader* header, Outcome outcome) {
  header->outcome = static_cast<uint32_t>(outcome);
  header->reply_offset = 0;
  header->reply_size = 0;
  Publish(header->state, header->sleeping, kBlockReplied);
}

void Worker::Reply(BlockHeader* header, Outcome outcome, const BlockPool::Block& block,
                   uint64_t size) {
  block.Share();
  header->outcome = static_cast<uint32_t>(outcome);
  header->reply_offset = block.offset();
  header->reply_size = size;
  Publish(header->state, header->sleeping, kBlockReplied);
}

void Worker::Reply(BlockHeader* header, Outcome outcome, std::string_view text) {
  auto block = blocks_.Allocate(text.size());
  if (!block.ok()) {
    block.TakeError().Ignore();
    return Reply(header, Outcome::kError);
  }
  std::memcpy(block.value().payload(), text.data(), text.size());
  Reply(header, outcome, block.value(), text.size());
}

void Worker::Release(BlockHeader* header) {
  header->state.store(kBlockFree, std::memory_order_release);
}

}  // namespace nereid::python
