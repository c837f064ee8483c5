// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/validate.h"

#include <algorithm>
#include <set>

#include "backend_kit/batch_inputs.h"
#include "backend_kit/shape.h"
#include "onnxruntime_backend/data_types.h"

namespace nereid::onnxruntime {

using backend::ArrayOf;
using backend::BoolMember;
using backend::Error;
using backend::Find;
using backend::ModelConfig;
using backend::Result;
using backend::ShapeToString;
using backend::StrCat;
using backend::StringMember;

namespace {

constexpr const char* kControls[] = {"CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_END",
                                     "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_CORRID"};

// The arguments of all checks of one model.
struct Context {
  const std::string& model;
  const ModelConfig& config;
  const Signature& signature;
  bool batching;

  template <typename... Parts>
  Error Unable(const Parts&... parts) const {
    return Error::InvalidArgument(StrCat("unable to load model '", model, "', ", parts...));
  }
};

std::string NamesOf(std::initializer_list<const std::vector<TensorInfo>*> lists) {
  std::set<std::string_view> sorted;
  for (const auto* list : lists) {
    for (const TensorInfo& tensor : *list) {
      sorted.insert(tensor.name);
    }
  }
  std::string text;
  for (const std::string_view name : sorted) {
    text += text.empty() ? "" : ", ";
    text += name;
  }
  return text;
}

// Whether `dims` of the configuration fit the model's. An input may be more specific than the model
// (`exact` false): a variable dimension of the model fits anything.
bool Fits(std::span<const int64_t> model, std::span<const int64_t> dims, bool exact) {
  return std::equal(model.begin(), model.end(), dims.begin(), dims.end(),
                    [exact](int64_t m, int64_t d) { return m == d || (!exact && m == -1); });
}

Error CheckDims(const Context& context, const TensorInfo& tensor, std::vector<int64_t> dims,
                bool exact) {
  const std::string intro = StrCat("model '", context.model, "', tensor '", tensor.name, "': ");
  const std::string model_shape = ShapeToString(tensor.dims);
  if (!context.batching) {
    if (Fits(tensor.dims, dims, exact)) {
      return {};
    }
    return Error::InvalidArgument(StrCat(intro, "the model expects ", tensor.dims.size(),
                                         " dimensions (shape ", model_shape,
                                         ") but the model configuration specifies ", dims.size(),
                                         " dimensions (shape ", ShapeToString(dims), ")"));
  }
  if (tensor.dims.empty() || tensor.dims[0] != -1) {
    return Error::InvalidArgument(
        StrCat(intro,
               "for the model to support batching the shape should have at least 1 dimension and "
               "the first dimension must be -1; but shape expected by the model is ",
               model_shape));
  }
  dims.insert(dims.begin(), -1);
  if (Fits(tensor.dims, dims, exact)) {
    return {};
  }
  return Error::InvalidArgument(
      StrCat(intro, "the model expects ", tensor.dims.size(), " dimensions (shape ", model_shape,
             ") but the model configuration specifies ", dims.size(),
             " dimensions (an initial batch dimension because max_batch_size > 0 followed by the "
             "explicit tensor shape, making complete shape ",
             ShapeToString(dims), ")"));
}

// Checks a tensor without dimensions in the model, which in the configuration has dimensions of
// one.
Error CheckScalar(const Context& context, const TensorInfo& tensor,
                  const std::vector<int64_t>& dims) {
  if (std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim == 1; })) {
    return {};
  }
  return context.Unable("scalar tensor '", tensor.name,
                        "', should only provide 1 in the model configuration when the model "
                        "doesn't support batching. Model configuration provided: ",
                        ShapeToString(dims), ".");
}

Error CheckType(const Context& context, const rapidjson::Value& io, const TensorInfo& tensor,
                const char* what) {
  const std::string_view declared = StringMember(io, "data_type");
  const ONNXTensorElementDataType type = FromConfigName(declared);
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) {
    return Error::Internal(StrCat("unsupported datatype ", declared, " for ", what, " '",
                                  tensor.name, "' for model '", context.model, "'"));
  }
  if (type != tensor.type) {
    return context.Unable("configuration expects datatype ", declared, " for ", what, " '",
                          tensor.name, "', model provides TYPE_", ServerName(tensor.type));
  }
  return {};
}

Error CheckInput(const Context& context, const rapidjson::Value& io) {
  const std::string_view name = StringMember(io, "name");
  const bool optional = BoolMember(io, "optional");
  const bool ragged = BoolMember(io, "allow_ragged_batch");
  const Signature& signature = context.signature;
  const TensorInfo* tensor = FindTensor(signature.inputs, name);
  tensor = tensor == nullptr ? FindTensor(signature.initializers, name) : tensor;
  if (tensor == nullptr) {
    return Error::InvalidArgument(
        StrCat("unexpected inference input '", name,
               "', allowed inputs are: ", NamesOf({&signature.inputs, &signature.initializers})));
  }
  NEREID_KIT_TRY(CheckType(context, io, *tensor, "input"));
  const std::vector<int64_t> dims = backend::ModelDims(io);
  if (ragged && context.batching) {
    if (optional || tensor->dims != std::vector<int64_t>{-1}) {
      return context.Unable(
          "configuration expects model provides input with shape [-1] for ragged input '", name,
          optional ? std::string("', which is not supported for optional input")
                   : "', model provides " + ShapeToString(tensor->dims));
    }
    return {};
  }
  return tensor->dims.empty() ? CheckScalar(context, *tensor, dims)
                              : CheckDims(context, *tensor, dims, false);
}

