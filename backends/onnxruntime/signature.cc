// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/signature.h"

#include <utility>

namespace nereid::onnxruntime {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

// The functions for one of the three lists of a session's tensors; otherwise the lists are read in
// the same way.
struct ListFunctions {
  OrtStatus*(ORT_API_CALL* count)(const OrtSession*, size_t*);
  OrtStatus*(ORT_API_CALL* name)(const OrtSession*, size_t, OrtAllocator*, char**);
  OrtStatus*(ORT_API_CALL* type)(const OrtSession*, size_t, OrtTypeInfo**);
};

std::string_view KindName(ONNXType type) {
  switch (type) {
    case ONNX_TYPE_TENSOR:
      return "ONNX_TYPE_TENSOR";
    case ONNX_TYPE_SEQUENCE:
      return "ONNX_TYPE_SEQUENCE";
    case ONNX_TYPE_MAP:
      return "ONNX_TYPE_MAP";
    case ONNX_TYPE_OPAQUE:
      return "ONNX_TYPE_OPAQUE";
    case ONNX_TYPE_SPARSETENSOR:
      return "ONNX_TYPE_SPARSETENSOR";
    default:
      return "ONNX_TYPE_UNKNOWN";
  }
}

// One input or output: a tensor, or something else.
struct Border {
  TensorInfo tensor;
  ONNXType kind = ONNX_TYPE_UNKNOWN;
};

// Reads the names of the dimensions.
Error ReadSymbols(const OrtTensorTypeAndShapeInfo* tensor, TensorInfo& info) {
  std::vector<const char*> names(info.dims.size(), nullptr);
  if (!names.empty()) {
    NEREID_ORT_TRY(Api().GetSymbolicDimensions(tensor, names.data(), names.size()));
  }
  for (const char* name : names) {
    info.symbols.emplace_back(name == nullptr ? "" : name);
  }
  return {};
}

Result<Border> ReadBorder(const OrtSession* session, size_t index, const ListFunctions& list) {
  Border border;
  TensorInfo& info = border.tensor;
  OrtAllocator* allocator = nullptr;
  NEREID_ORT_TRY(Api().GetAllocatorWithDefaultOptions(&allocator));
  char* name = nullptr;
  NEREID_ORT_TRY(list.name(session, index, allocator, &name));
  info.name = name;
  NEREID_ORT_TRY(Api().AllocatorFree(allocator, name));
  OrtTypeInfo* raw = nullptr;
  NEREID_ORT_TRY(list.type(session, index, &raw));
  const Owned<OrtTypeInfo> type(raw);
  NEREID_ORT_TRY(Api().GetOnnxTypeFromTypeInfo(raw, &border.kind));
  if (border.kind != ONNX_TYPE_TENSOR) {
    return border;
  }
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  NEREID_ORT_TRY(Api().CastTypeInfoToTensorInfo(raw, &tensor));
  NEREID_ORT_TRY(Api().GetTensorElementType(tensor, &info.type));
  size_t rank = 0;
  NEREID_ORT_TRY(Api().GetDimensionsCount(tensor, &rank));
  info.dims.resize(rank);
  NEREID_ORT_TRY(Api().GetDimensions(tensor, info.dims.data(), rank));
  NEREID_KIT_TRY(ReadSymbols(tensor, info));
  return border;
}

std::string UnsupportedText(std::string_view kind, const std::string& name) {
  return StrCat("Unsupported ONNX Type '", kind, "' for I/O '", name,
                "', expected 'ONNX_TYPE_TENSOR'.");
}

// Reads a list of inputs or outputs. Those that are not tensors are added to `others`, or are an
// error if that is null.
Result<std::vector<TensorInfo>> ReadTensors(const OrtSession* session, const ListFunctions& list,
                                            std::vector<OtherOutput>* others = nullptr) {
  size_t count = 0;
  NEREID_ORT_TRY(list.count(session, &count));
  std::vector<TensorInfo> tensors;
  for (size_t i = 0; i < count; ++i) {
    NEREID_KIT_ASSIGN(Border border, ReadBorder(session, i, list));
    if (border.kind == ONNX_TYPE_TENSOR) {
      tensors.push_back(std::move(border.tensor));
    } else if (others != nullptr) {
      others->push_back({.name = std::move(border.tensor.name), .kind = KindName(border.kind)});
    } else {
      return Error::Unsupported(UnsupportedText(KindName(border.kind), border.tensor.name));
    }
  }
  return tensors;
}

}  // namespace

const TensorInfo* FindTensor(const std::vector<TensorInfo>& tensors, std::string_view name) {
  for (const TensorInfo& tensor : tensors) {
    if (tensor.name == name) {
      return &tensor;
    }
  }
  return nullptr;
}

Result<Signature> ReadSignature(const OrtSession* session) {
  const OrtApi& api = Api();
  Signature signature;
  NEREID_KIT_ASSIGN(signature.inputs,
                    ReadTensors(session, {api.SessionGetInputCount, api.SessionGetInputName,
                                          api.SessionGetInputTypeInfo}));
  NEREID_KIT_ASSIGN(signature.outputs,
                    ReadTensors(session,
                                {api.SessionGetOutputCount, api.SessionGetOutputName,
                                 api.SessionGetOutputTypeInfo},
                                &signature.other_outputs));
  NEREID_KIT_ASSIGN(signature.initializers,
                    ReadTensors(session, {api.SessionGetOverridableInitializerCount,
                                          api.SessionGetOverridableInitializerName,
                                          api.SessionGetOverridableInitializerTypeInfo}));
  return signature;
}

Error NoTensorError(const OtherOutput& output, const Signature& signature) {
  std::string text = UnsupportedText(output.kind, output.name);
  if (output.kind == KindName(ONNX_TYPE_SEQUENCE) || output.kind == KindName(ONNX_TYPE_MAP)) {
    text +=
        " Converters of classifiers make such outputs by ZipMap: convert the model with "
        "zipmap=False (skl2onnx: to_onnx(model, X, options={'zipmap': False})), and the output is "
        "a "
        "tensor.";
  }
  if (!signature.outputs.empty()) {
    text += " Or name only the outputs that are tensors in the model's configuration:";
    for (const TensorInfo& tensor : signature.outputs) {
      text += StrCat(&tensor == &signature.outputs.front() ? " '" : ", '", tensor.name, "'");
    }
    text += ".";
  }
  return Error::Unsupported(text);
}

}  // namespace nereid::onnxruntime
