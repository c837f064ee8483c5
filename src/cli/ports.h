// SPDX-License-Identifier: Apache-2.0
// The ports of a server that is started by hand: those that are usual, or the next free ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nereid::cli {

// A service and its port.
struct ServicePort {
  std::string_view service;   // for people: "HTTP"
  std::string_view option;    // that chooses the port: "--port"
  uint16_t usual = 0;         // if nothing is chosen
  std::optional<int> chosen;  // by the user; 0: any that is free
};

// The ports for the services, and lines that say which usual port was taken.
struct ChosenPorts {
  std::vector<uint16_t> ports;
  std::vector<std::string> notes;
};

// Gives each service the port that was chosen for it, or else its usual one or the next that is
// free. Fails if a chosen one is taken or no port; the error names the next free one.
base::Result<ChosenPorts> ChoosePorts(const std::vector<ServicePort>& services,
                                      const std::function<bool(uint16_t port)>& is_free);

// Whether a server could listen on the port of this numeric address. Other obstacles than another
// program, such as missing rights, count as free: listening then fails with the reason.
bool IsPortFree(const std::string& address, uint16_t port);

}  // namespace nereid::cli
