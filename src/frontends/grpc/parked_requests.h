// SPDX-License-Identifier: Apache-2.0
// The requests of a stream whose models are loaded on demand, until they are submitted. Others of
// the stream for the same model wait behind them, because requests of a sequence must stay in
// order.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "access/grant.h"
#include "base/buffer.h"
#include "base/mutex.h"

namespace nereid::grpc {

class StreamRequest;

// A request that waits for its model.
struct ParkedRequest {
  base::BufferRef buffer;
  std::string_view bytes;  // of the message, in `buffer`
  access::GrantRef grant;
  StreamRequest* request;  // holds a reference
};

// Thread-safe: the stream parks, and one thread for each model takes. Its lock is a leaf.
class ParkedRequests {
 public:
  // What became of a request; whoever parks the first one must then wait for the model.
  enum class Outcome { kNotParked, kFirst, kBehind };

  // Whether requests may be parked. Confined to the thread that parks.
  bool may_have_some() const { return was_used_; }
  // Parks the request, unless its model was found and none waits for it. `parked` is unchanged if
  // it is not parked.
  Outcome Park(const std::string& model, bool is_found, ParkedRequest& parked) {
    base::MutexLock lock(mutex_);
    const auto others = parked_.find(model);
    if (others == parked_.end() && is_found) return Outcome::kNotParked;
    was_used_ = true;
    if (others != parked_.end()) {
      others->second.push_back(std::move(parked));
      return Outcome::kBehind;
    }
    parked_[model].push_back(std::move(parked));
    return Outcome::kFirst;
  }
  // Returns the request that has waited longest for the model; null if none is left, after which
  // requests for it are no longer parked. It stays in front until Pop, and stays where it is.
  ParkedRequest* Front(const std::string& model) {
    base::MutexLock lock(mutex_);
    const auto waiting = parked_.find(model);
    if (!waiting->second.empty()) return &waiting->second.front();
    parked_.erase(waiting);
    return nullptr;
  }
  void Pop(const std::string& model) {
    base::MutexLock lock(mutex_);
    parked_.find(model)->second.pop_front();
  }
  // REQUIRES: no request is parked.
  void Recycle() { was_used_ = false; }

 private:
  bool was_used_ = false;
  base::Mutex mutex_;
  std::map<std::string, std::deque<ParkedRequest>, std::less<>> parked_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::grpc
