// SPDX-License-Identifier: Apache-2.0
#include "python_backend/worker.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "backend_kit/handles.h"
#include "python_backend/wait.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;
using backend::StrCat;
using Clock = std::chrono::steady_clock;

// A call may load a model, which takes any time, but requests of a dead worker must fail soon.
constexpr std::chrono::milliseconds kPatienceWithLastCalls{300};

// Sends the greeting and the memory to the other end.
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
      memory_(std::move(region)),
      vitals_(
          options_.name, memory_.region().control(), [this] { process_->Kill(); }, options_.what),
      calls_(memory_.region()),
      work_(memory_.region(), vitals_, memory_.blocks(), calls_),
      questions_(memory_.region(), vitals_),
      owner_(std::make_shared<const Owner>(Owner{std::move(on_call), std::move(on_death)})) {}

std::shared_ptr<const Worker::Owner> Worker::owner() const {
  const backend::MutexLock lock(owner_mutex_);
  return owner_;
}

void Worker::Adopt(std::string name, CallHandler on_call, DeathHandler on_death) {
  vitals_.Rename(std::move(name));
  auto owner = std::make_shared<const Owner>(Owner{std::move(on_call), std::move(on_death)});
  const backend::MutexLock lock(owner_mutex_);
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
  NEREID_KIT_TRY(SendGreeting(channel_, options_.greeting, region().fd()).Release());
  Command command = options_.command;
  command.channel = ends[1];
  // The process's callback holds this object, and the process ends first.
  auto process = supervisor.Start(std::move(command), [self = shared_from_this()](std::string how) {
    self->vitals_.NoteExit(std::move(how));
  });
  close(ends[1]);
  if (!process.ok()) return process.TakeError();
  process_ = std::move(process).value();
  listener_ = std::thread([this] { Listen(); });
  return {};
}

Error Worker::WaitForHello() {
  Mailbox& done = region().control().done;
  const auto deadline = Clock::now() + options_.start_timeout;
  while (done.word.load(std::memory_order_acquire) == 0 && is_alive()) {
    if (Clock::now() >= deadline) {
      return Error::Internal(StrCat(vitals_.label(), " is not healthy: it did not start in ",
                                    options_.start_timeout.count(), " seconds"));
    }
    WaitWhile(done.word, done.sleeping, 0, SpinTime(), deadline);
  }
  if (is_alive()) return {};
  const std::string words = LastWords();
  return Error::Internal(words.empty() ? DeathMessage()
                                       : StrCat(vitals_.label(), " is not healthy: ", words));
}

std::string Worker::LastWords() const {
  char text[4096];
  const ssize_t size = recv(channel_, text, sizeof(text), MSG_DONTWAIT);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : std::string();
}

void Worker::Stop(Clock::time_point deadline) {
  if (!vitals_.WaitForExit(deadline)) {
    process_->Kill();
    vitals_.WaitForExit();
  }
  if (!listener_.joinable()) return;
  if (listener_.get_id() == std::this_thread::get_id()) {
    listener_.detach();
  } else {
    listener_.join();
  }
}

void Worker::Listen() {
  pthread_setname_np(pthread_self(), "python-calls");
  for (;;) {
    const uint32_t seen = calls_.bell();
    auto call = calls_.Take();
    if (!call.ok()) {
      Condemn(call.TakeError().message());
      break;
    }
    if (call.value()) {
      owner()->on_call(shared_from_this(), *call.value());
      calls_.NoteHandled();
      continue;
    }
    if (!is_alive()) break;
    calls_.WaitForBell(seen);
  }
  calls_.Close();
  owner()->on_death();
}

void Worker::WaitForLastCalls() { calls_.WaitForClose(Clock::now() + kPatienceWithLastCalls); }

}  // namespace nereid::python
