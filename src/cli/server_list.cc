// SPDX-License-Identifier: Apache-2.0
#include "cli/server_list.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/thread.h"
#include "base/trim.h"
#include "cli/interrupt.h"

namespace nereid::cli {
namespace {

// Each server takes a thread and a connection while it is asked.
constexpr size_t kMaxServers = 256;
constexpr const char* kServersOption = "--servers";

}  // namespace

void AddServerList(Command& command, std::vector<std::string>& servers) {
  command
      .Option(
          kServersOption, "URL,URL...", servers,
          "Tells all of these servers, such as the replicas behind a load balancer, at once and "
          "says for each what happened. Addresses are written as for --url.")
      .Excludes("--url");
}

base::Result<std::vector<std::string>> ReadServerList(const std::vector<std::string>& values) {
  std::vector<std::string> addresses;
  for (const std::string& value : values) {
    std::string_view rest = value;
    for (bool is_last = false; !is_last;) {
      const size_t comma = rest.find(',');
      is_last = comma == std::string_view::npos;
      std::string address(base::Trim(rest.substr(0, comma), " \t"));
      if (!is_last) rest.remove_prefix(comma + 1);
      if (address.empty()) {
        return base::InvalidArgumentError(fmt::format(
            "{} '{}': expected addresses with one comma between each two", kServersOption, value));
      }
      if (std::ranges::find(addresses, address) != addresses.end()) {
        return base::InvalidArgumentError(
            fmt::format("{}: '{}' stands there twice", kServersOption, address));
      }
      if (addresses.size() == kMaxServers) {
        return base::InvalidArgumentError(
            fmt::format("{}: expected at most {} addresses", kServersOption, kMaxServers));
      }
      addresses.push_back(std::move(address));
    }
  }
  return addresses;
}

base::Result<std::vector<std::unique_ptr<ServerClient>>> CreateClients(
    const std::vector<std::string>& addresses, const ServerOptions& options) {
  std::vector<std::unique_ptr<ServerClient>> clients;
  for (const std::string& address : addresses) {
    ServerOptions one = options;
    one.url = address;
    one.url_option = kServersOption;
    NEREID_ASSIGN_OR_RETURN(std::unique_ptr<ServerClient> client, ServerClient::Create(one));
    clients.push_back(std::move(client));
  }
  return clients;
}

void AskAll(const std::vector<std::unique_ptr<ServerClient>>& clients,
            const std::function<void(size_t place, ServerClient& client)>& ask) {
  const Interrupt interrupt;
  std::vector<base::Thread> threads;
  for (size_t place = 0; place < clients.size(); ++place) {
    ServerClient& client = *clients[place];
    client.CancelOn(interrupt.token());
    threads.emplace_back("ask-server", [&ask, place, &client] { ask(place, client); });
  }
}

}  // namespace nereid::cli
