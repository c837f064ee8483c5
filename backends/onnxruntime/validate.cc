// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/validate.h"

#include "backend_kit/batch_inputs.h"
#include "backend_kit/shape.h"
#include "onnxruntime_backend/data_types.h"
#include "onnxruntime_backend/sequence_checks.h"
#include "onnxruntime_backend/tensor_checks.h"

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

Error CheckInput(const CheckContext& context, const rapidjson::Value& io) {
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
  return CheckShape(context, *tensor, dims, false);
}

Error CheckOutput(const CheckContext& context, const rapidjson::Value& io) {
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
  return CheckShape(context, *tensor, dims, true);
}

// Checks the batch inputs and returns how many inputs of the model they are.
Result<size_t> CheckBatchInputs(const CheckContext& context) {
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
  const CheckContext context{model_name, config, signature, config.max_batch_size() > 0};
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
