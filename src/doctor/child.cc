// SPDX-License-Identifier: Apache-2.0
#include "doctor/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "base/write_all.h"

namespace nereid::doctor {
namespace {

using Clock = std::chrono::steady_clock;

// Ends the child with its result written to `pipe`, each text with a zero behind it.
[[noreturn]] void RunChild(const std::function<std::vector<std::string>()>& body, int pipe) {
  ::setpgid(0, 0);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
  std::string out;
  for (const std::string& text : body()) out.append(text).push_back('\0');
  if (!base::WriteAll(pipe, out)) ::_exit(1);
  // No handler of the framework's runs: some crash without an initialised environment.
  ::_exit(0);
}

// Reads until the child closes the pipe. Returns false if the time is up first.
bool ReadAll(int pipe, Clock::time_point end, std::string& text) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(left)) <= 0) continue;
    char buffer[4096];
    const ssize_t got = ::read(pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer, static_cast<size_t>(got));
  }
}

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find('\0');
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

}  // namespace

base::Result<std::vector<std::string>> TryInChild(
    const std::function<std::vector<std::string>()>& body, std::chrono::milliseconds limit) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return base::InternalError(fmt::format("no pipe can be made: {}", std::strerror(errno)));
  }
  const base::UniqueFd reading(ends[0]);
  base::UniqueFd writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return base::UnavailableError(
        fmt::format("no process can be started: {}", std::strerror(errno)));
  }
  if (child == 0) RunChild(body, writing.get());
  writing.Close();
  std::string text;
  const bool is_over = ReadAll(reading.get(), Clock::now() + limit, text);
  // What the child has started goes with it. Before it has made its group, there is only itself.
  if (!is_over && ::kill(-child, SIGKILL) != 0) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!is_over) {
    return base::UnavailableError(
        fmt::format("it did not end within {} s",
                    std::chrono::duration_cast<std::chrono::seconds>(limit).count()));
  }
  if (WIFSIGNALED(status)) {
    return base::InternalError(
        fmt::format("it ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status))));
  }
  if (status != 0) {
    return base::InternalError(fmt::format("it ended with status {}", WEXITSTATUS(status)));
  }
  return Split(text);
}

}  // namespace nereid::doctor
