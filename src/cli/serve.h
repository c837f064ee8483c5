// SPDX-License-Identifier: Apache-2.0
// `nereid serve`: model files served at once, without a repository. This is all that comes before
// the server itself: what the arguments mean, and the flags of the server that follow from them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/served_models.h"

namespace nereid::cli {

// The options of the command.
struct ServeSettings {
  std::vector<std::string> models;  // PATH or NAME=PATH
  std::optional<std::string> name;
  std::string host = "127.0.0.1";
  std::optional<int> port;
  std::optional<int> grpc_port;
  std::optional<int> metrics_port;
  bool watch = false;
  bool verbose = false;
  std::optional<int> max_batch_size;
  std::vector<std::string> inputs;  // see ParseTensor
  std::vector<std::string> outputs;
  std::optional<std::string> config;  // the path of a configuration
  std::vector<std::string> server_flags;
};

// What is to be served, and how.
struct ServePlan {
  std::unique_ptr<ServedModels> served;
  std::vector<std::string> flags;  // of the server
  std::vector<std::string> notes;  // for the user
};

// Reads the arguments, makes the temporary repository and chooses the ports. The error is for
// people.
base::Result<ServePlan> PlanServe(const ServeSettings& settings);

}  // namespace nereid::cli
