// SPDX-License-Identifier: Apache-2.0
// What systemd is told about the process when it runs as a service of Type=notify: that it is
// ready, reloads, stops, and is alive (sd_notify(3), over a datagram socket). Without such a
// manager nothing is sent.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/periodic_thread.h"
#include "base/unique_fd.h"
#include "base/unique_function.h"

namespace nereid::app {

// Thread-compatible; Alive may be called by another thread.
class ServiceManager {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID and removes them, since children must not
  // speak for this process. REQUIRES: no other thread exists yet.
  static ServiceManager FromEnvironment();
  // No manager if `socket_path` is empty; one that begins with '@' is an abstract socket's.
  ServiceManager(std::string_view socket_path,
                 std::optional<std::chrono::microseconds> watchdog_time);

  void Ready();
  // The service is reloaded until the next Ready. Returns false, without effect, before the first
  // one.
  bool Reloading();
  // Stopping may take as long as `time`, even if that is longer than the manager's own limit.
  void Stopping(std::chrono::seconds time);
  void Alive() const;
  // The time without Alive after which the manager ends the process, if it does that.
  std::optional<std::chrono::microseconds> watchdog_time() const { return watchdog_time_; }

 private:
  void Send(std::string_view message) const;

  base::UniqueFd socket_;  // connected, or none
  std::optional<std::chrono::microseconds> watchdog_time_;
  bool is_ready_ = false;
};

// Tells the manager that the process is alive, from a thread of its own, as long as a check says
// so.
class Watchdog {
 public:
  // Whether the process works; returns within the given time in any case.
  using Check = base::UniqueFunction<bool(std::chrono::milliseconds)>;

  // Checks several times within the manager's time; does nothing if the manager has none.
  Watchdog(const ServiceManager& manager, Check check);

 private:
  Check check_;
  std::optional<base::PeriodicThread> thread_;
};

}  // namespace nereid::app
