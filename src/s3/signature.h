// SPDX-License-Identifier: Apache-2.0
// Amazon's signature version 4, for requests whose body is known. This is our own code because
// libcurl only recently began to sign as S3 requires, and does it differently in each version.
#pragma once

#include <ctime>
#include <map>
#include <string>

namespace nereid::s3 {

// The keys that sign the requests of one account.
struct Credentials {
  std::string key_id;  // if empty, requests are not signed, for public buckets
  std::string secret;
  std::string session_token;
};

// The parts of a request that its signature covers.
struct UnsignedRequest {
  std::string method = "GET";
  std::string host;                            // with the port unless it is the default one
  std::string path;                            // percent-encoded
  std::string query;                           // percent-encoded, sorted by name
  std::map<std::string, std::string> headers;  // further headers to sign, by lower-case name
  std::string body = {};
};

// Returns the headers to send with the request: its own and those of the signature.
std::map<std::string, std::string> SignedHeaders(const UnsignedRequest& request,
                                                 const Credentials& credentials,
                                                 const std::string& region, std::time_t now);

}  // namespace nereid::s3
