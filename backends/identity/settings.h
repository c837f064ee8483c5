// SPDX-License-Identifier: Apache-2.0
// The identity backend's settings in a model configuration, validated.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/config.h"

namespace nereid::identity {

// An input and the output that echoes it. Immutable.
struct Pair {
  std::string input;
  std::string output;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  // For an optional input: the shape of the zeros that replace it, without batch dimension.
  std::optional<std::vector<int64_t>> absent_shape;
};

// The spans that enable_custom_tracing adds to the trace of each request. Immutable.
struct Tracing {
  int nested_span_count = 0;
  int single_activity_frequency = 1;
};

// The settings of a model. Immutable.
struct Settings {
  std::vector<Pair> pairs;  // in the order of the outputs
  bool supports_batching = false;
  std::chrono::milliseconds execute_delay{0};
  int instance_wise_delay_multiplier = 0;
  std::chrono::seconds creation_delay{0};
  std::optional<Tracing> tracing;
  // Adds the four demonstration parameters to every response.
  bool response_parameters = false;
  // Copies the parameters of the request to its response.
  bool echo_parameters = false;

  // Reads a configuration. Inputs must be INPUT<i> and outputs OUTPUT<i> with equal indices, data
  // types and (reshaped) shapes. Parameters: execute_delay_ms, instance_wise_delay_multiplier,
  // creation_delay_sec, enable_custom_tracing, nested_span_count, single_activity_frequency,
  // response_parameters, echo_parameters.
  static backend::Result<Settings> FromConfig(const backend::ModelConfig& config);

  // Returns the delay of an execution on the instance with this number.
  std::chrono::milliseconds DelayOf(size_t instance) const {
    if (execute_delay.count() == 0 || instance_wise_delay_multiplier == 0) {
      return execute_delay;
    }
    return execute_delay *
           std::max<int64_t>(1, instance_wise_delay_multiplier * static_cast<int64_t>(instance));
  }
  // Returns the pair of an output; null if there is none of that name.
  const Pair* FindOutput(std::string_view name) const {
    for (const Pair& pair : pairs) {
      if (pair.output == name) {
        return &pair;
      }
    }
    return nullptr;
  }
};

}  // namespace nereid::identity
