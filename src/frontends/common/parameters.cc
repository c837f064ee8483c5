// SPDX-License-Identifier: Apache-2.0
#include "common/parameters.h"

#include <string>

namespace nereid::common {

ParameterKey ClassifyParameter(std::string_view name) {
  // Compares the length first, because every request with parameters comes here.
  switch (name.size()) {
    case 7:
      if (name == "timeout") return ParameterKey::kTimeout;
      if (name == "headers") return ParameterKey::kHeaders;
      break;
    case 8:
      if (name == "priority") return ParameterKey::kPriority;
      break;
    case 11:
      if (name == "sequence_id") return ParameterKey::kSequenceId;
      break;
    case 12:
      if (name == "sequence_end") return ParameterKey::kSequenceEnd;
      break;
    case 14:
      if (name == "sequence_start") return ParameterKey::kSequenceStart;
      break;
    case 18:
      if (name == "binary_data_output") return ParameterKey::kBinaryDataOutput;
      break;
    default:
      break;
  }
  if (name.starts_with("triton_")) return ParameterKey::kReserved;
  return ParameterKey::kForwarded;
}

base::Status CheckCorrelationId(std::string_view id) {
  if (id.size() <= kMaxCorrelationIdBytes) return base::OkStatus();
  return base::UnsupportedError("string correlation ID cannot be longer than 128 characters");
}

base::Status ReservedParameterError() {
  return base::InvalidArgumentError(
      "parameter keys starting with 'triton_' are reserved for Triton usage and should not be "
      "specified.");
}

base::Status TooManyParametersError() {
  return base::InvalidArgumentError("a request may have at most " + std::to_string(kMaxParameters) +
                                    " parameters");
}

base::Status CheckForwardedHeader(std::string_view name) {
  if (ClassifyParameter(name) == ParameterKey::kForwarded) return base::OkStatus();
  return base::InvalidArgumentError("Header '" + std::string(name) +
                                    "' is reserved for Triton usage and cannot be forwarded.");
}

}  // namespace nereid::common
