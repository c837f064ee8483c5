// SPDX-License-Identifier: Apache-2.0
// Azure's signature of requests with the key of a storage account ("Shared Key", version 2015-02-21
// and later).
#pragma once

#include <map>
#include <string>

namespace nereid::azure {

// The parts of a request that its signature covers.
struct UnsignedRequest {
  std::string method = "GET";
  std::string path;                            // percent-encoded
  std::map<std::string, std::string> query;    // decoded values by lower-case name
  std::map<std::string, std::string> headers;  // by lower-case name; has x-ms-date, and the length
                                               // of a body
};

// Returns the value of the header "authorization". `key` is decoded.
std::string Authorization(const UnsignedRequest& request, const std::string& account,
                          const std::string& key);

}  // namespace nereid::azure
