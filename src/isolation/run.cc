// SPDX-License-Identifier: Apache-2.0
#include "isolation/run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/allocator.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "isolation/channel.h"
#include "isolation/confinement.h"
#include "isolation/model_host.h"
#include "isolation_backend/records.h"
#include "isolation_profile/program.h"

namespace nereid::isolation {
namespace {

using python::Outcome;
using python::Work;

constexpr int kChannel = 3;
constexpr size_t kMaxGreeting = size_t{1} << 20;
// Where, on the command line, a program stands that is to be run in place of this one. Before it
// are this program, its mode, the model's name and what the process may do.
constexpr int kProgramAt = 4;

// The server's first message, and the shared memory that came with it.
struct Greeting {
  Texts texts;
  int memory = -1;
};

Greeting ReceiveGreeting() {
  std::string text(kMaxGreeting, '\0');
  iovec data{text.data(), text.size()};
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof(ancillary);
  const ssize_t size = recvmsg(kChannel, &message, MSG_CMSG_CLOEXEC);
  Greeting greeting;
  if (size <= 0) return greeting;
  greeting.texts = ReadTexts(std::string_view(text).substr(0, static_cast<size_t>(size)));
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&greeting.memory, CMSG_DATA(header), sizeof(greeting.memory));
  }
  return greeting;
}

// Makes this process end with the server, however that ends.
void EndWithServer(const Texts& greeting) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  const auto server = greeting.find(key::kServerPid);
  if (server == greeting.end() || std::to_string(getppid()) != server->second) _exit(1);
  // Leaked, like every thread that ends with the process.
  new base::Thread("server-watch", [] {
    char byte = 0;
    while (recv(kChannel, &byte, sizeof(byte), 0) > 0) {
    }
    _exit(1);
  });
}

// The server decides when to end.
void IgnoreSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE}) {
    signal(number, SIG_IGN);
  }
}

Message Refusal(const base::Status& status) {
  std::string text(1, static_cast<char>(kFirstCode + static_cast<int>(status.code())));
  text += status.message();
  Message message;
  message.records.assign(text.begin(), text.end());
  return message;
}

// Tells the server why this process cannot do its work.
int GiveUp(const base::Status& status) {
  const std::string text(status.message());
  send(kChannel, text.data(), text.size(), MSG_NOSIGNAL);
  return 1;
}

// Becomes another program, which is confined in the same way.
int RunProgram(char** arguments) {
  execv(arguments[0], arguments);
  return GiveUp(base::InternalError(std::string("failed to start '") + arguments[0] +
                                    "': " + std::strerror(errno)));
}

// Does the server's work until it is told to finalize. Outlives the process's other threads.
class Service {
 public:
  Service(Channel& channel, std::unique_ptr<ModelHost> host)
      : channel_(channel), host_(std::move(host)) {}

  void Run() {
    Channel::Item item = channel_.FirstWork();
    while (item.kind != Work::kFinalize) {
      base::Result<Message> result = Do(item);
      const Outcome outcome = result.ok() ? Outcome::kOk : Outcome::kError;
      item = channel_.NextWork(item, outcome,
                               result.ok() ? std::move(result.value()) : Refusal(result.status()));
    }
    channel_.LetGo(item.offset);
    {
      base::MutexLock lock(mutex_);
      asked_ = nullptr;
    }
    host_.reset();
    base::FlushLog();
    channel_.EndWork(item, Outcome::kOk, {});
  }

 private:
  base::Result<Message> Do(const Channel::Item& item) {
    if (item.kind == Work::kExecute) return host_->Execute(item);
    const std::span<const char> payload = channel_.Payload(item);
    const std::string text(payload.begin(), payload.end());
    channel_.LetGo(item.offset);
    switch (item.kind) {
      case Work::kComplete:
        return host_->Load(text);
      case Work::kInitialize:
        return Initialize(text);
      default:
        return base::InternalError("the server asked for something unknown");
    }
  }

  base::Result<Message> Initialize(const std::string& arguments) {
    NEREID_RETURN_IF_ERROR(host_->Initialize(ReadTexts(arguments)));
    {
      base::MutexLock lock(mutex_);
      asked_ = host_.get();
    }
    new base::Thread("questions", [this] { AnswerQuestions(); });
    Message result;
    result.records.push_back(host_->can_check_ready() ? 'y' : 'n');
    return result;
  }

  // Replies to questions while the model executes.
  void AnswerQuestions() {
    Channel::Item question{};
    for (;;) {
      question = channel_.NextQuestion(question.ticket);
      const base::Status status = Answer(question);
      if (status.ok()) {
        channel_.Answer(question, Outcome::kOk, {});
      } else {
        channel_.Answer(question, Outcome::kError, Refusal(status));
      }
    }
  }

  base::Status Answer(const Channel::Item& question) {
    base::MutexLock lock(mutex_);
    if (asked_ == nullptr) return base::UnavailableError("the model is being unloaded");
    if (question.kind != Work::kCancel) return asked_->CheckReady();
    asked_->Cancel(question.size);
    return base::OkStatus();
  }

  Channel& channel_;
  std::unique_ptr<ModelHost> host_;  // of the thread that works
  base::Mutex mutex_;
  ModelHost* asked_ NEREID_GUARDED_BY(mutex_) = nullptr;  // null before and after it can be asked
};

}  // namespace

bool IsForIsolatedModel(int argc, char** argv) {
  return argc >= 2 && std::strcmp(argv[1], kProgramMode) == 0;
}

int RunIsolatedModel(int argc, char** argv, const std::function<TRITONSERVER_Server&()>& server) {
  base::Result<std::vector<std::string>> lacking =
      Confine(Confinement::Read(argc > 3 ? argv[3] : ""));
  if (!lacking.ok()) return GiveUp(lacking.status());
  if (argc > kProgramAt) return RunProgram(argv + kProgramAt);
  Greeting greeting = ReceiveGreeting();
  if (greeting.memory < 0) {
    constexpr std::string_view kText =
        "error: this mode of the program is for the server, which runs isolated models in it\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText.data(), kText.size());
    return 1;
  }
  IgnoreSignals();
  EndWithServer(greeting.texts);
  base::LogOptions log;
  log.verbose_level = std::atoi(greeting.texts[key::kVerbosity].c_str());
  static_cast<void>(base::ConfigureLog(log));
  for (const std::string& sentence : *lacking) {
    NEREID_LOG(kWarning, "{} is not isolated completely: {}", argv[2], sentence);
  }
  auto channel = Channel::Open(greeting.memory);
  if (!channel.ok()) return GiveUp(channel.status());
  Service service(**channel,
                  std::make_unique<ModelHost>(std::move(greeting.texts), **channel, server()));
  const base::AllocatorUpkeep upkeep;
  service.Run();
  // Threads that the backend left running must not see the end of objects.
  _exit(0);
}

}  // namespace nereid::isolation