Error CheckOutput(const Context& context, const rapidjson::Value& io) {
  const std::string_view name = StringMember(io, "name");
  const TensorInfo* tensor = FindTensor(context.signature.outputs, name);
  for (const OtherOutput& other : context.signature.other_outputs) {
    if (other.name == name) {
      return NoTensorError(other, context.signature);
    }
  }
  if (tensor == nullptr) {
    return Error::InvalidArgument(
        StrCat("unexpected inference output '", name,
               "', allowed outputs are: ", NamesOf({&context.signature.outputs})));
  }
  NEREID_KIT_TRY(CheckType(context, io, *tensor, "output"));
  if (backend::FindBatchOutput(context.config, io)) {
    // An input determines the shapes of its parts, not the model.
    return tensor->type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING
               ? context.Unable("batch output '", name,
                                "' is of type TYPE_STRING, which cannot be "
                                "divided by the shapes of an input")
               : Error();
  }
  const std::vector<int64_t> dims = backend::ModelDims(io);
  return tensor->dims.empty() ? CheckScalar(context, *tensor, dims)
                              : CheckDims(context, *tensor, dims, true);
}

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

Error CheckControl(const Context& context, std::string_view name, const rapidjson::Value& control) {
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

// Checks the control inputs of a sequence batcher and returns how many inputs of the model they
// are.
Result<size_t> CheckControls(const Context& context, const rapidjson::Value& sequences) {
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

// Checks one side of a state: the model's input or output called `name`.
Error CheckState(const Context& context, const rapidjson::Value& state, std::string_view name,
                 const std::vector<TensorInfo>& tensors, const char* what) {
  const TensorInfo* tensor = FindTensor(tensors, name);
  if (tensor == nullptr) {
    return Error::InvalidArgument(StrCat("unexpected inference ", what, " '", name, "', allowed ",
                                         what, "s are: ", NamesOf({&tensors})));
  }
  NEREID_KIT_TRY(CheckType(context, state, *tensor, what));
  const std::vector<int64_t> dims = backend::DimsMember(state, "dims");
  return tensor->dims.empty() ? CheckScalar(context, *tensor, dims)
                              : CheckDims(context, *tensor, dims, false);
}

// Checks the states of a sequence batcher and returns how many inputs of the model they are.
Result<size_t> CheckStates(const Context& context, const rapidjson::Value& sequences) {
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

// Checks the batch inputs and returns how many inputs of the model they are.
Result<size_t> CheckBatchInputs(const Context& context) {
  NEREID_KIT_ASSIGN(const std::vector<backend::BatchInput> batch_inputs,
                    backend::ReadBatchInputs(context.config));
  size_t inputs = 0;
  for (const backend::BatchInput& input : batch_inputs) {
    for (const std::string& target : input.targets) {
      const TensorInfo* tensor = FindTensor(context.signature.inputs, target);
      if (tensor == nullptr) {
        return Error::InvalidArgument(
            StrCat("unexpected inference input '", target,
                   "', allowed inputs are: ", NamesOf({&context.signature.inputs})));
      }
      if (ToServerType(tensor->type) != input.datatype) {
        return context.Unable("configuration expects datatype ",
                              input.datatype == TRITONSERVER_TYPE_FP32 ? "TYPE_FP32" : "TYPE_INT32",
                              " for batch input '", target, "', model provides TYPE_",
                              ServerName(tensor->type));
      }
      ++inputs;
    }
  }
  return inputs;
}

}  // namespace

Error Validate(const std::string& model_name, const ModelConfig& config,
               const Signature& signature) {
  const Context context{model_name, config, signature, config.max_batch_size() > 0};
  NEREID_KIT_ASSIGN(size_t expected, CheckBatchInputs(context));
  for (const rapidjson::Value& io : ArrayOf(config.json(), "input")) {
    expected += BoolMember(io, "optional") ? 0 : 1;
  }
  if (const rapidjson::Value* sequences = Find(config.json(), "sequence_batching")) {
    NEREID_KIT_ASSIGN(const size_t controls, CheckControls(context, *sequences));
    NEREID_KIT_ASSIGN(const size_t states, CheckStates(context, *sequences));
    expected += controls + states;
  }
  if (signature.inputs.size() != expected) {
    return context.Unable("configuration expects ", expected, " inputs, model provides ",
                          signature.inputs.size());
  }
  for (const rapidjson::Value& io : ArrayOf(config.json(), "input")) {
    NEREID_KIT_TRY(CheckInput(context, io));
  }
  for (const rapidjson::Value& io : ArrayOf(config.json(), "output")) {
    NEREID_KIT_TRY(CheckOutput(context, io));
  }
  return {};
}

}  // namespace nereid::onnxruntime
