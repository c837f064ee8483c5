// SPDX-License-Identifier: Apache-2.0
// The browsers that follow the server's load: streams of server-sent events, to which each sample
// is written.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "access/gate.h"
#include "base/mutex.h"
#include "http1/http_exchange.h"

namespace nereid::console {

// Thread-safe; Send is for one thread at a time.
class LiveStreams {
 public:
  // More browsers than this are refused.
  static constexpr size_t kMaxStreams = 32;

  // `gate`, if there is one, has admitted the sender of `exchange`, and outlives this object.
  // Starts the reply and takes the exchange; returns false and leaves it if there are too many
  // streams or End was called.
  bool Add(http1::HttpExchangePtr& exchange, const access::Gate* gate);
  // Replies to a HEAD request, which has no events to wait for.
  static void RespondToHead(http1::HttpExchangePtr exchange);
  // Sends an event to all. A stream ends if its client is gone, does not read, or is no longer
  // admitted by what it showed when it began; a browser that still is will come again.
  void Send(std::string_view json);
  // Ends all streams, and refuses new ones.
  void End();
  // Whether anybody follows.
  bool any() const;

 private:
  // One browser.
  struct Stream {
    http1::HttpExchangePtr exchange;
    const access::Gate* gate = nullptr;
    uint64_t generation = 0;  // of the gate, when the stream began
  };
  static bool IsAdmitted(const Stream& stream);

  mutable base::Mutex mutex_;
  base::CondVar started_;
  std::vector<Stream> streams_ NEREID_GUARDED_BY(mutex_);
  size_t starting_ NEREID_GUARDED_BY(mutex_) = 0;  // streams whose heads are being sent
  size_t sending_ NEREID_GUARDED_BY(mutex_) = 0;   // streams that Send has taken out
  bool has_ended_ NEREID_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::console
