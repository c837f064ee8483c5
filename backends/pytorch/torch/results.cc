// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/torch/results.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "pytorch_backend/torch/gpu.h"
#include "pytorch_backend/torch/types.h"

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

// The device, if it is a GPU.
std::optional<c10::Device> GpuOf(const Device& device) {
  return device.kind == Device::Kind::kGpu ? ToTorch(device) : std::nullopt;
}

// The values that the tensors of a result refer to.
struct TorchResults : Results {
  Error CopyTo(size_t index, char* to, bool is_on_gpu) const override {
    try {
      const OnGpu scope(device);
      const at::Tensor& tensor = held_tensors[index];
      const auto where = is_on_gpu ? *ToTorch(device) : c10::Device(c10::kCPU);
      at::from_blob(to, tensor.sizes(), tensor.options().device(where)).copy_(tensor);
      scope.Wait();
      return {};
    } catch (const std::exception& error) {
      return Error::Internal(StrCat("PyTorch execute failure: ", MessageOf(error)));
    }
  }

  Result<std::shared_ptr<const Results>> OnHost() const override {
    try {
      const OnGpu scope(device);
      auto copy = std::make_shared<TorchResults>(*this);
      for (size_t i = 0; i < copy->tensors.size(); ++i) {
        if (copy->tensors[i].is_on_gpu) {
          copy->held_tensors[i] = held_tensors[i].cpu();
          Describe(copy->held_tensors[i], &copy->tensors[i]);
          copy->tensors[i].is_lendable = true;
        }
      }
      return std::shared_ptr<const Results>(std::move(copy));
    } catch (const std::exception& error) {
      return Error::Internal(StrCat("PyTorch execute failure: ", MessageOf(error)));
    }
  }

  Device device;
  std::vector<at::Tensor> held_tensors;
  std::vector<c10::IValue> held_strings;
  std::vector<std::vector<int64_t>> held_shapes;
};

// Walks through a result. Confined to Flatten.
class Flattener {
 public:
  Flattener(TorchResults& results, bool with_paths) : results_(results), with_paths_(with_paths) {}

  void AddTensor(const at::Tensor& tensor, const std::string& path) {
    results_.tensors.push_back({.path = path});
    const at::Tensor plain = Plain(tensor, GpuOf(results_.device));
    if (plain.defined()) {
      Describe(plain, &results_.tensors.back());
    } else {
      results_.tensors.back().type = !tensor.defined() ? "an undefined tensor"
                                                       : std::string("a tensor of type ") +
                                                             c10::toString(tensor.scalar_type());
    }
    results_.held_tensors.push_back(plain);
  }

  void Add(const c10::IValue& value, const std::string& path) {
    if (value.isTensor()) {
      AddTensor(value.toTensor(), path);
    } else if (value.isTuple()) {
      AddTuple(value, path);
    } else if (value.isList()) {
      AddList(value, path);
    } else if (value.isGenericDict()) {
      for (const auto& entry : value.toGenericDict()) {
        const c10::IValue& key = entry.key();
        Add(entry.value(), Step(path, key.isString() ? key.toStringRef()
                                      : key.isInt()  ? std::to_string(key.toInt())
                                                     : "?"));
      }
    } else if (value.isBool()) {
      AddTensor(at::scalar_tensor(value.toBool(), at::kBool), path);
    } else if (value.isInt()) {
      AddTensor(at::scalar_tensor(value.toInt(), at::kLong), path);
    } else if (value.isDouble()) {
      AddTensor(at::scalar_tensor(value.toDouble(), at::kDouble), path);
    } else if (value.isString()) {
      AddStrings(value, {value.toStringRef()}, path);
    } else {
      results_.tensors.push_back({.type = value.isNone() ? "None" : value.tagKind(), .path = path});
      results_.held_tensors.emplace_back();
    }
  }

 private:
  std::string Step(const std::string& path, const std::string& step) const {
    return with_paths_ ? path + "[" + step + "]" : std::string();
  }

  void AddTuple(const c10::IValue& value, const std::string& path) {
    const auto& tuple = value.toTupleRef();
    const auto schema = with_paths_ ? tuple.type()->schema() : nullptr;
    for (size_t i = 0; i < tuple.elements().size(); ++i) {
      Add(tuple.elements()[i],
          Step(path, schema ? schema->arguments()[i].name() : std::to_string(i)));
    }
  }

  void AddList(const c10::IValue& value, const std::string& path) {
    if (value.isBoolList()) {
      const std::vector<bool> numbers = value.toBoolList().vec();
      const std::vector<uint8_t> bytes(numbers.begin(), numbers.end());
      AddTensor(at::tensor(bytes, at::kByte).to(at::kBool), path);
    } else if (value.isIntList()) {
      AddTensor(at::tensor(value.toIntVector(), at::kLong), path);
    } else if (value.isDoubleList()) {
      AddTensor(at::tensor(value.toDoubleVector(), at::kDouble), path);
    } else if (value.toList().elementType()->kind() == c10::TypeKind::StringType) {
      std::vector<std::string_view> strings;
      for (const c10::IValue& text : value.toListRef()) {
        strings.push_back(text.toStringRef());
      }
      AddStrings(value, std::move(strings), path);
    } else {
      size_t i = 0;
      for (const c10::IValue& element : value.toListRef()) {
        Add(element, Step(path, std::to_string(i++)));
      }
    }
  }

  void AddStrings(const c10::IValue& value, std::vector<std::string_view> strings,
                  const std::string& path) {
    results_.held_shapes.push_back({static_cast<int64_t>(strings.size())});
    results_.held_strings.push_back(value);
    results_.tensors.push_back({.datatype = TRITONSERVER_TYPE_BYTES,
                                .shape = results_.held_shapes.back(),
                                .strings = std::move(strings),
                                .path = path});
    results_.held_tensors.emplace_back();
  }

  TorchResults& results_;
  const bool with_paths_;
};

// Nobody else may refer to lent memory, which is on the host.
void FindLendable(TorchResults& results) {
  for (size_t i = 0; i < results.tensors.size(); ++i) {
    const at::Tensor& tensor = results.held_tensors[i];
    results.tensors[i].is_lendable = tensor.defined() && tensor.is_cpu() &&
                                     tensor.use_count() == 1 && tensor.storage().use_count() == 1;
  }
}

}  // namespace

std::shared_ptr<const Results> Flatten(c10::IValue result, const Device& device, bool with_paths) {
  auto results = std::make_shared<TorchResults>();
  results->device = device;
  Flattener(*results, with_paths).Add(result, "");
  result = c10::IValue();
  FindLendable(*results);
  return results;
}

std::shared_ptr<const Results> Flatten(std::vector<at::Tensor> tensors,
                                       std::span<const std::string> paths) {
  auto results = std::make_shared<TorchResults>();
  Flattener flattener(*results, true);
  for (size_t t = 0; t < tensors.size(); ++t) {
    flattener.AddTensor(tensors[t], paths[t]);
  }
  tensors.clear();
  FindLendable(*results);
  return results;
}

}  // namespace nereid::pytorch
