// SPDX-License-Identifier: Apache-2.0
// The Inference-Header-Content-Length field.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace nereid::http {

inline constexpr std::string_view kInferenceHeaderLength = "Inference-Header-Content-Length";

// Parses the field as Triton does: leading blanks and a sign are allowed, and what follows the
// digits is ignored. InvalidArgument if there is no number or it does not fit 32 bits.
base::Result<int32_t> ParseInferenceHeaderLength(std::string_view field);

// Returns where the JSON of a body of `body_size` bytes ends: the field's number, which must lie
// within the body, or the whole body if there is no field.
base::Result<size_t> InferenceHeaderLength(std::optional<std::string_view> field,
                                           uint64_t body_size);

}  // namespace nereid::http
