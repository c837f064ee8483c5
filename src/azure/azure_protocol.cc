// SPDX-License-Identifier: Apache-2.0
// The error texts follow Triton's core/src/filesystem/implementations/as.h.
#include "azure/azure_protocol.h"

#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "azure/http_date.h"
#include "azure/list_page.h"
#include "azure/signature.h"
#include "azure/tokens.h"
#include "http_client/retry.h"
#include "http_client/url.h"

namespace nereid::azure {
namespace {

using http_client::HttpReply;
using http_client::HttpRequest;
using http_client::PercentEncode;
using object_store::Failure;
using object_store::Object;

constexpr const char* kVersion = "2021-12-02";

// Returns the path of an address without a slash at its end.
std::string PathOf(const std::string& endpoint) {
  const size_t host = endpoint.find("://");
  const size_t path = endpoint.find('/', host == endpoint.npos ? 0 : host + 3);
  return path == endpoint.npos ? "" : endpoint.substr(path);
}

std::string Reason(const Failure& failure) {
  return failure.name.empty() ? failure.message : failure.name + ": " + failure.message;
}

}  // namespace

AzureProtocol::AzureProtocol(std::string container, Account account,
                             http_client::HttpClient& client)
    : container_(std::move(container)),
      account_(std::move(account)),
      path_(PathOf(account_.endpoint)),
      token_([access = account_.access, &client] { return FetchToken(client, access); }) {}

base::Result<HttpRequest> AzureProtocol::Authorized(const std::string& key,
                                                    const std::map<std::string, std::string>& query,
                                                    std::map<std::string, std::string> headers,
                                                    std::string_view method) {
  NEREID_ASSIGN_OR_RETURN(const std::string token, token_.Get());
  UnsignedRequest request{.method = std::string(method),
                          .path = "/" + PercentEncode(container_, false),
                          .query = query,
                          .headers = std::move(headers)};
  if (!key.empty()) request.path += "/" + PercentEncode(key, true);
  request.headers["x-ms-date"] = HttpDate(std::time(nullptr));
  request.headers["x-ms-version"] = kVersion;
  HttpRequest result;
  result.url = account_.endpoint + request.path;
  char separator = '?';
  for (const auto& [name, value] : query) {
    result.url += std::exchange(separator, '&') + name + "=" + PercentEncode(value, false);
  }
  if (const auto* const sas = std::get_if<SharedAccessSignature>(&account_.access)) {
    result.url += separator + sas->query;
  }
  request.path = path_ + request.path;
  if (const auto* const shared = std::get_if<SharedKey>(&account_.access)) {
    request.headers["authorization"] = Authorization(request, account_.name, shared->key);
  } else if (!token.empty()) {
    request.headers["authorization"] = "Bearer " + token;
  }
  result.headers = std::move(request.headers);
  return result;
}

base::Result<HttpRequest> AzureProtocol::ListRequest(const std::string& prefix,
                                                     const std::string& token) {
  std::map<std::string, std::string> query = {
      {"comp", "list"}, {"include", "metadata"}, {"restype", "container"}};
  if (!prefix.empty()) query["prefix"] = prefix;
  if (!token.empty()) query["marker"] = token;
  return Authorized("", query, {});
}

base::Result<HttpRequest> AzureProtocol::ReadRequest(const Object& object,
                                                     object_store::Range range) {
  return Authorized(
      object.key, {},
      {{"if-match", "\"" + object.etag + "\""},
       {"x-ms-range", fmt::format("bytes={}-{}", range.offset, range.offset + range.size - 1)}});
}

base::Result<HttpRequest> AzureProtocol::CurrentRequest(const std::string& key) {
  return Authorized(key, {}, {});
}

base::Result<HttpRequest> AzureProtocol::WriteRequest(const std::string& key,
                                                      const std::string& text,
                                                      const std::string& etag) {
  std::map<std::string, std::string> headers = {{"content-length", std::to_string(text.size())},
                                                {"content-type", "text/plain"},
                                                {"x-ms-blob-type", "BlockBlob"}};
  const bool is_new = etag.empty();
  headers[is_new ? "if-none-match" : "if-match"] = is_new ? "*" : "\"" + etag + "\"";
  NEREID_ASSIGN_OR_RETURN(HttpRequest request, Authorized(key, {}, std::move(headers), "PUT"));
  request.method = http_client::Method::kPut;
  request.headers.erase("content-length");  // which libcurl sends
  request.body = text;
  return request;
}

base::Result<object_store::ListPage> AzureProtocol::ParseList(std::string_view body) const {
  return ParseListPage(body);
}

Failure AzureProtocol::Explain(const HttpReply& reply) const {
  const ErrorBody body = ParseErrorBody(reply.body);
  Failure failure;
  const auto code = reply.headers.find("x-ms-error-code");
  failure.name = code != reply.headers.end() ? code->second : body.code;
  failure.message =
      fmt::format("{}{}HTTP status {}{}", body.message, body.message.empty() ? "" : " (",
                  reply.status, body.message.empty() ? "" : ")");
  failure.may_pass = http_client::MayPass(reply.status);
  return failure;
}

// A token that was withdrawn before its time is replaced.
bool AzureProtocol::Learn(const HttpReply& reply) {
  return reply.status == 401 && HasTokens(account_.access) && token_.Refuse();
}

std::string AzureProtocol::Describe() const {
  return fmt::format("Azure container '{}' at {}", container_, account_.endpoint);
}

base::Status AzureProtocol::ListError(const std::string& prefix, const Failure& failure) const {
  const bool has_keys = !std::holds_alternative<Anonymous>(account_.access);
  return base::InternalError(
      fmt::format("Failed to get contents of directory as://{}/{}/{}: {} (container '{}' at {}{})",
                  account_.name, container_, prefix, Reason(failure), container_, account_.endpoint,
                  has_keys ? "" : "; no keys were found"));
}

base::Status AzureProtocol::ReadError(const Object& object, const Failure& failure) const {
  return base::InternalError(fmt::format("Failed to get object at as://{}/{}/{}: {}", account_.name,
                                         container_, object.key, Reason(failure)));
}

}  // namespace nereid::azure
