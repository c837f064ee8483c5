// SPDX-License-Identifier: Apache-2.0
#include "schedule/ordered_responses.h"

#include <algorithm>
#include <vector>

#include "base/guarded.h"
#include "base/object_pool.h"
#include "core/forwarding_sink.h"

namespace nereid::schedule {

// One request's place in the line, and its sink. Keeps the model, and with it the line, because the
// request releases its own pin earlier.
class OrderedResponses::Place final : public core::ForwardingSink {
 public:
  struct Held {
    core::ResponsePtr response;
    bool is_final = false;
    core::RequestRef keep;  // keeps the request if its final response is null
  };
  // Guarded by the line's lock.
  struct State {
    std::deque<Held> held;
    bool is_in_line = true;
  };

  void Open(OrderedResponses& line, core::Request& request) {
    line_ = &line;
    request_ = &request;
    pin_ = request.model.Duplicate();
    PutBefore(request);
  }
  void Send(core::ResponsePtr response, bool is_final) override {
    line_->Hold(*this, std::move(response), is_final);
  }
  void SendOn(Held held) { next().Send(std::move(held.response), held.is_final); }
  core::Request& request() const { return *request_; }

  // Everything that was held has been sent, or the request would still exist.
  void Recycle() {}

  base::Guarded<State> state;

 protected:
  void Retire() override {
    const core::ModelHandle pin = std::move(pin_);
    line_->Leave(*this);
    base::ObjectPool<Place>::Give(this);
  }

 private:
  OrderedResponses* line_ = nullptr;
  core::Request* request_ = nullptr;
  core::ModelHandle pin_;
};

void OrderedResponses::Join(core::Request& request) {
  Place* const place = base::ObjectPool<Place>::Take();
  place->Open(*this, request);
  base::MutexLock lock(mutex_);
  place->state.Under(mutex_).is_in_line = true;
  line_.push_back(place);
}

void OrderedResponses::Hold(Place& place, core::ResponsePtr response, bool is_final) {
  core::RequestRef last;
  base::MutexLock lock(mutex_);
  place.state.Under(mutex_).held.push_back(
      {std::move(response), is_final, core::RequestRef(place.request())});
  last = Drain();
}

// A request that ends without a final response must not block those behind it.
void OrderedResponses::Leave(Place& place) {
  core::RequestRef last;
  base::MutexLock lock(mutex_);
  if (!place.state.Under(mutex_).is_in_line) return;
  std::erase(line_, &place);
  last = Drain();
}

core::RequestRef OrderedResponses::Drain() {
  core::RequestRef last;
  if (is_draining_) return last;  // the thread that drains sees what was added
  is_draining_ = true;
  while (!line_.empty() && !line_.front()->state.Under(mutex_).held.empty()) {
    Place& first = *line_.front();
    Place::State& state = first.state.Under(mutex_);
    Place::Held held = std::move(state.held.front());
    state.held.pop_front();
    if (held.is_final) {
      state.is_in_line = false;
      line_.pop_front();
    }
    mutex_.Unlock();
    last = std::move(held.keep);  // drops the one before; this one keeps the place
    first.SendOn(std::move(held));
    mutex_.Lock();
  }
  is_draining_ = false;
  return last;
}

}  // namespace nereid::schedule
