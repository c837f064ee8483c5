// SPDX-License-Identifier: Apache-2.0
// A pin on one loaded model version, which is not torn down while a handle exists.
#pragma once

#include <cstdint>
#include <utility>

namespace nereid::core {

class Model;

// Keeps a model version loaded while it exists.
class ModelHandle {
 public:
  // How the rules of its model led to the version (engine/traffic.h); 0 for nearly all handles.
  enum RouteFlag : uint8_t {
    kFollowsRules = 1,  // service::Service::Direct has something to do
    kIsDivided = 2,     // a canary gets a share of such requests
  };

  ModelHandle() = default;
  // Takes over a pin made by Model::TryPin.
  explicit ModelHandle(Model& pinned) : model_(&pinned) {}
  ModelHandle(ModelHandle&& other) noexcept
      : model_(std::exchange(other.model_, nullptr)), flags_(other.flags_) {}
  ModelHandle& operator=(ModelHandle&& other) noexcept {
    if (this != &other) {
      Reset();
      model_ = std::exchange(other.model_, nullptr);
      flags_ = other.flags_;
    }
    return *this;
  }
  ~ModelHandle() { Reset(); }

  explicit operator bool() const { return model_ != nullptr; }
  Model& operator*() const { return *model_; }
  Model* operator->() const { return model_; }
  void Reset() {
    if (Model* const model = std::exchange(model_, nullptr)) Unpin(*model, is_request());
  }
  // Counts this pin among the requests in flight of its version, until EndRequest or until it is
  // dropped. Returns false, without a change, if `limit` are in flight. REQUIRES: not empty, and
  // not counted yet.
  [[nodiscard]] bool CountAsRequest(uint64_t limit);
  // Ends that count; the version stays pinned. Does nothing if this pin is not counted.
  void EndRequest();
  bool is_request() const { return (flags_ & kCountsAsRequest) != 0; }
  // Returns a second pin on the same version, even if that is closing. It does not count as a
  // request. Empty for an empty handle.
  ModelHandle Duplicate() const;

  // RouteFlags. Only a request whose handle follows rules has to be directed, once.
  bool follows_rules() const { return (flags_ & kFollowsRules) != 0; }
  bool is_divided() const { return (flags_ & kIsDivided) != 0; }
  void SetRoute(uint8_t flags) {
    flags_ = static_cast<uint8_t>((flags_ & kCountsAsRequest) | (flags & ~kCountsAsRequest));
  }

 private:
  static constexpr uint8_t kCountsAsRequest = 0x80;

  static void Unpin(Model& model, bool is_request);

  Model* model_ = nullptr;
  uint8_t flags_ = 0;  // RouteFlags and kCountsAsRequest; meaningless while empty
};

}  // namespace nereid::core
