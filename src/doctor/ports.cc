// SPDX-License-Identifier: Apache-2.0
#include "doctor/ports.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace nereid::doctor {
namespace {

constexpr std::string_view kListening = "0A";          // in /proc/net/tcp
constexpr uint64_t kBindLowPorts = uint64_t{1} << 10;  // CAP_NET_BIND_SERVICE

// Returns the sockets that listen on the port, as links in /proc/PID/fd name them.
std::set<std::string> ListeningSockets(const base::SystemFiles& files, uint16_t port) {
  std::set<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const std::string text = files.Text(table).value_or("");
    for (const std::string_view line : base::Lines(text)) {
      // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
      const std::vector<std::string_view> words = base::Words(line);
      if (words.size() < 10 || words[3] != kListening) continue;
      const std::string_view local = words[1].substr(words[1].find(':') + 1);
      if (base::ToNumber(local, 16) == port) sockets.insert(fmt::format("socket:[{}]", words[9]));
    }
  }
  return sockets;
}

bool HasSocket(const base::SystemFiles& files, const std::string& process,
               const std::set<std::string>& sockets) {
  const std::string folder = process + "/fd";
  return std::ranges::any_of(files.Names(folder), [&](const std::string& name) {
    const std::optional<std::string> target = files.Link(fmt::format("{}/{}", folder, name));
    return target && sockets.contains(*target);
  });
}

// Returns the first port that any process may listen on, if this one may not use lower ones.
std::optional<uint64_t> FirstPermittedPort(const base::SystemFiles& files) {
  const auto capabilities =
      base::ToNumber(files.Field("/proc/self/status", "CapEff").value_or(""), 16).value_or(0);
  if ((capabilities & kBindLowPorts) != 0) return std::nullopt;
  return files.Number("/proc/sys/net/ipv4/ip_unprivileged_port_start");
}

}  // namespace

std::optional<std::string> FindListener(const base::SystemFiles& files, uint16_t port) {
  const std::set<std::string> sockets = ListeningSockets(files, port);
  if (sockets.empty()) return std::nullopt;
  for (const std::string& name : files.Names("/proc")) {
    const std::string process = "/proc/" + name;
    if (!base::ToNumber(name) || !HasSocket(files, process, sockets)) continue;
    return fmt::format("{} (process {})", files.Text(process + "/comm").value_or("?"), name);
  }
  return std::nullopt;
}

void ExaminePorts(const base::SystemFiles& files, const std::vector<Port>& ports, Report& report) {
  const uint64_t first_permitted = FirstPermittedPort(files).value_or(0);
  for (const Port& port : ports) {
    const std::string id = "ports." + port.id;
    const std::string what = fmt::format("port {} ({})", port.number, port.service);
    if (!port.is_free) {
      report.Problem(
          id,
          fmt::format(
              "{} is taken by {}", what,
              FindListener(files, port.number).value_or("a process that cannot be seen from here")),
          fmt::format("Stop that process, or start the server with {} and a free port.",
                      port.flag));
    } else if (port.number < first_permitted) {
      report.Problem(id, fmt::format("{} is only for privileged processes", what),
                     fmt::format("Choose a port from {} on with {}, or grant CAP_NET_BIND_SERVICE.",
                                 first_permitted, port.flag));
    } else {
      report.Ok(id, fmt::format("{} is free", what));
    }
  }
}

}  // namespace nereid::doctor
