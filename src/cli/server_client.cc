// SPDX-License-Identifier: Apache-2.0
#include "cli/server_client.h"

#include <chrono>

#include <fmt/format.h>

#include "base/trim.h"
#include "base/unix_address.h"
#include "cli/json.h"
#include "http_client/url.h"

namespace nereid::cli {
namespace {

constexpr std::string_view kHeading = "The server";
// The part of an error page that is shown if it is not JSON.
constexpr size_t kMaxErrorText = 300;

// Returns what the server said about its refusal.
base::Status RefusalOf(const http_client::HttpReply& reply) {
  rapidjson::Document document;
  ParseJson(reply.body, document);
  if (const std::string_view error = TextOf(document, "error"); !error.empty()) {
    return {base::StatusCode::kUnknown, std::string(error)};
  }
  std::string_view text = base::Trim(reply.body, " \t\r\n");
  text = text.substr(0, std::min(text.find('\n'), kMaxErrorText));
  return {base::StatusCode::kUnknown, fmt::format("the server replied with HTTP status {}{}{}",
                                                  reply.status, text.empty() ? "" : ": ", text)};
}

base::Result<std::map<std::string, std::string>> ReadHeaders(
    const std::vector<std::string>& lines) {
  std::map<std::string, std::string> headers;
  for (const std::string& line : lines) {
    const size_t colon = line.find(':');
    const bool is_clean = line.find_first_of("\r\n") == std::string::npos;
    if (colon == std::string::npos || colon == 0 || !is_clean) {
      return base::InvalidArgumentError(fmt::format("--header '{}': expected 'Name: value'", line));
    }
    headers[line.substr(0, colon)] = base::Trim(std::string_view(line).substr(colon + 1), " \t");
  }
  return headers;
}

}  // namespace

void AddServerOptions(Command& command, ServerOptions& options) {
  const std::string heading(kHeading);
  command
      .Option("--url,-u", "URL", options.url,
              "The server's address for HTTP: http[s]://HOST:PORT, or unix:PATH for a Unix socket.")
      .Variable("NEREID_URL")
      .In(heading);
  command
      .Option("--timeout", "TIME", options.timeout,
              "How long to wait for a reply; 0 waits without a limit.")
      .In(heading);
  command
      .Option("--ca", "FILE", options.ca_file,
              "Certificates (PEM) to trust instead of the system's.")
      .Names(Hint::kFile)
      .In(heading);
  command
      .Option("--cert", "FILE", options.cert_file,
              "The certificate (PEM) that a server with mutual TLS asks for.")
      .Names(Hint::kFile)
      .In(heading);
  command.Option("--key", "FILE", options.key_file, "The private key (PEM) of --cert.")
      .Names(Hint::kFile)
      .In(heading);
  command
      .Option("--api-key", "KEY", options.api_key,
              "The API key or token for the server. Other users of this machine can see arguments, "
              "so the variable is better.")
      .Variable("NEREID_API_KEY")
      .In(heading);
  command
      .Option("--header,-H", "'NAME: VALUE'", options.headers,
              "A header for each request, such as the key of a restricted API.")
      .In(heading);
}

ExitCode ExitCodeOf(const base::Status& status) {
  if (status.ok()) return ExitCode::kSuccess;
  switch (status.code()) {
    case base::StatusCode::kUnavailable:
      return ExitCode::kUnreachable;
    case base::StatusCode::kInvalidArgument:
      return ExitCode::kUsage;
    default:
      return ExitCode::kFailure;
  }
}

base::Result<std::unique_ptr<ServerClient>> ServerClient::Create(const ServerOptions& options) {
  NEREID_ASSIGN_OR_RETURN(auto headers, ReadHeaders(options.headers));
  if (!options.api_key.empty()) {
    const bool is_clean = options.api_key.find_first_of("\r\n") == std::string::npos;
    if (!is_clean) return base::InvalidArgumentError("--api-key: expected one line");
    headers.emplace("Authorization", "Bearer " + options.api_key);
  }
  if (options.key_file.empty() != options.cert_file.empty()) {
    return base::InvalidArgumentError("--cert and --key need each other");
  }
  if (options.url.starts_with(base::kUnixPrefix)) {
    const std::string path = options.url.substr(base::kUnixPrefix.size());
    if (path.empty()) {
      return base::InvalidArgumentError(
          fmt::format("{} 'unix:': expected unix:PATH", options.url_option));
    }
    return std::unique_ptr<ServerClient>(
        new ServerClient(options, "http://localhost", /*is_local=*/true, path, std::move(headers)));
  }
  auto url = http_client::ParseUrl(options.url);
  if (!url.ok()) {
    return base::InvalidArgumentError(fmt::format(
        "{} '{}': expected http[s]://HOST:PORT or unix:PATH", options.url_option, options.url));
  }
  while (url->path.ends_with('/')) url->path.pop_back();
  const bool is_local = url->host == "localhost" || url->host == "::1" ||
                        std::string_view(url->host).starts_with("127.");
  return std::unique_ptr<ServerClient>(
      new ServerClient(options, url->ToString(), is_local, "", std::move(headers)));
}

ServerClient::ServerClient(const ServerOptions& options, std::string base_url, bool is_local,
                           std::string unix_socket, std::map<std::string, std::string> headers)
    : options_(options),
      base_url_(std::move(base_url)),
      headers_(std::move(headers)),
      is_local_(is_local),
      // The time for a whole request is limited by --timeout alone, as loading a model may take
      // minutes in which no byte comes.
      http_({.ca_file = options_.ca_file,
             .cert_file = options_.cert_file,
             .key_file = options_.key_file,
             .unix_socket = std::move(unix_socket),
             .stall_timeout = std::chrono::seconds(0)}) {}

http_client::HttpReply ServerClient::Send(http_client::HttpRequest request, std::string& body) {
  request.url = base_url_ + request.url;
  for (const auto& [name, value] : headers_) request.headers[name] = value;
  // Rounded up, because 0 stands for no limit.
  request.timeout = std::chrono::ceil<std::chrono::milliseconds>(options_.timeout);
  request.stop = stop_;
  request.avoids_proxy = is_local_;
  request.on_body = [&body](const http_client::HttpReply&, std::string_view bytes) {
    body += bytes;
    return true;
  };
  return http_.Send(request);
}

base::Status ServerClient::Unreachable(const http_client::HttpReply& reply) const {
  // "curlCode: 7, Couldn't connect to server": the number is of no use here.
  std::string_view why = reply.failure;
  if (why.starts_with("curlCode")) why.remove_prefix(std::min(why.find(", ") + 2, why.size()));
  if (stop_.stop_requested()) why = "interrupted";
  return base::UnavailableError(fmt::format("no reply from {}: {}", options_.url, why));
}

base::Result<ServerReply> ServerClient::SendForReply(http_client::HttpRequest request) {
  ServerReply result;
  http_client::HttpReply reply = Send(std::move(request), result.body);
  if (!reply.failure.empty()) return Unreachable(reply);
  if (!reply.is_success()) return RefusalOf(reply);
  result.headers = std::move(reply.headers);
  return result;
}

base::Result<ServerReply> ServerClient::Get(const std::string& path) {
  return SendForReply({.url = path});
}

base::Result<ServerReply> ServerClient::Post(const std::string& path, std::string body,
                                             std::map<std::string, std::string> headers) {
  return SendForReply({.method = http_client::Method::kPost,
                       .url = path,
                       .headers = std::move(headers),
                       .body = std::move(body)});
}

base::Result<rapidjson::Document> ServerClient::GetJson(const std::string& path) {
  NEREID_ASSIGN_OR_RETURN(const ServerReply reply, Get(path));
  return ParseReply(reply.body);
}

base::Result<rapidjson::Document> ServerClient::PostJson(const std::string& path,
                                                         std::string body) {
  NEREID_ASSIGN_OR_RETURN(const ServerReply reply,
                          Post(path, std::move(body), {{"content-type", "application/json"}}));
  return ParseReply(reply.body);
}

base::Result<bool> ServerClient::Probe(const std::string& path) {
  std::string body;
  const http_client::HttpReply reply = Send({.url = path}, body);
  if (!reply.failure.empty()) return Unreachable(reply);
  return reply.is_success();
}

std::string ModelPath(std::string_view model, std::string_view version, std::string_view rest) {
  std::string path = "/v2/models/" + http_client::PercentEncode(model, /*keep_slashes=*/false);
  if (!version.empty()) {
    path += "/versions/" + http_client::PercentEncode(version, /*keep_slashes=*/false);
  }
  return path.append(rest);
}

}  // namespace nereid::cli
