// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/sequence_checks.h"

#include <set>
#include <string_view>
#include <utility>

#include "backend_kit/shape.h"
#include "onnxruntime_backend/data_types.h"

namespace nereid::onnxruntime {

using backend::ArrayOf;
using backend::Error;
using backend::Result;
using backend::ShapeToString;
using backend::StrCat;
using backend::StringMember;

namespace {

constexpr const char* kControls[] = {"CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END",
                                     "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_CORRID"};

// Returns the type of a control tensor: that of its false/true pair, or its data_type.
std::string_view ControlType(const rapidjson::Value& control) {
  for (const auto& [key, type] :
       {std::pair{"int32_false_true", "TYPE_INT32"}, std::pair{"fp32_false_true", "TYPE_FP32"},
        std::pair{"bool_false_true", "TYPE_BOOL"}}) {
    if (ArrayOf(control, key).Size() > 0) {
      return type;
    }
  }
  return StringMember(control, "data_type");
}

Error CheckControl(const CheckContext& context, std::string_view name,
                   const rapidjson::Value& control) {
  const TensorInfo* tensor = FindTensor(context.signature.inputs, name);
  if (tensor == nullptr) {
    return Error::Internal(StrCat("configuration specified sequence control '", name,
                                  "', but model does not provide that input"));
  }
  const size_t first = context.batching && !tensor->dims.empty() ? 1 : 0;
  const std::vector<int64_t> dims(tensor->dims.begin() + static_cast<std::ptrdiff_t>(first),
                                  tensor->dims.end());
  if (dims != std::vector<int64_t>{1}) {
    return context.Unable("sequence control '", name, "' in model has dims ", ShapeToString(dims),
                          " but dims [1] is expected");
  }
  const std::string_view declared = ControlType(control);
  if (FromConfigName(declared) != tensor->type) {
    return context.Unable("sequence control '", name, "', the model expects data-type ",
                          OnnxName(tensor->type),
                          " but the model configuration specifies data-type ", declared);
  }
  return {};
}

// Checks one side of a state: the model's input or output called `name`.
Error CheckState(const CheckContext& context, const rapidjson::Value& state, std::string_view name,
                 const std::vector<TensorInfo>& tensors, const char* what) {
  const TensorInfo* tensor = FindTensor(tensors, name);
  if (tensor == nullptr) {
    return Error::InvalidArgument(StrCat("unexpected inference ", what, " '", name, "', allowed ",
                                         what, "s are: ", NamesOf({&tensors})));
  }
  NEREID_KIT_TRY(CheckType(context, state, *tensor, what));
  const std::vector<int64_t> dims = backend::DimsMember(state, "dims");
  return CheckShape(context, *tensor, dims, false);
}

}  // namespace

Result<size_t> CheckControls(const CheckContext& context, const rapidjson::Value& sequences) {
  size_t inputs = 0;
  for (const char* kind : kControls) {
    for (const rapidjson::Value& input : ArrayOf(sequences, "control_input")) {
      for (const rapidjson::Value& control : ArrayOf(input, "control")) {
        if (StringMember(control, "kind") == kind) {
          NEREID_KIT_TRY(CheckControl(context, StringMember(input, "name"), control));
          ++inputs;
        }
      }
    }
  }
  return inputs;
}

Result<size_t> CheckStates(const CheckContext& context, const rapidjson::Value& sequences) {
  std::set<std::string_view> inputs;
  for (const rapidjson::Value& state : ArrayOf(sequences, "state")) {
    const std::string_view input = StringMember(state, "input_name");
    NEREID_KIT_TRY(CheckState(context, state, input, context.signature.inputs, "input"));
    NEREID_KIT_TRY(CheckState(context, state, StringMember(state, "output_name"),
                              context.signature.outputs, "output"));
    inputs.insert(input);
  }
  return inputs.size();
}

}  // namespace nereid::onnxruntime
