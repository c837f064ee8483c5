// SPDX-License-Identifier: Apache-2.0
// The error texts follow Triton's core/src/filesystem/implementations/s3.h.
#include "s3/s3_protocol.h"

#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "http_client/retry.h"
#include "http_client/url.h"
#include "s3/list_page.h"
#include "s3/signature.h"

namespace nereid::s3 {
namespace {

using http_client::HttpReply;
using http_client::HttpRequest;
using http_client::PercentEncode;
using object_store::Failure;
using object_store::Object;

std::string EndpointFor(const Location& location, const std::string& region) {
  if (!location.endpoint.empty()) return location.endpoint;
  return fmt::format("https://s3.{}.amazonaws.com{}", region,
                     region.starts_with("cn-") ? ".cn" : "");
}

// The Host header for an endpoint, as libcurl writes it.
std::string HostOf(const std::string& endpoint) {
  const std::string host = endpoint.substr(endpoint.find("://") + 3);
  const std::string_view usual = endpoint.starts_with("https://") ? ":443" : ":80";
  return host.ends_with(usual) ? host.substr(0, host.size() - usual.size()) : host;
}

}  // namespace

S3Protocol::S3Protocol(Location location, Account account, http_client::HttpClient& client)
    : location_(std::move(location)),
      has_temporary_keys_(account.credentials.key_id.empty()),
      keys_([keys = std::move(account.credentials), source = std::move(account.source),
             &client]() -> base::Result<object_store::Expiring<Credentials>> {
        if (!keys.key_id.empty()) return object_store::Expiring<Credentials>{keys};
        return FetchKeys(client, source);
      }),
      region_(std::move(account.region)) {}

std::string S3Protocol::region() const {
  base::MutexLock lock(mutex_);
  return region_;
}

base::Result<HttpRequest> S3Protocol::Sign(const std::string& key, const std::string& query,
                                           std::map<std::string, std::string> headers,
                                           http_client::Method method, const std::string& body) {
  NEREID_ASSIGN_OR_RETURN(const Credentials keys, keys_.Get());
  is_unsigned_ = keys.key_id.empty();
  const std::string region = this->region();
  const std::string endpoint = EndpointFor(location_, region);
  UnsignedRequest request;
  request.host = HostOf(endpoint);
  // The bucket is part of the path, as in Triton: every server supports that form.
  request.path = "/" + PercentEncode(location_.bucket, false) + "/" + PercentEncode(key, true);
  request.query = query;
  request.headers = std::move(headers);
  if (method == http_client::Method::kPut) request.method = "PUT";
  request.body = body;
  HttpRequest signed_request;
  signed_request.method = method;
  signed_request.body = body;
  signed_request.url = endpoint + request.path + (query.empty() ? "" : "?" + query);
  signed_request.headers = SignedHeaders(request, keys, region, std::time(nullptr));
  return signed_request;
}

base::Result<HttpRequest> S3Protocol::ListRequest(const std::string& prefix,
                                                  const std::string& token) {
  std::string query;  // sorted by name
  if (!token.empty()) query = "continuation-token=" + PercentEncode(token, false) + "&";
  query += "encoding-type=url&list-type=2&prefix=" + PercentEncode(prefix, false);
  return Sign("", query, {});
}

base::Result<HttpRequest> S3Protocol::ReadRequest(const Object& object, object_store::Range range) {
  return Sign(object.key, "",
              {{"if-match", "\"" + object.etag + "\""},
               {"range", fmt::format("bytes={}-{}", range.offset, range.offset + range.size - 1)}});
}

base::Result<HttpRequest> S3Protocol::CurrentRequest(const std::string& key) {
  return Sign(key, "", {});
}

base::Result<HttpRequest> S3Protocol::WriteRequest(const std::string& key, const std::string& text,
                                                   const std::string& etag) {
  std::map<std::string, std::string> headers = {{"content-type", "text/plain"}};
  const bool is_new = etag.empty();
  if (!writes_always_.load()) {
    headers[is_new ? "if-none-match" : "if-match"] = is_new ? "*" : "\"" + etag + "\"";
  }
  return Sign(key, "", std::move(headers), http_client::Method::kPut, text);
}

base::Result<object_store::ListPage> S3Protocol::ParseList(std::string_view body) const {
  return ParseListPage(body);
}

Failure S3Protocol::Explain(const HttpReply& reply) const {
  const ErrorBody body = ParseErrorBody(reply.body);
  Failure failure;
  failure.name = body.code;
  failure.message =
      body.message.empty() ? fmt::format("HTTP status {}", reply.status) : body.message;
  failure.may_pass = http_client::MayPass(reply.status) || body.code == "SlowDown" ||
                     body.code == "RequestTimeout";
  return failure;
}

bool S3Protocol::Learn(const HttpReply& reply) {
  if (reply.status == 501) return !writes_always_.exchange(true);
  // Temporary keys can end before their time, for instance when the role was changed.
  if (has_temporary_keys_ && (reply.status == 400 || reply.status == 403)) {
    const std::string code = ParseErrorBody(reply.body).code;
    if ((code == "ExpiredToken" || code == "InvalidAccessKeyId" ||
         code == "TokenRefreshRequired") &&
        keys_.Refuse()) {
      return true;
    }
  }
  if (!location_.endpoint.empty()) return false;
  const auto header = reply.headers.find("x-amz-bucket-region");
  const std::string region =
      header != reply.headers.end() ? header->second : ParseErrorBody(reply.body).region;
  base::MutexLock lock(mutex_);
  if (region.empty() || region == region_ || region.find_first_of("./:@") != region.npos) {
    return false;
  }
  region_ = region;
  return true;
}

// The ETags of objects that are encrypted with keys of the user are not MD5s of their bytes.
bool S3Protocol::HasOtherMd5(const HttpReply& reply) const {
  const auto encryption = reply.headers.find("x-amz-server-side-encryption");
  return (encryption != reply.headers.end() && encryption->second.starts_with("aws:kms")) ||
         reply.headers.contains("x-amz-server-side-encryption-customer-algorithm");
}

std::string S3Protocol::Describe() const {
  return fmt::format("S3 bucket '{}' at {}", location_.bucket, EndpointFor(location_, region()));
}

base::Status S3Protocol::ListError(const std::string& prefix, const Failure& failure) const {
  return base::InternalError(fmt::format(
      "Could not list contents of directory at s3://{}/{} due to exception: {}, error message: {} "
      "(bucket '{}' at {}{})",
      location_.bucket, prefix, failure.name, failure.message, location_.bucket,
      EndpointFor(location_, region()), is_unsigned_ ? "; no keys were found" : ""));
}

base::Status S3Protocol::ReadError(const Object& object, const Failure& failure) const {
  return base::InternalError(
      fmt::format("Failed to get object at s3://{}/{} due to exception: {}, error message: {}",
                  location_.bucket, object.key, failure.name, failure.message));
}

}  // namespace nereid::s3
