// SPDX-License-Identifier: Apache-2.0
// Requests of one command to several servers (--servers): the replicas behind a load balancer, each
// of which has models of its own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "cli/server_client.h"

namespace nereid::cli {

// Adds the option --servers, which excludes --url. An empty list stands for --url alone.
void AddServerList(Command& command, std::vector<std::string>& servers);

// Returns the addresses in the values of --servers, which have commas between them, in their order.
// INVALID_ARGUMENT if one is empty or stands there twice, or if there are more than 256.
base::Result<std::vector<std::string>> ReadServerList(const std::vector<std::string>& values);

// Makes a client for each address; all else is that of `options`. INVALID_ARGUMENT if an address or
// the options make no sense: then no server has been asked anything.
base::Result<std::vector<std::unique_ptr<ServerClient>>> CreateClients(
    const std::vector<std::string>& addresses, const ServerOptions& options);

// Calls `ask` once for each client with its place in the list, each on a thread of its own, so that
// a slow or silent server keeps no other waiting. Returns when all calls have. Ctrl-C cancels the
// requests that still wait for a reply.
void AskAll(const std::vector<std::unique_ptr<ServerClient>>& clients,
            const std::function<void(size_t place, ServerClient& client)>& ask);

}  // namespace nereid::cli
