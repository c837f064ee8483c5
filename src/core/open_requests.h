// SPDX-License-Identifier: Apache-2.0
// Counts the requests that the backend of one instance has. A backend may return from an execution
// before its requests end, and answer them later with what its instance owns: an instance that is
// not needed any more must not be taken apart before.
#pragma once

#include <atomic>
#include <cstdint>

namespace nereid::core {

// A request is counted from the moment when an instance takes it until its backend has answered and
// then released it, or else until it is gone; also while it waits because the backend gave it back.
// Thread-safe.
class OpenRequests {
 public:
  // Learns when no request is left. Part of the model that each of the requests pins.
  class Watcher {
   public:
    // Called under no lock, by the thread that ends the last request. The count may be destroyed.
    virtual void OnNoneOpen() = 0;

   protected:
    ~Watcher() = default;
  };

  // `watcher` outlives the requests.
  explicit OpenRequests(Watcher& watcher) : watcher_(watcher) {}
  OpenRequests(const OpenRequests&) = delete;
  OpenRequests& operator=(const OpenRequests&) = delete;

  void Add(uint32_t count) { count_.fetch_add(count); }
  // Ends one request. Once others can see that none is left, they may destroy this.
  void Remove() {
    Watcher& watcher = watcher_;
    if (count_.fetch_sub(1) == kWatched + 1) [[unlikely]]
      watcher.OnNoneOpen();
  }
  // From now on the watcher learns each time when none is left. It does not if none is open now.
  void Watch() { count_.fetch_or(kWatched); }
  bool empty() const { return (count_.load() & ~kWatched) == 0; }

 private:
  // The part of the count that says that somebody wants to know when it falls to zero: one atomic
  // step ends a request and finds out whether it was the last one that anybody waits for.
  static constexpr uint32_t kWatched = uint32_t{1} << 31;

  Watcher& watcher_;
  std::atomic<uint32_t> count_{0};
};

}  // namespace nereid::core
