// SPDX-License-Identifier: Apache-2.0
// What `nereid serve` prints once its models are loaded: where the server is, what each model takes
// and gives, and calls to paste.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sample_call.h"
#include "cli/served_models.h"
#include "cli/server_hooks.h"
#include "config/model_config.h"
#include "service/service.h"

namespace nereid::cli {

// A model of the server.
struct ModelSummary {
  std::string name;
  std::string source;     // the path from which it comes
  std::string framework;  // for people
  bool is_file = false;   // not in a repository
  std::string failure;    // why it is not served; empty: it is
  // The following are set for models that are served only.
  config::ModelConfig config;
  SampleCall call;
  std::string call_failure;  // why the model refuses the call; empty: it does not, as far as known

  // Whether nothing says what it takes, so that no call can be made.
  bool LacksInputs() const { return config.backend == "python" && config.input.empty(); }
};

// Returns the addresses under which clients on this machine reach the server, for a server that
// listens on `host`.
ServerAddresses AddressesFor(const std::string& host, const ServerPorts& ports);

// Returns all models of the server that are served or have failed, by name. Finds sizes that a
// model of the command line takes by trying a few, unless its code may do anything.
std::vector<ModelSummary> Summarize(service::Service& service, const ServedModels& served);

// Returns the text. `emphasize` makes a heading stand out.
std::string SummaryText(const std::vector<ModelSummary>& models, const ServerAddresses& addresses,
                        const std::function<std::string(std::string_view)>& emphasize);

// Returns the same as JSON.
std::string SummaryJson(const std::vector<ModelSummary>& models, const ServerAddresses& addresses);

// Returns why a model is not served, and what helps, for a person who has named files and no
// repository. `reason` is that of the server.
std::string DescribeFailure(const ServedModels& served, const std::string& name,
                            const std::string& reason);

}  // namespace nereid::cli
