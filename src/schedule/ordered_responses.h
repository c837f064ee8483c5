// SPDX-License-Identifier: Apache-2.0
// Keeps answers in the order in which their requests joined the line: what is early is held back
// until everything before it has been answered in full.
#pragma once

#include <deque>

#include "base/mutex.h"
#include "core/request.h"

namespace nereid::schedule {

// Thread-safe. Outlives the requests that joined.
class OrderedResponses {
 public:
  OrderedResponses() = default;
  OrderedResponses(const OrderedResponses&) = delete;
  OrderedResponses& operator=(const OrderedResponses&) = delete;

  // `request`, which nobody has answered yet, is the next in line.
  void Join(core::Request& request);

 private:
  class Place;

  void Hold(Place& place, core::ResponsePtr response, bool is_final);
  void Leave(Place& place);
  // Sends what is at the front of the line; answers in order even when several threads come.
  void Drain() NEREID_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::deque<Place*> line_ NEREID_GUARDED_BY(mutex_);
  bool is_draining_ NEREID_GUARDED_BY(mutex_) = false;
};

}  // namespace nereid::schedule
