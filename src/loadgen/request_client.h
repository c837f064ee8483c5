// SPDX-License-Identifier: Apache-2.0
// What the event loop of a load asks of a protocol: requests go out, and each ends with a reply or
// without one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "loadgen/poller.h"
#include "loadgen/target.h"

namespace nereid::loadgen {

// How a request ended.
enum class Ending {
  kSuccess,
  kRefused,   // by a reply of the server
  kLost,      // its connection broke
  kNoServer,  // there was no connection
};

// A number of places ("calls"), each for one request at a time. Connections are made when they are
// first needed, and again after they broke. Confined to one thread.
class RequestClient {
 public:
  // Receives the end of a request, with the server's words or what is wrong with the connection.
  // May begin the next request of the same call.
  using OnEnd = std::function<void(size_t call, Ending ending, std::string_view text)>;

  virtual ~RequestClient() = default;

  // Sends a prepared request, whose bytes the caller keeps until it has ended. UNAVAILABLE if there
  // is no server; the call is free then. REQUIRES: the call is free.
  virtual base::Status Begin(size_t call, std::string_view request) = 0;
  // Frees the call without a report of its end.
  virtual void Abandon(size_t call) = 0;
  // Takes an event of the poller.
  virtual void Handle(void* user, uint32_t events) = 0;
  // Sends what Begin has only collected.
  virtual void Flush() = 0;
};

// `target` and `poller` outlive the client.
std::unique_ptr<RequestClient> MakeHttpClient(const Target& target, size_t calls, Poller& poller,
                                              RequestClient::OnEnd on_end);
std::unique_ptr<RequestClient> MakeGrpcClient(const Target& target, size_t calls, Poller& poller,
                                              RequestClient::OnEnd on_end);

}  // namespace nereid::loadgen
