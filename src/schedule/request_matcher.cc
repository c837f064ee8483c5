// SPDX-License-Identifier: Apache-2.0
#include "schedule/request_matcher.h"

#include <algorithm>
#include <cstring>

namespace nereid::schedule {
namespace {

bool IsOpen(const core::ModelTensor& input) {
  if (input.is_optional || input.is_shape_tensor) return true;
  return !input.allow_ragged_batch &&
         std::ranges::any_of(input.dims.dims(), [](int64_t dim) { return dim < 0; });
}

bool SameItemShape(const tensor::Shape& a, const tensor::Shape& b) {
  // The first dimension is the batch.
  return a.rank() == b.rank() &&
         (a.empty() || std::equal(a.data() + 1, a.data() + a.rank(), b.data() + 1));
}

// Shape tensors are small and in one piece, in memory that can be read here; others differ.
bool SameBytes(const core::RequestInput& a, const core::RequestInput& b) {
  const bool readable = a.first.where.type != memory::MemoryType::kGpu &&
                        b.first.where.type != memory::MemoryType::kGpu;
  return readable && a.byte_size == b.byte_size && a.more.empty() && b.more.empty() &&
         (a.byte_size == 0 || std::memcmp(a.first.data, b.first.data, a.byte_size) == 0);
}

size_t ModelInputCount(const core::Request& request) {
  size_t count = request.inputs.size();
  while (count > 0 && request.inputs[count - 1].model_index == core::kServerInput) --count;
  return count;
}

}  // namespace

RequestMatcher::RequestMatcher(const core::Model& model)
    : model_(model), compares_inputs_(std::ranges::any_of(model.inputs(), IsOpen)) {}

bool RequestMatcher::Match(const core::Request& first, const core::Request& other) const {
  if (!compares_inputs_) return true;
  // The engine keeps inputs in the model's order, so equal sets have the same indices.
  const size_t count = ModelInputCount(first);
  if (count != ModelInputCount(other)) return false;
  for (size_t i = 0; i < count; ++i) {
    const core::RequestInput& a = first.inputs[i];
    const core::RequestInput& b = other.inputs[i];
    if (a.model_index != b.model_index) return false;
    const core::ModelTensor& input = model_.inputs()[a.model_index];
    if (input.is_shape_tensor) {
      if (!SameBytes(a, b)) return false;
    } else if (!input.allow_ragged_batch && !SameItemShape(a.shape, b.shape)) {
      return false;
    }
  }
  return true;
}

}  // namespace nereid::schedule
