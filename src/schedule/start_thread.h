// SPDX-License-Identifier: Apache-2.0
// Starts a thread, or says why there is none: the process and its user may only have so many.
#pragma once

#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "base/thread.h"

namespace nereid::schedule {

// Fails with UNAVAILABLE.
inline base::Result<base::Thread> StartThread(const std::string& name, std::function<void()> body) {
  try {
    return base::Thread(name, std::move(body));
  } catch (const std::system_error& error) {
    return base::UnavailableError("could not start the thread '" + name + "': " + error.what());
  }
}

}  // namespace nereid::schedule
