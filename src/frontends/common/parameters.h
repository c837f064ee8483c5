// SPDX-License-Identifier: Apache-2.0
// The names of request parameters that the server itself understands. All others are passed to the
// model, except names that begin with "triton_", which no client may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace nereid::common {

enum class ParameterKey : uint8_t {
  kForwarded,  // not known to the server: for the model
  kSequenceId,
  kSequenceStart,
  kSequenceEnd,
  kPriority,
  kTimeout,
  kHeaders,           // reserved for forwarded headers, but allowed in a body
  kBinaryDataOutput,  // understood by HTTP only
  kReserved,          // begins with "triton_"
};

// The parameters of one request are searched one after another, so their number is limited, far
// above what clients send.
inline constexpr size_t kMaxParameters = 1024;

ParameterKey ClassifyParameter(std::string_view name);

// The maximum length of a sequence's id that is a text.
inline constexpr size_t kMaxCorrelationIdBytes = 128;

// Checks whether `id` may name a sequence.
base::Status CheckCorrelationId(std::string_view id);

// The error for a parameter whose key is kReserved.
base::Status ReservedParameterError();
// The error for a request with more than kMaxParameters.
base::Status TooManyParametersError();

// Checks whether a header of that name may become a parameter.
base::Status CheckForwardedHeader(std::string_view name);

}  // namespace nereid::common
