// SPDX-License-Identifier: Apache-2.0
// The contents of tensors in trace files.
#pragma once

#include <string>
#include <string_view>

#include "tensor/data_type.h"

namespace nereid::observe {

// Returns the values in `bytes`, separated by commas. Empty for types that have no text.
std::string DataText(tensor::DataType type, std::string_view bytes);

}  // namespace nereid::observe
