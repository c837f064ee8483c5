// SPDX-License-Identifier: Apache-2.0
// An optimization profile that an instance uses: which shapes it takes, and how near it is to those
// of an execution.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensorrt_backend/binding.h"
#include "tensorrt_backend/engine.h"
#include "tensorrt_backend/profile_choice.h"

namespace nereid::tensorrt {

// An input of one execution. Everything is a view.
struct InputCall {
  std::span<const int64_t> shape;
  // Of shape tensors, for the whole batch: with batching the first is the batch size.
  std::span<const int64_t> values;
};

// The ranges of one profile for one configuration. Immutable.
class Profile {
 public:
  // Fails, with Triton's texts, if the configuration has shapes that the profile does not take.
  static backend::Result<Profile> Create(const ProfileChoice& choice,
                                         const std::vector<TensorInfo>& tensors,
                                         const backend::Ports& ports, const Binding& binding,
                                         int64_t max_batch_size, const std::string& model);

  const std::string& name() const { return name_; }
  int index() const { return index_; }
  // The ranges of a tensor of the engine, which is an input. Maxima are those of the configuration
  // where it has smaller ones.
  const ProfileRange& range(size_t tensor) const { return ranges_[tensor]; }

  // Fails if the profile does not take these inputs; they are in the order of the engine's tensors.
  backend::Error Check(std::span<const InputCall> inputs, const std::string& owner) const;
  // How far these inputs are from those that the profile is made for.
  uint64_t Distance(std::span<const InputCall> inputs) const;

 private:
  Profile() = default;

  std::string name_;
  int index_ = 0;
  const std::vector<TensorInfo>* tensors_ = nullptr;
  std::vector<ProfileRange> ranges_;  // of each tensor; of outputs empty
};

}  // namespace nereid::tensorrt
