// SPDX-License-Identifier: Apache-2.0
// Tensors given as JSON, as the bytes that elements.h describes.
#pragma once

#include <string>

#include <rapidjson/document.h>

#include "base/status.h"
#include "tensor/data_type.h"

namespace nereid::cli {

// Returns the numbers, booleans or texts of arrays, however nested, in order. INVALID_ARGUMENT
// names the first value that is not of the type, or that the type cannot hold.
base::Result<std::string> BytesOfJson(tensor::DataType type, const rapidjson::Value& value);

}  // namespace nereid::cli
