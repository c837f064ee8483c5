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
      : model_(std::exchange(other.model_, nullptr)),
        request_bytes_(other.request_bytes_),
        flags_(other.flags_) {}
  ModelHandle& operator=(ModelHandle&& other) noexcept {
    if (this != &other) {
      Reset();
      model_ = std::exchange(other.model_, nullptr);
      request_bytes_ = other.request_bytes_;
      flags_ = other.flags_;
    }
    return *this;
  }
  ~ModelHandle() { Reset(); }

  explicit operator bool() const { return model_ != nullptr; }
  Model& operator*() const { return *model_; }
  Model* operator->() const { return model_; }
  void Reset() {
    if (Model* const model = std::exchange(model_, nullptr)) Unpin(*model);
  }
  // Counts this pin among the requests in flight of its version, until EndRequest or until it is
  // dropped, with `bytes` of its message or body (4 GiB if there are more). Returns false, without
  // a change, if `limit` are in flight. REQUIRES: not empty, and not counted yet.
  [[nodiscard]] bool CountAsRequest(uint64_t limit, uint64_t bytes);
  // Ends that count; the version stays pinned. Does nothing if this pin is not counted.
  void EndRequest();
  bool is_request() const { return (flags_ & kCountsAsRequest) != 0; }
  // REQUIRES: is_request().
  uint32_t request_bytes() const { return request_bytes_; }
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

  void Unpin(Model& model) const;

  Model* model_ = nullptr;
  uint32_t request_bytes_ = 0;  // meaningless unless it counts as a request
  uint8_t flags_ = 0;           // RouteFlags and kCountsAsRequest; meaningless while empty
};

}  // namespace nereid::core
