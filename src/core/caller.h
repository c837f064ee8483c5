// SPDX-License-Identifier: Apache-2.0
// The sender of a request, as far as the server was told to find out (docs/access.md).
// Frontends attach it to their requests, so that whatever divides something among senders knows
// whose turn it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace nereid::core {

// What one sender may take, together in all its requests; 0: no limit.
struct CallerLimits {
  double requests_per_s = 0;
  double bytes_per_s = 0;  // of requests' bodies
  uint32_t in_flight = 0;  // requests at the same time
  uint32_t weight = 1;     // its share where senders compete, relative to the others

  bool operator==(const CallerLimits&) const = default;
};

// One sender. Immutable. Requests of one sender refer to one object for as long as any of them, or
// the list of keys, does: its address is as good an identity as its id. It stays the same when the
// list of keys is read again, unless the limits have changed.
struct Caller {
  // The id of an API key or certificate, or "<issuer> <subject>" of a token. For people as well: it
  // is in logs.
  std::string id;
  CallerLimits limits;
};

// What a caller has left of its requests per second, for the headers RateLimit-*.
struct QuotaLeft {
  uint32_t limit = 0;  // 0: there is no limit
  uint32_t remaining = 0;
  uint32_t reset_s = 0;  // until all of it is there again
};

// A request holds one without an allocation. Null: nobody is asked who they are.
using CallerRef = std::shared_ptr<const Caller>;

}  // namespace nereid::core
