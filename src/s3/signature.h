// SPDX-License-Identifier: Apache-2.0
// Signature version 4 of Amazon, for requests without a body. Own code because libcurl signs only
// since recently the way that S3 wants, and differently in each of its versions.
#pragma once

#include <ctime>
#include <map>
#include <string>

namespace nereid::s3 {

// The keys that sign the requests of one account.
struct Credentials {
  std::string key_id;  // empty: requests are not signed, for buckets that anybody may read
  std::string secret;
  std::string session_token;
};

// What of a request goes into its signature. The body does not.
struct UnsignedRequest {
  std::string method = "GET";
  std::string host;                            // with the port unless it is the usual one
  std::string path;                            // percent-encoded
  std::string query;                           // percent-encoded, sorted by name
  std::map<std::string, std::string> headers;  // further ones to be signed, by lower-case name
};

// The headers to be sent with the request: those it has and those that sign it.
std::map<std::string, std::string> SignedHeaders(const UnsignedRequest& request,
                                                 const Credentials& credentials,
                                                 const std::string& region, std::time_t now);

}  // namespace nereid::s3
