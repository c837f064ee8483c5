// SPDX-License-Identifier: Apache-2.0
// What a command adds to a server that it runs in its own process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "repository/routed_store.h"
#include "service/service.h"

namespace nereid::cli {

// The ports on which a server listens; 0 for a service that is off, or that has a path instead.
struct ServerPorts {
  uint16_t http = 0;
  uint16_t grpc = 0;
  uint16_t metrics = 0;
};

// All may be empty.
struct ServerHooks {
  // Kinds of repository stores besides those that every server has.
  std::vector<repository::StoreKind> stores;
  // Called once all models are loaded, on the thread that has loaded them. A signal to stop is
  // heeded meanwhile.
  std::function<void(service::Service&, const ServerPorts&)> on_loaded;
  // Returns the text with which the program ends if models fail to load, in place of `error`.
  std::function<std::string(service::Service&, const std::string& error)> describe_failure;
};

}  // namespace nereid::cli
