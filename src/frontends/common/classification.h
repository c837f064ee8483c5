// SPDX-License-Identifier: Apache-2.0
// The classification extension: an output's largest elements as texts instead of the tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/data_type.h"

namespace nereid::common {

// Returns the `count` largest elements of `data` (fewer if there are fewer), largest first, each as
// "value:index" or "value:index:label" if `labels` has one. Equal values come in index order and
// NaN after every number. InvalidArgument for types without an order and for more than a million
// elements.
base::Result<std::vector<std::string>> TopClasses(std::span<const std::byte> data,
                                                  tensor::DataType type, uint64_t count,
                                                  std::span<const std::string> labels);

}  // namespace nereid::common
