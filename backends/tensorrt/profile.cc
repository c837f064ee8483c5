// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/profile.h"

#include <algorithm>

namespace nereid::tensorrt {

using backend::Error;
using backend::InputPort;
using backend::Ports;
using backend::Result;
using backend::StrCat;

namespace {

using Origin = InputPort::Origin;

// The configuration's shape of an input, with the batch dimension first; -1 is any size.
std::vector<int64_t> WholeShape(const InputPort& port, size_t rank, int64_t max_batch_size) {
  if (port.is_ragged || port.origin == Origin::kBatchInput) {
    return std::vector<int64_t>(rank, -1);
  }
  std::vector<int64_t> dims = port.dims;
  if (port.origin == Origin::kControl) {
    // A control is one element for each request, in as many dimensions as the model likes.
    dims.assign(rank - (max_batch_size > 0 && rank > 0 ? 1 : 0), 1);
  }
  if (max_batch_size > 0) {
    dims.insert(dims.begin(), -1);
  }
  return dims;
}

Error CheckDims(std::span<const int64_t> dims, const Dims& min, const Dims& max) {
  const auto lowest = min.span();
  const auto highest = max.span();
  if (dims.size() != highest.size() || dims.size() != lowest.size()) {
    return Error::InvalidArgument(StrCat("model expected ", highest.size(),
                                         " dimensions but received ", dims.size(), " dimensions"));
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < lowest[d] || dims[d] > highest[d]) {
      return Error::InvalidArgument(StrCat("model expected the shape of dimension ", d,
                                           " to be between ", lowest[d], " and ", highest[d],
                                           " but received ", dims[d]));
    }
  }
  return {};
}

Error CheckValues(const ProfileRange& range, std::span<const int64_t> values) {
  if (values.size() != range.max_values.size()) {
    return Error::InvalidArgument(StrCat("mismatch between the number of shape values. Expecting ",
                                         range.max_values.size(), ". Got ", values.size()));
  }
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v] < range.min_values[v] || values[v] > range.max_values[v]) {
      return Error::InvalidArgument(StrCat("The shape value at index ", v,
                                           " is expected to be in range from ", range.min_values[v],
                                           " to ", range.max_values[v], ", Got: ", values[v]));
    }
  }
  return {};
}

uint64_t Between(std::span<const int64_t> a, std::span<const int64_t> b) {
  uint64_t sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    sum += static_cast<uint64_t>(a[i] > b[i] ? a[i] - b[i] : b[i] - a[i]);
  }
  return sum;
}

// Lowers the maxima to what the configuration permits. Fails if it permits what the profile does
// not take.
Error Restrict(const InputPort& port, int64_t max_batch_size, ProfileRange* range) {
  const auto rank = range->max.span().size();
  const std::vector<int64_t> dims = WholeShape(port, rank, max_batch_size);
  std::vector<int64_t> shown = dims;
  const auto lowest = range->min.span();
  const auto highest = range->max.span();
  for (size_t d = 0; d < std::min(rank, shown.size()); ++d) {
    shown[d] = shown[d] == -1 ? highest[d] : shown[d];
  }
  if (lowest.size() == highest.size()) {
    NEREID_KIT_TRY(CheckDims(shown, range->min, range->max));
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    range->max.sizes[d] = shown[d];
  }
  const bool has_batch =
      max_batch_size > 0 && !port.is_ragged && port.origin != Origin::kBatchInput && rank > 0;
  if (has_batch) {
    range->max.sizes[0] = std::min(range->max.sizes[0], max_batch_size);
  }
  return {};
}

}  // namespace

Result<Profile> Profile::Create(const ProfileChoice& choice, const std::vector<TensorInfo>& tensors,
                                const Ports& ports, const Binding& binding, int64_t max_batch_size,
                                const std::string& model) {
  Profile profile;
  profile.name_ = choice.name;
  profile.index_ = choice.index;
  profile.tensors_ = &tensors;
  profile.ranges_.resize(tensors.size());
  for (size_t i = 0; i < ports.inputs.size(); ++i) {
    const size_t at = binding.inputs[i];
    const TensorInfo& tensor = tensors[at];
    ProfileRange& range = profile.ranges_[at];
    if (static_cast<size_t>(choice.index) < tensor.profiles.size()) {
      range = tensor.profiles[static_cast<size_t>(choice.index)];
    } else {
      range = {.min = tensor.dims, .opt = tensor.dims, .max = tensor.dims};
    }
    if (tensor.is_shape) {
      continue;
    }
    if (const Error error = Restrict(ports.inputs[i], max_batch_size, &range); !error.ok()) {
      return Error::InvalidArgument(
          StrCat("model configuration specified invalid shape for input '", tensor.name,
                 "' for model ", model, ". Error details: ", error.message()));
    }
  }
  return profile;
}

Error Profile::Check(std::span<const InputCall> inputs, const std::string& owner) const {
  for (size_t t = 0; t < tensors_->size(); ++t) {
    const TensorInfo& tensor = (*tensors_)[t];
    if (!tensor.is_input) {
      continue;
    }
    const ProfileRange& range = ranges_[t];
    const Error error = tensor.is_shape ? CheckValues(range, inputs[t].values)
                                        : CheckDims(inputs[t].shape, range.min, range.max);
    if (!error.ok()) {
      return Error::InvalidArgument(StrCat(
          "request specifies invalid shape", tensor.is_shape ? " values" : "", " for input '",
          tensor.name, "' for ", owner, ". Error details: ", error.message()));
    }
  }
  return {};
}

uint64_t Profile::Distance(std::span<const InputCall> inputs) const {
  uint64_t sum = 0;
  for (size_t t = 0; t < tensors_->size(); ++t) {
    if ((*tensors_)[t].is_input) {
      sum += Between(inputs[t].shape, ranges_[t].opt.span());
      sum += Between(inputs[t].values, ranges_[t].opt_values);
    }
  }
  return sum;
}

}  // namespace nereid::tensorrt
