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
  ModelHandle() = default;
  // Takes over a pin made by Model::TryPin.
  explicit ModelHandle(Model& pinned) : model_(&pinned) {}
  ModelHandle(ModelHandle&& other) noexcept
      : model_(std::exchange(other.model_, nullptr)), is_request_(other.is_request_) {}
  ModelHandle& operator=(ModelHandle&& other) noexcept {
    if (this != &other) {
      Reset();
      model_ = std::exchange(other.model_, nullptr);
      is_request_ = other.is_request_;
    }
    return *this;
  }
  ~ModelHandle() { Reset(); }

  explicit operator bool() const { return model_ != nullptr; }
  Model& operator*() const { return *model_; }
  Model* operator->() const { return model_; }
  void Reset() {
    if (Model* const model = std::exchange(model_, nullptr)) Unpin(*model, is_request_);
  }
  // Counts this pin among the requests in flight of its version, until it is dropped. Returns
  // false, without a change, if `limit` are in flight. REQUIRES: not empty, and not counted yet.
  [[nodiscard]] bool CountAsRequest(uint64_t limit);
  // Returns a second pin on the same version, even if that is closing. It does not count as a
  // request. Empty for an empty handle.
  ModelHandle Duplicate() const;

 private:
  static void Unpin(Model& model, bool is_request);

  Model* model_ = nullptr;
  bool is_request_ = false;  // meaningless while empty
};

}  // namespace nereid::core
