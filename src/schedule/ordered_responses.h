// SPDX-License-Identifier: Apache-2.0
// Keeps responses in the order in which their requests joined the line: early ones are held until
// everything before them has completed.
#pragma once

#include <deque>

#include "base/mutex.h"
#include "core/request.h"

namespace nereid::schedule {

// Thread-safe. Part of a model's scheduler; the requests in line keep that model.
class OrderedResponses {
 public:
  OrderedResponses() = default;
  OrderedResponses(const OrderedResponses&) = delete;
  OrderedResponses& operator=(const OrderedResponses&) = delete;

  // Appends `request`, which has no response yet, to the line.
  void Join(core::Request& request);

 private:
  class Place;

  void Hold(Place& place, core::ResponsePtr response, bool is_final);
  void Leave(Place& place);
  // Sends what is at the front of the line, in order even if several threads call it. Returns the
  // last request that was sent to, which the caller drops once it has released the lock: it may be
  // all that keeps the model, and with it this object.
  core::RequestRef Drain() NEREID_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::deque<Place*> line_ NEREID_GUARDED_BY(mutex_);
  bool is_draining_ NEREID_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::schedule
