// SPDX-License-Identifier: Apache-2.0
// The names of request parameters that the server itself understands. Everything else travels to
// the model untouched, except names that begin with "triton_", which no client may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace nereid::common {

enum class ParameterKey : uint8_t {
  kForwarded,  // none of ours: the model's
  kSequenceId,
  kSequenceStart,
  kSequenceEnd,
  kPriority,
  kTimeout,
  kHeaders,           // reserved for forwarded headers; a body may carry it
  kBinaryDataOutput,  // understood by HTTP only
  kReserved,          // begins with "triton_"
};

// Parameters of one request. They are searched one after another, so their number is bounded: far
// above what clients send.
inline constexpr size_t kMaxParameters = 1024;

ParameterKey ClassifyParameter(std::string_view name);

// A sequence's id as text has at most so many bytes.
inline constexpr size_t kMaxCorrelationIdBytes = 128;

// Whether `id` may name a sequence.
base::Status CheckCorrelationId(std::string_view id);

// Why a parameter whose key is kReserved is refused.
base::Status ReservedParameterError();
// Why a request with more than kMaxParameters is refused.
base::Status TooManyParametersError();

// Whether a header of that name may become a parameter; an error that says why not.
base::Status CheckForwardedHeader(std::string_view name);

}  // namespace nereid::common
