// SPDX-License-Identifier: Apache-2.0
// The ports of a server: whether each is free, and if not, which process has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system_files.h"
#include "doctor/report.h"

namespace nereid::doctor {

// A port that a server would listen on.
struct Port {
  std::string id;       // of the finding: "http"
  std::string service;  // for people: "HTTP"
  std::string flag;     // of the server, which chooses another one: "--http-port"
  uint16_t number = 0;
  bool is_free = true;
};

// Returns "python3 (process 12)", or nothing if the process cannot be seen: it may be in another
// container, or belong to another user.
std::optional<std::string> FindListener(const base::SystemFiles& files, uint16_t port);

void ExaminePorts(const base::SystemFiles& files, const std::vector<Port>& ports, Report& report);

}  // namespace nereid::doctor
