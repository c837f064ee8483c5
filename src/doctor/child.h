// SPDX-License-Identifier: Apache-2.0
// Tries something in a process of its own, because it may crash, hang or write to the terminal.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace nereid::doctor {

// Runs `body` in a child process and returns the texts that it returns. The standard streams of the
// child are empty. Fails if the child crashes ("it ended by signal 11 (Segmentation fault)") or
// takes longer than `limit`; the child and what it started are then gone. REQUIRES: this process
// has one thread.
base::Result<std::vector<std::string>> TryInChild(
    const std::function<std::vector<std::string>()>& body, std::chrono::milliseconds limit);

}  // namespace nereid::doctor
