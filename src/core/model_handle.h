// SPDX-License-Identifier: Apache-2.0
// A pin on one loaded model version, which is not torn down while a handle exists.
#pragma once

#include <utility>

namespace nereid::core {

class Model;

// Keeps a model version loaded while it exists.
class ModelHandle {
 public:
  ModelHandle() = default;
  // Takes over a pin made by Model::TryPin.
  explicit ModelHandle(Model& pinned) : model_(&pinned) {}
  ModelHandle(ModelHandle&& other) noexcept : model_(std::exchange(other.model_, nullptr)) {}
  ModelHandle& operator=(ModelHandle&& other) noexcept {
    if (this != &other) {
      Reset();
      model_ = std::exchange(other.model_, nullptr);
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
  // Returns a second pin on the same version, even if that is closing. Empty for an empty handle.
  ModelHandle Duplicate() const;

 private:
  static void Unpin(Model& model);

  Model* model_ = nullptr;
};

}  // namespace nereid::core
