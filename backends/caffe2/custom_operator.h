// SPDX-License-Identifier: Apache-2.0
// What ONNX Runtime wants of a custom operator, from a class with a function to compute:
//
//   struct Twice {
//     static constexpr const char* kName = "Twice";
//     static constexpr Tensor kInputs[] = {{kFloats}};
//     static constexpr Tensor kOutputs[] = {{kFloats}};
//     explicit Twice(const Attributes& attributes);
//     Error Compute(const Arguments& arguments) const;
//   };
//   static const CustomOperator<Twice> twice;
#pragma once

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "backend_kit/shape.h"
#include "onnxruntime_backend/ort.h"

namespace nereid::caffe2 {

inline constexpr ONNXTensorElementDataType kFloats = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
inline constexpr ONNXTensorElementDataType kInt32s = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
inline constexpr ONNXTensorElementDataType kInt64s = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
inline constexpr ONNXTensorElementDataType kAnything = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;

// An input or output of a custom operator. Immutable.
struct OperatorTensor {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;  // undefined: any
  bool is_optional = false;
};

// The attributes of a node. Valid while the kernel is made.
class NodeAttributes {
 public:
  explicit NodeAttributes(const OrtKernelInfo* info) : info_(info) {}

  // The value; 0 if there is none.
  int64_t Int(const char* name) const {
    int64_t value = 0;
    Drop(onnxruntime::Api().KernelInfoGetAttribute_int64(info_, name, &value));
    return value;
  }
  float Real(const char* name) const {
    float value = 0;
    Drop(onnxruntime::Api().KernelInfoGetAttribute_float(info_, name, &value));
    return value;
  }

 private:
  static void Drop(OrtStatus* status) {
    if (status != nullptr) {
      onnxruntime::Api().ReleaseStatus(status);
    }
  }

  const OrtKernelInfo* const info_;
};

// A tensor that an operator reads. Valid while it computes.
struct InputTensor {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<int64_t> dims;
  const void* data = nullptr;  // null if the node has no such input
  size_t size = 0;             // in elements

  explicit operator bool() const { return data != nullptr; }
  // REQUIRES: the tensor is of type T or absent.
  template <typename T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data), size};
  }
};

// The inputs and outputs of one computation.
class Arguments {
 public:
  explicit Arguments(OrtKernelContext* context) : context_(context) {}

  backend::Result<InputTensor> Input(size_t i) const {
    const OrtApi& api = onnxruntime::Api();
    const OrtValue* value = nullptr;
    size_t count = 0;
    InputTensor input;
    NEREID_ORT_TRY(api.KernelContext_GetInputCount(context_, &count));
    if (i < count) {
      NEREID_ORT_TRY(api.KernelContext_GetInput(context_, i, &value));
    }
    if (value == nullptr) {
      return input;
    }
    OrtTensorTypeAndShapeInfo* raw = nullptr;
    NEREID_ORT_TRY(api.GetTensorTypeAndShape(value, &raw));
    const onnxruntime::Owned<OrtTensorTypeAndShapeInfo> info(raw);
    size_t rank = 0;
    NEREID_ORT_TRY(api.GetTensorElementType(raw, &input.type));
    NEREID_ORT_TRY(api.GetTensorShapeElementCount(raw, &input.size));
    NEREID_ORT_TRY(api.GetDimensionsCount(raw, &rank));
    input.dims.resize(rank);
    NEREID_ORT_TRY(api.GetDimensions(raw, input.dims.data(), rank));
    void* data = nullptr;
    NEREID_ORT_TRY(api.GetTensorMutableData(const_cast<OrtValue*>(value), &data));
    // A tensor without elements may have no memory, but it is there.
    static const int64_t kEmpty = 0;
    input.data = data == nullptr ? &kEmpty : data;
    return input;
  }

  // Writes output i, a tensor of one dimension.
  template <typename T>
  backend::Error Put(size_t i, const std::vector<T>& values) const {
    NEREID_KIT_ASSIGN(const std::span<T> to, Output<T>(i, {static_cast<int64_t>(values.size())}));
    std::copy_n(values.begin(), to.size(), to.begin());
    return {};
  }

  // Allocates output i.
  template <typename T>
  backend::Result<std::span<T>> Output(size_t i, const std::vector<int64_t>& dims) const {
    const OrtApi& api = onnxruntime::Api();
    NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(dims));
    OrtValue* value = nullptr;
    NEREID_ORT_TRY(api.KernelContext_GetOutput(context_, i, dims.data(), dims.size(), &value));
    if (value == nullptr) {
      return std::span<T>();  // nobody wants it
    }
    void* data = nullptr;
    NEREID_ORT_TRY(api.GetTensorMutableData(value, &data));
    return std::span<T>(static_cast<T*>(data), static_cast<size_t>(elements));
  }

 private:
  OrtKernelContext* const context_;
};

// The table of functions for Kernel. Immutable; lives as long as the sessions that use it.
template <typename Kernel>
struct CustomOperator : OrtCustomOp {
  CustomOperator() : OrtCustomOp{} {
    // The oldest version with the functions that are used; newer libraries accept it.
    version = 18;
    GetName = [](const OrtCustomOp*) { return Kernel::kName; };
    GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
    GetInputTypeCount = [](const OrtCustomOp*) { return std::size(Kernel::kInputs); };
    GetInputType = [](const OrtCustomOp*, size_t i) { return Kernel::kInputs[i].type; };
    GetInputCharacteristic = [](const OrtCustomOp*, size_t i) {
      return Kernel::kInputs[i].is_optional ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
    };
    GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
    GetOutputTypeCount = [](const OrtCustomOp*) { return std::size(Kernel::kOutputs); };
    GetOutputType = [](const OrtCustomOp*, size_t i) { return Kernel::kOutputs[i].type; };
    GetOutputCharacteristic = [](const OrtCustomOp*, size_t i) {
      return Kernel::kOutputs[i].is_optional ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
    };
    GetVariadicInputMinArity = [](const OrtCustomOp*) { return 0; };
    GetVariadicInputHomogeneity = [](const OrtCustomOp*) { return 0; };
    GetVariadicOutputMinArity = [](const OrtCustomOp*) { return 0; };
    GetVariadicOutputHomogeneity = [](const OrtCustomOp*) { return 0; };
    GetStartVersion = [](const OrtCustomOp*) { return 1; };
    GetEndVersion = [](const OrtCustomOp*) { return 1; };
    CreateKernelV2 = [](const OrtCustomOp*, const OrtApi*, const OrtKernelInfo* info,
                        void** kernel) -> OrtStatusPtr {
      return Guarded([&]() -> backend::Error {
        *kernel = new Kernel(NodeAttributes(info));
        return {};
      });
    };
    KernelComputeV2 = [](void* kernel, OrtKernelContext* context) -> OrtStatusPtr {
      return Guarded(
          [&] { return static_cast<const Kernel*>(kernel)->Compute(Arguments(context)); });
    };
    KernelDestroy = [](void* kernel) { delete static_cast<Kernel*>(kernel); };
  }

 private:
  // Runs a function of ours for ONNX Runtime, which takes no exceptions and its own kind of error.
  template <typename Body>
  static OrtStatus* Guarded(Body&& body) noexcept {
    try {
      const backend::Error error = body();
      return error.ok() ? nullptr
                        : onnxruntime::Api().CreateStatus(ORT_INVALID_ARGUMENT, error.message());
    } catch (const std::exception& e) {
      return onnxruntime::Api().CreateStatus(ORT_FAIL, e.what());
    }
  }
};

}  // namespace nereid::caffe2
