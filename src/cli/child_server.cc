// SPDX-License-Identifier: Apache-2.0
#include "cli/child_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "cli/json.h"

namespace nereid::cli {
namespace {

// The time between looks at whether to stop.
constexpr int kPollMs = 100;

// A pipe for the summary of the server. `serve --json` keeps its standard output for itself: what
// models print goes to the standard error, which is not needed, because errors come with --json
// too.
struct Pipe {
  base::UniqueFd read;
  base::UniqueFd write;
};

base::Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return base::UnavailableError(std::strerror(errno));
  return Pipe{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

// The part of a start that is done in the new process. Calls only what is allowed between fork and
// exec in a program with threads.
[[noreturn]] void Become(char* const* argv, int output, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Ctrl-C is for the command, which then stops the server itself.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
  execv("/proc/self/exe", argv);
  _exit(127);
}

base::Result<pid_t> Spawn(std::vector<std::string> arguments, int output) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) Become(argv.data(), output, parent);
  if (pid < 0) {
    return base::UnavailableError(fmt::format("cannot start a server: {}", std::strerror(errno)));
  }
  return pid;
}

// Returns the first line, or what there is when the server has ended.
base::Result<std::string> ReadLine(int fd, const std::stop_token& stop) {
  std::string line;
  while (!stop.stop_requested()) {
    pollfd wait{fd, POLLIN, 0};
    if (poll(&wait, 1, kPollMs) <= 0) continue;
    char block[4096];
    const ssize_t size = read(fd, block, sizeof block);
    if (size <= 0) return line;
    line.append(block, static_cast<size_t>(size));
    if (line.ends_with('\n')) return line;
  }
  return base::CancelledError("interrupted");
}

}  // namespace

base::Result<std::unique_ptr<ChildServer>> ChildServer::Start(
    const std::vector<std::string>& arguments, const std::stop_token& stop) {
  std::vector<std::string> line = {"nereid",      "serve", "--json",         "--port", "0",
                                   "--grpc-port", "0",     "--metrics-port", "0"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  NEREID_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  NEREID_ASSIGN_OR_RETURN(const pid_t pid, Spawn(std::move(line), output.write.get()));
  output.write.Close();
  std::unique_ptr<ChildServer> server(new ChildServer(pid));
  NEREID_ASSIGN_OR_RETURN(const std::string summary, ReadLine(output.read.get(), stop));
  NEREID_RETURN_IF_ERROR(server->TakeSummary(summary));
  return server;
}

base::Status ChildServer::TakeSummary(const std::string& json) {
  rapidjson::Document document;
  if (!ParseJson(json, document)) {
    return base::Status(base::StatusCode::kUnknown, "the server ended without a reason");
  }
  if (const std::string_view error = TextOf(document, "error"); !error.empty()) {
    return base::Status(base::StatusCode::kUnknown, std::string(error));
  }
  http_url_ = fmt::format("http://{}", TextOf(document, "http"));
  grpc_url_ = fmt::format("http://{}", TextOf(document, "grpc"));
  for (const rapidjson::Value& model : ListOf(document, "models")) {
    models_.emplace_back(TextOf(model, "name"));
  }
  return base::OkStatus();
}

ChildServer::~ChildServer() {
  // A server that does not stop within its exit timeout ends itself.
  kill(pid_, SIGTERM);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace nereid::cli
