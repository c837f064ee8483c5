// SPDX-License-Identifier: Apache-2.0
// Requests of commands to a running server, over HTTP.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <rapidjson/document.h>

#include "base/status.h"
#include "cli/command.h"
#include "http_client/http_client.h"

namespace nereid::cli {

// Where the server is, and how to talk to it.
struct ServerOptions {
  std::string url = "http://localhost:8000";
  std::string url_option = "--url";  // what messages about a wrong `url` call it
  Seconds timeout{10};
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string api_key;               // empty: none
  std::vector<std::string> headers;  // "Name: value"
};

// Adds the options to the command, under a heading of their own. What `options.timeout` is
// beforehand becomes the default; 0 waits without a limit.
void AddServerOptions(Command& command, ServerOptions& options);

// A reply with a status of 2xx.
struct ServerReply {
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// An error of a request is UNAVAILABLE if there was no reply, and INVALID_ARGUMENT if the options
// are wrong; with any other code it has the server's own words. ExitCodeOf tells the exit status.
ExitCode ExitCodeOf(const base::Status& status);

// Thread-safe, except for CancelOn.
class ServerClient {
 public:
  // INVALID_ARGUMENT if the options make no sense.
  static base::Result<std::unique_ptr<ServerClient>> Create(const ServerOptions& options);

  // Requests from now on are cancelled when `stop` stops.
  void CancelOn(std::stop_token stop) { stop_ = std::move(stop); }

  // `path` begins with a slash; names in it are encoded (ModelPath).
  base::Result<ServerReply> Get(const std::string& path);
  base::Result<ServerReply> Post(const std::string& path, std::string body,
                                 std::map<std::string, std::string> headers = {});
  // Parse the reply as JSON.
  base::Result<rapidjson::Document> GetJson(const std::string& path);
  base::Result<rapidjson::Document> PostJson(const std::string& path, std::string body);

  // Returns whether the status of the reply was 2xx.
  base::Result<bool> Probe(const std::string& path);

  // For messages.
  const std::string& url() const { return options_.url; }

 private:
  ServerClient(const ServerOptions& options, std::string base_url, bool is_local,
               std::string unix_socket, std::map<std::string, std::string> headers);

  // Fills `body` with that of a 2xx reply.
  http_client::HttpReply Send(http_client::HttpRequest request, std::string& body);
  base::Result<ServerReply> SendForReply(http_client::HttpRequest request);
  base::Status Unreachable(const http_client::HttpReply& reply) const;

  const ServerOptions options_;
  const std::string base_url_;  // without a slash at the end
  const std::map<std::string, std::string> headers_;
  const bool is_local_;  // proxies are not for this machine
  std::stop_token stop_;
  http_client::HttpClient http_;
};

// Returns "/v2/models/NAME[/versions/VERSION]" + `rest`.
std::string ModelPath(std::string_view model, std::string_view version, std::string_view rest);

}  // namespace nereid::cli
