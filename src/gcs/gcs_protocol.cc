// SPDX-License-Identifier: Apache-2.0
// The error texts follow Triton's core/src/filesystem/implementations/gcs.h.
#include "gcs/gcs_protocol.h"

#include <utility>

#include <fmt/format.h>

#include "gcs/list_page.h"
#include "gcs/tokens.h"
#include "http_client/retry.h"
#include "http_client/url.h"
#include "object_store/flat_json.h"

namespace nereid::gcs {
namespace {

using http_client::HttpReply;
using http_client::HttpRequest;
using http_client::PercentEncode;
using object_store::Failure;
using object_store::Object;
using object_store::ValueOf;

std::string Reason(const Failure& failure) {
  return failure.name.empty() ? failure.message : failure.name + ": " + failure.message;
}

}  // namespace

GcsProtocol::GcsProtocol(std::string endpoint, std::string bucket, const Account& account,
                         http_client::HttpClient& client)
    : endpoint_(std::move(endpoint)),
      bucket_(std::move(bucket)),
      token_([account, &client] { return FetchToken(client, account); }) {}

base::Result<HttpRequest> GcsProtocol::Authorized(const std::string& resource,
                                                  std::string_view service) {
  NEREID_ASSIGN_OR_RETURN(const std::string token, token_.Get());
  HttpRequest request;
  request.url = fmt::format("{}{}/storage/v1/b/{}/o{}", endpoint_, service,
                            PercentEncode(bucket_, false), resource);
  if (!token.empty()) request.headers["authorization"] = "Bearer " + token;
  return request;
}

base::Result<HttpRequest> GcsProtocol::ListRequest(const std::string& prefix,
                                                   const std::string& token) {
  std::string query =
      "?fields=items(name%2Cgeneration%2Csize%2Cmd5Hash%2Cupdated)%2CnextPageToken&maxResults=1000"
      "&prettyPrint=false&prefix=" +
      PercentEncode(prefix, false);
  if (!token.empty()) query += "&pageToken=" + PercentEncode(token, false);
  return Authorized(query);
}

base::Result<HttpRequest> GcsProtocol::ReadRequest(const Object& object,
                                                   object_store::Range range) {
  NEREID_ASSIGN_OR_RETURN(HttpRequest request,
                          Authorized(fmt::format("/{}?alt=media&ifGenerationMatch={}",
                                                 PercentEncode(object.key, false), object.etag)));
  request.headers["range"] =
      fmt::format("bytes={}-{}", range.offset, range.offset + range.size - 1);
  // Otherwise an object that is stored compressed arrives decompressed, whole, and with another
  // size.
  request.headers["accept-encoding"] = "gzip";
  return request;
}

base::Result<HttpRequest> GcsProtocol::CurrentRequest(const std::string& key) {
  return Authorized(fmt::format("/{}?alt=media", PercentEncode(key, false)));
}

base::Result<HttpRequest> GcsProtocol::WriteRequest(const std::string& key, const std::string& text,
                                                    const std::string& etag) {
  // The generation 0 stands for no object.
  NEREID_ASSIGN_OR_RETURN(
      HttpRequest request,
      Authorized(fmt::format("?uploadType=media&name={}&ifGenerationMatch={}",
                             PercentEncode(key, false), etag.empty() ? "0" : etag),
                 "/upload"));
  request.method = http_client::Method::kPost;
  request.headers["content-type"] = "text/plain";
  request.body = text;
  return request;
}

base::Result<object_store::ListPage> GcsProtocol::ParseList(std::string_view body) const {
  return ParseListPage(body);
}

Failure GcsProtocol::Explain(const HttpReply& reply) const {
  Failure failure;
  failure.message = fmt::format("HTTP status {}", reply.status);
  failure.may_pass = http_client::MayPass(reply.status);
  const auto json = object_store::ParseFlatJson(reply.body);
  if (!json.ok()) return failure;
  failure.name = ValueOf(*json, "error.errors.0.reason");
  const std::string message = ValueOf(*json, "error.message");
  if (!message.empty()) failure.message = fmt::format("{} (HTTP status {})", message, reply.status);
  return failure;
}

// A token that was withdrawn before its time is replaced.
bool GcsProtocol::Learn(const HttpReply& reply) { return reply.status == 401 && token_.Refuse(); }

std::string GcsProtocol::Describe() const {
  return fmt::format("Google bucket '{}' at {}", bucket_, endpoint_);
}

base::Status GcsProtocol::ListError(const std::string& prefix, const Failure& failure) const {
  return base::InternalError(
      fmt::format("Could not list contents of directory at gs://{}/{} : {} (bucket '{}' at {})",
                  bucket_, prefix, Reason(failure), bucket_, endpoint_));
}

base::Status GcsProtocol::ReadError(const Object& object, const Failure& failure) const {
  return base::InternalError(
      fmt::format("Failed to get object at gs://{}/{} : {}", bucket_, object.key, Reason(failure)));
}

}  // namespace nereid::gcs
