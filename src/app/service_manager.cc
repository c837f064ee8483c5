// SPDX-License-Identifier: Apache-2.0
#include "app/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace nereid::app {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// How often Alive is sent within the manager's time, so that a busy machine may delay it.
constexpr int kBeats = 3;

std::string TakeVariable(const char* name) {
  const char* const value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  unsetenv(name);
  return text;
}

std::optional<int64_t> ToInteger(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

base::UniqueFd Connect(std::string_view path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path.front() == '@') address.sun_path[0] = '\0';
  // The length tells where an abstract name ends.
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) return {};
  return socket;
}

milliseconds PeriodOf(const ServiceManager& manager) {
  const microseconds time = manager.watchdog_time().value_or(microseconds(0)) / kBeats;
  return std::max(std::chrono::duration_cast<milliseconds>(time), milliseconds(1));
}

}  // namespace

ServiceManager ServiceManager::FromEnvironment() {
  const std::string path = TakeVariable("NOTIFY_SOCKET");
  const std::optional<int64_t> watchdog_us = ToInteger(TakeVariable("WATCHDOG_USEC"));
  const std::string process = TakeVariable("WATCHDOG_PID");
  const bool is_watched =
      watchdog_us && *watchdog_us > 0 && (process.empty() || ToInteger(process) == getpid());
  return {path, is_watched ? std::optional(microseconds(*watchdog_us)) : std::nullopt};
}

ServiceManager::ServiceManager(std::string_view socket_path,
                               std::optional<microseconds> watchdog_time)
    : socket_(Connect(socket_path)), watchdog_time_(watchdog_time) {}

void ServiceManager::Ready() {
  is_ready_ = true;
  Send("READY=1\nSTATUS=Serving");
}

bool ServiceManager::Reloading() {
  if (!is_ready_) return false;
  // The manager tells by this time whether the Ready that follows is a newer one.
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  Send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}",
                   std::chrono::duration_cast<microseconds>(now).count()));
  return true;
}

void ServiceManager::Stopping(std::chrono::seconds time) {
  Send(fmt::format("STOPPING=1\nSTATUS=Finishing requests\nEXTEND_TIMEOUT_USEC={}",
                   microseconds(time).count()));
}

void ServiceManager::Alive() const { Send("WATCHDOG=1"); }

void ServiceManager::Send(std::string_view message) const {
  if (!socket_.valid()) return;
  // A manager that does not read must not hold the server up.
  [[maybe_unused]] const ssize_t sent =
      send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Watchdog::Watchdog(const ServiceManager& manager, Check check) : check_(std::move(check)) {
  if (!manager.watchdog_time()) return;
  const std::chrono::milliseconds period = PeriodOf(manager);
  thread_.emplace("service-manager", period, [this, &manager, period] {
    if (check_(period)) manager.Alive();
  });
}

}  // namespace nereid::app
