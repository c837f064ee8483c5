// SPDX-License-Identifier: Apache-2.0
// All tensors that requests bring to a model and that a model returns, from its configuration:
// inputs and outputs, the controls and states of sequences, and batch inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_kit/batch_inputs.h"
#include "backend_kit/config.h"

namespace nereid::backend {

// An input of the model. Immutable.
struct InputPort {
  // Where the configuration lists it.
  enum class Origin { kInput, kControl, kState, kBatchInput };

  std::string name;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  Origin origin = Origin::kInput;
  std::vector<int64_t> dims;  // the model's, without the batch dimension
  // Whether the requests' elements are concatenated in one dimension (allow_ragged_batch).
  bool is_ragged = false;
  // Whether all requests of a batch have the same values, without a batch dimension
  // (is_shape_tensor).
  bool is_shape_tensor = false;
};

// An output of the model. Immutable.
struct OutputPort {
  std::string name;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::vector<int64_t> dims;  // the model's, without the batch dimension
  // Whether responses may contain it; a state need not be in responses.
  bool is_declared = true;
  // Whether it is a state, which the server keeps from request to request.
  bool is_state = false;
  // For an output that is split by the shapes of an input.
  std::optional<BatchOutput> scatter;
  // Whether all requests of a batch get the same values (is_shape_tensor).
  bool is_shape_tensor = false;
};

// "TYPE_FP32" → TRITONSERVER_TYPE_FP32.
inline TRITONSERVER_DataType ConfiguredType(std::string_view text) {
  if (text == "TYPE_STRING") {
    return TRITONSERVER_TYPE_BYTES;
  }
  return text.starts_with("TYPE_")
             ? TRITONSERVER_StringToDataType(std::string(text.substr(5)).c_str())
             : TRITONSERVER_TYPE_INVALID;
}

// TRITONSERVER_TYPE_FP32 → "TYPE_FP32".
inline std::string ConfiguredName(TRITONSERVER_DataType type) {
  return StrCat("TYPE_",
                type == TRITONSERVER_TYPE_BYTES ? "STRING" : TRITONSERVER_DataTypeString(type));
}

// The tensors of one model. Immutable.
struct Ports {
  std::vector<InputPort> inputs;
  std::vector<OutputPort> outputs;
  std::vector<BatchInput> batch_inputs;

  static Result<Ports> FromConfig(const ModelConfig& config) {
    Ports ports;
    ports.AddListed(config);
    if (const rapidjson::Value* sequences = Find(config.json(), "sequence_batching")) {
      ports.AddControls(*sequences);
      ports.AddStates(*sequences);
    }
    NEREID_KIT_ASSIGN(ports.batch_inputs, ReadBatchInputs(config));
    for (const BatchInput& input : ports.batch_inputs) {
      for (const std::string& target : input.targets) {
        ports.inputs.push_back(
            {.name = target, .datatype = input.datatype, .origin = InputPort::Origin::kBatchInput});
      }
    }
    return ports;
  }

  // Returns the position of the tensor called `name`, or -1. The search begins at `hint`.
  template <typename Port>
  static int FindPort(const std::vector<Port>& list, size_t hint, std::string_view name) {
    for (size_t i = 0; i < list.size(); ++i) {
      const size_t at = (hint + i) % list.size();
      if (list[at].name == name) {
        return static_cast<int>(at);
      }
    }
    return -1;
  }

 private:
  void AddListed(const ModelConfig& config) {
    for (const rapidjson::Value& io : config.tensors("input")) {
      inputs.push_back(
          {.name = std::string(StringMember(io, "name")),
           .datatype = ConfiguredType(StringMember(io, "data_type")),
           .dims = ModelDims(io),
           .is_ragged = config.max_batch_size() > 0 && BoolMember(io, "allow_ragged_batch"),
           .is_shape_tensor = BoolMember(io, "is_shape_tensor")});
    }
    for (const rapidjson::Value& io : config.tensors("output")) {
      outputs.push_back({.name = std::string(StringMember(io, "name")),
                         .datatype = ConfiguredType(StringMember(io, "data_type")),
                         .dims = ModelDims(io),
                         .scatter = FindBatchOutput(config, io),
                         .is_shape_tensor = BoolMember(io, "is_shape_tensor")});
    }
  }

  void AddControls(const rapidjson::Value& sequences) {
    for (const rapidjson::Value& input : ArrayOf(sequences, "control_input")) {
      for (const rapidjson::Value& control : ArrayOf(input, "control")) {
        const auto has = [&](const char* key) { return ArrayOf(control, key).Size() > 0; };
        const TRITONSERVER_DataType type = has("int32_false_true")  ? TRITONSERVER_TYPE_INT32
                                           : has("fp32_false_true") ? TRITONSERVER_TYPE_FP32
                                           : has("bool_false_true")
                                               ? TRITONSERVER_TYPE_BOOL
                                               : ConfiguredType(StringMember(control, "data_type"));
        inputs.push_back({.name = std::string(StringMember(input, "name")),
                          .datatype = type,
                          .origin = InputPort::Origin::kControl,
                          .dims = {1}});
      }
    }
  }

  void AddStates(const rapidjson::Value& sequences) {
    for (const rapidjson::Value& state : ArrayOf(sequences, "state")) {
      const TRITONSERVER_DataType type = ConfiguredType(StringMember(state, "data_type"));
      inputs.push_back({.name = std::string(StringMember(state, "input_name")),
                        .datatype = type,
                        .origin = InputPort::Origin::kState,
                        .dims = DimsMember(state, "dims")});
      const std::string_view name = StringMember(state, "output_name");
      int output = FindPort(outputs, 0, name);
      if (output < 0) {
        output = static_cast<int>(outputs.size());
        outputs.push_back({.name = std::string(name),
                           .datatype = type,
                           .dims = DimsMember(state, "dims"),
                           .is_declared = false});
      }
      outputs[static_cast<size_t>(output)].is_state = true;
    }
  }
};

}  // namespace nereid::backend
