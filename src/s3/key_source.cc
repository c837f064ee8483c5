// SPDX-License-Identifier: Apache-2.0
#include "s3/key_source.h"

#include <algorithm>
#include <array>
#include <optional>
#include <pugixml.hpp>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/trim.h"
#include "http_client/url.h"
#include "object_store/credential_file.h"
#include "object_store/digest.h"
#include "object_store/flat_json.h"
#include "object_store/token_request.h"

namespace nereid::s3 {
namespace {

using http_client::HttpClient;
using http_client::HttpRequest;
using object_store::Environment;
using object_store::Expiring;
using object_store::FirstOf;
using object_store::TokenReply;
using object_store::ValueOf;
using Keys = base::Result<Expiring<Credentials>>;

constexpr const char* kMachine = "http://169.254.169.254";
constexpr const char* kMachineV6 = "http://[fd00:ec2::254]";
constexpr const char* kContainer = "http://169.254.170.2";
constexpr std::string_view kBlanksAndNewlines = " \t\r\n";
// How long it is remembered that a machine has no keys.
constexpr std::chrono::minutes kNothingStays{10};

std::string WithoutSlash(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

// The container's agent is trusted with its authorization only over TLS, or where nobody else can
// listen; these are the hosts that Amazon's tools accept.
bool MayReceiveAuthorization(const http_client::Url& url) {
  constexpr std::array<std::string_view, 6> kHosts = {
      "127.0.0.1", "localhost", "::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
  return url.is_tls || std::find(kHosts.begin(), kHosts.end(), url.host) != kHosts.end();
}

// The keys of a reply, from wherever they stood in it.
Keys ToKeys(Credentials keys, std::string_view expiration, const char* who) {
  const auto lifetime = object_store::TimeUntil(expiration);
  if (keys.key_id.empty() || keys.secret.empty() || !lifetime) {
    return base::UnavailableError(fmt::format("{} replied without keys", who));
  }
  for (const std::string* const text : {&keys.key_id, &keys.secret, &keys.session_token}) {
    if (!object_store::CanBeHeader(*text)) {
      return base::UnavailableError(fmt::format("{} replied with keys that cannot be", who));
    }
  }
  return Expiring<Credentials>{std::move(keys), std::max(*lifetime, std::chrono::seconds(0))};
}

Keys ParseJsonKeys(std::string_view body, const char* who) {
  const auto json = object_store::ParseFlatJson(body);
  if (!json.ok()) return base::UnavailableError(fmt::format("{} replied without keys", who));
  return ToKeys(
      {ValueOf(*json, "AccessKeyId"), ValueOf(*json, "SecretAccessKey"), ValueOf(*json, "Token")},
      ValueOf(*json, "Expiration"), who);
}

Keys Fetch(HttpClient& client, const WebIdentity& identity) {
  constexpr const char* kWho = "the security token service";
  NEREID_ASSIGN_OR_RETURN(const std::string token, object_store::ReadKeyFile(identity.token_file));
  HttpRequest request = object_store::FormRequest(
      identity.endpoint + "/",
      {{"Action", "AssumeRoleWithWebIdentity"},
       {"Version", "2011-06-15"},
       {"RoleArn", identity.role_arn},
       {"RoleSessionName", identity.session_name},
       {"WebIdentityToken", std::string(base::Trim(token, kBlanksAndNewlines))}});
  const TokenReply reply = object_store::AskForToken(client, std::move(request));
  if (!reply.is_success()) {
    return base::UnavailableError(fmt::format("{} at {} gives no keys for the role '{}': {}", kWho,
                                              identity.endpoint, identity.role_arn, reply.failure));
  }
  pugi::xml_document document;
  document.load_buffer(reply.body.data(), reply.body.size());
  const pugi::xml_node keys = document.child("AssumeRoleWithWebIdentityResponse")
                                  .child("AssumeRoleWithWebIdentityResult")
                                  .child("Credentials");
  return ToKeys({keys.child_value("AccessKeyId"), keys.child_value("SecretAccessKey"),
                 keys.child_value("SessionToken")},
                keys.child_value("Expiration"), kWho);
}

Keys Fetch(HttpClient& client, const ContainerKeys& container) {
  constexpr const char* kWho = "the container's agent for keys";
  NEREID_ASSIGN_OR_RETURN(const http_client::Url url, http_client::ParseUrl(container.url));
  HttpRequest request;
  request.url = container.url;
  request.avoids_proxy = !url.is_tls;
  std::string authorization = container.authorization;
  if (!container.authorization_file.empty()) {
    NEREID_ASSIGN_OR_RETURN(authorization, object_store::ReadKeyFile(container.authorization_file));
    authorization = base::Trim(authorization, kBlanksAndNewlines);
  }
  if (!object_store::CanBeHeader(authorization)) {
    return base::InvalidArgumentError("the authorization for the container's agent has line ends");
  }
  if (!MayReceiveAuthorization(url)) {
    return base::InvalidArgumentError(
        fmt::format("AWS_CONTAINER_CREDENTIALS_FULL_URI names the host '{}', which may be anybody; "
                    "use https, or an address of this machine",
                    url.host));
  }
  if (!authorization.empty()) request.headers["authorization"] = authorization;
  const TokenReply reply = object_store::AskForToken(client, std::move(request));
  if (!reply.is_success()) {
    return base::UnavailableError(fmt::format("{} gives none: {}", kWho, reply.failure));
  }
  return ParseJsonKeys(reply.body, kWho);
}

Expiring<Credentials> NoKeys(const std::string& why) {
  NEREID_VLOG(1, "requests to S3 are not signed: there are no keys, and {}", why);
  return {.value = {}, .lifetime = kNothingStays, .absence = base::UnavailableError(why)};
}

Keys Fetch(HttpClient& client, const MachineKeys& machine) {
  constexpr const char* kWho = "the metadata service of this machine";
  constexpr const char* kRoles = "/latest/meta-data/iam/security-credentials/";
  HttpRequest request;
  request.method = http_client::Method::kPut;
  request.url = machine.endpoint + "/latest/api/token";
  request.headers["x-aws-ec2-metadata-token-ttl-seconds"] = "300";
  request.avoids_proxy = true;
  const auto& quick = object_store::kMetadataRequest;
  const TokenReply session = object_store::AskForToken(client, request, quick);
  if (!session.is_success() || !object_store::CanBeHeader(session.body)) {
    return NoKeys(fmt::format("{} does not respond: {}", kWho, session.failure));
  }
  request.method = http_client::Method::kGet;
  request.headers = {{"x-aws-ec2-metadata-token", session.body}};
  request.url = machine.endpoint + kRoles;
  const TokenReply roles = object_store::AskForToken(client, request);
  if (roles.status == 404) return NoKeys("this machine has no role");
  if (!roles.is_success()) {
    return base::UnavailableError(fmt::format("{} names no role: {}", kWho, roles.failure));
  }
  const std::string role(
      base::Trim(roles.body.substr(0, roles.body.find('\n')), kBlanksAndNewlines));
  if (role.empty()) return NoKeys("this machine has no role");
  request.url += http_client::PercentEncode(role, false);
  const TokenReply reply = object_store::AskForToken(client, request);
  if (!reply.is_success()) {
    return base::UnavailableError(fmt::format("{} gives no keys: {}", kWho, reply.failure));
  }
  return ParseJsonKeys(reply.body, kWho);
}

Keys Fetch(HttpClient&, const std::monostate&) { return Expiring<Credentials>{}; }

}  // namespace

KeySource FindKeySource(const Environment& environment, const std::string& region,
                        const ProfileIdentity& profile) {
  WebIdentity identity{
      .role_arn = FirstOf(environment, {"AWS_ROLE_ARN"}),
      .token_file = FirstOf(environment, {"AWS_WEB_IDENTITY_TOKEN_FILE"}),
      .session_name = FirstOf(environment, {"AWS_ROLE_SESSION_NAME"}),
      .endpoint = WithoutSlash(FirstOf(environment, {"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"}))};
  if (identity.role_arn.empty() || identity.token_file.empty()) {
    identity.role_arn = profile.role_arn;
    identity.token_file = profile.token_file;
    if (!profile.session_name.empty()) identity.session_name = profile.session_name;
  }
  if (!identity.role_arn.empty() && !identity.token_file.empty()) {
    if (identity.session_name.empty()) identity.session_name = "nereid";
    if (identity.endpoint.empty()) {
      identity.endpoint = fmt::format("https://sts.{}.amazonaws.com{}", region,
                                      region.starts_with("cn-") ? ".cn" : "");
    }
    return identity;
  }
  ContainerKeys container;
  const std::string relative = FirstOf(environment, {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"});
  container.url = relative.empty() ? FirstOf(environment, {"AWS_CONTAINER_CREDENTIALS_FULL_URI"})
                                   : kContainer + relative;
  if (!container.url.empty()) {
    container.authorization = FirstOf(environment, {"AWS_CONTAINER_AUTHORIZATION_TOKEN"});
    container.authorization_file = FirstOf(environment, {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"});
    return container;
  }
  const std::string disabled = FirstOf(environment, {"AWS_EC2_METADATA_DISABLED"});
  if (disabled == "true" || disabled == "True" || disabled == "TRUE") return {};
  MachineKeys machine{WithoutSlash(FirstOf(environment, {"AWS_EC2_METADATA_SERVICE_ENDPOINT"}))};
  if (machine.endpoint.empty()) {
    const std::string mode = FirstOf(environment, {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"});
    machine.endpoint = mode == "IPv6" ? kMachineV6 : kMachine;
  }
  return machine;
}

std::string NameOf(const KeySource& source) {
  if (const auto* const identity = std::get_if<WebIdentity>(&source)) {
    return fmt::format("web identity {} {} {} {}", identity->role_arn, identity->token_file,
                       identity->session_name, identity->endpoint);
  }
  if (const auto* const container = std::get_if<ContainerKeys>(&source)) {
    return fmt::format("container {} {} {}", container->url, container->authorization_file,
                       object_store::Sha256Hex(container->authorization));
  }
  if (const auto* const machine = std::get_if<MachineKeys>(&source)) {
    return "machine " + machine->endpoint;
  }
  return "";
}

Keys FetchKeys(HttpClient& client, const KeySource& source) {
  return std::visit([&client](const auto& kind) { return Fetch(client, kind); }, source);
}

}  // namespace nereid::s3
