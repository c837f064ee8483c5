// SPDX-License-Identifier: Apache-2.0
#include "core/reshape.h"

namespace nereid::core {

base::Status ReshapeForClient(const ModelTensor& output, bool has_batch_dimension,
                              tensor::Shape& shape) {
  const size_t offset = has_batch_dimension ? 1 : 0;
  const tensor::Shape& from = output.model_dims;
  if (shape.rank() != from.rank() + offset) {
    return base::InvalidArgumentError("unexpected shape " + tensor::ToString(shape) +
                                      " for output '" + output.name + "', expecting " +
                                      std::to_string(from.rank() + offset) + " dimensions");
  }
  tensor::Shape reshaped;
  if (has_batch_dimension) reshaped.PushBack(shape[0]);
  size_t next = 0;  // where to search for the next wildcard's value
  for (const int64_t dim : output.dims.dims()) {
    if (dim != tensor::kWildcard) {
      reshaped.PushBack(dim);
      continue;
    }
    while (next < from.rank() && from[next] != tensor::kWildcard) ++next;
    if (next == from.rank()) {
      return base::InternalError("reshape of output '" + output.name +
                                 "' has more variable dimensions than the model");
    }
    reshaped.PushBack(shape[offset + next]);
    ++next;
  }
  shape = std::move(reshaped);
  return base::OkStatus();
}

}  // namespace nereid::core
