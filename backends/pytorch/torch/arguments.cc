// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/torch/arguments.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <algorithm>

#include "pytorch_backend/torch/gpu.h"
#include "pytorch_backend/torch/types.h"

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;
using Kind = ValueType::Kind;

namespace {

// Makes values. Confined to MakeCall.
class Maker {
 public:
  Maker(std::span<const CallInput> inputs, const Device& device, bool copies,
        std::vector<at::Tensor>* tensors)
      : inputs_(inputs), device_(ToTorch(device)), copies_(copies), tensors_(*tensors) {}

  // Whether the request has nothing of this value.
  bool IsMissing(const ValueNode& node) const {
    return node.input >= 0 ? !input(node).is_present
                           : std::all_of(node.children.begin(), node.children.end(),
                                         [&](const ValueNode& child) { return IsMissing(child); });
  }

  Result<c10::IValue> Make(const ValueNode& node, const c10::TypePtr& type) {
    if (const auto* optional = type->castRaw<c10::OptionalType>()) {
      return IsMissing(node) ? Result<c10::IValue>(c10::IValue())
                             : Make(node, optional->getElementType());
    }
    switch (node.type->Required().kind) {
      case Kind::kTuple:
        return MakeTuple(node, type);
      case Kind::kList:
        return MakeList(node, type);
      case Kind::kDict:
        return MakeDict(node, type);
      default:
        return MakeLeaf(node);
    }
  }

 private:
  const CallInput& input(const ValueNode& node) const {
    return inputs_[static_cast<size_t>(node.input)];
  }

  Result<c10::IValue> MakeTuple(const ValueNode& node, const c10::TypePtr& type) {
    const auto tuple = type->expect<c10::TupleType>();
    std::vector<c10::IValue> elements;
    for (size_t i = 0; i < tuple->elements().size(); ++i) {
      if (i >= node.children.size()) {
        return Error::InvalidArgument(StrCat("no input is for a part of ", node.type->text));
      }
      NEREID_KIT_ASSIGN(c10::IValue element, Make(node.children[i], tuple->elements()[i]));
      elements.push_back(std::move(element));
    }
    return c10::IValue(tuple->schema() ? c10::ivalue::Tuple::createNamed(std::move(elements), tuple)
                                       : c10::ivalue::Tuple::create(std::move(elements)));
  }

  Result<c10::IValue> MakeList(const ValueNode& node, const c10::TypePtr& type) {
    const c10::TypePtr element_type = type->expectRef<c10::ListType>().getElementType();
    c10::impl::GenericList list(element_type);
    list.reserve(node.children.size());
    for (const ValueNode& child : node.children) {
      // Optional inputs at the end make the list shorter.
      if (IsMissing(child) && element_type->kind() != c10::TypeKind::OptionalType) {
        continue;
      }
      NEREID_KIT_ASSIGN(c10::IValue element, Make(child, element_type));
      list.push_back(std::move(element));
    }
    return c10::IValue(list);
  }

  Result<c10::IValue> MakeDict(const ValueNode& node, const c10::TypePtr& type) {
    const auto& dict_type = type->expectRef<c10::DictType>();
    c10::impl::GenericDict dict(dict_type.getKeyType(), dict_type.getValueType());
    for (size_t i = 0; i < node.children.size(); ++i) {
      if (IsMissing(node.children[i])) {
        continue;
      }
      NEREID_KIT_ASSIGN(c10::IValue value, Make(node.children[i], dict_type.getValueType()));
      dict.insert(node.keys[i], std::move(value));
    }
    return c10::IValue(dict);
  }

  Result<c10::IValue> MakeLeaf(const ValueNode& node) {
    if (node.input < 0 || !input(node).is_present) {
      return Error::InvalidArgument(
          node.input < 0
              ? StrCat("no input is for a value of type ", node.type->text)
              : StrCat("input '", input(node).name, "' is missing, which the model needs"));
    }
    const CallInput& from = input(node);
    const Kind kind = node.type->Required().kind;
    if (node.type->Required().is_text()) {
      return MakeText(from, kind);
    }
    at::Tensor tensor = ViewOf(from, device_);
    if (kind != Kind::kTensor) {
      return MakeNumbers(from, kind, tensor.cpu());
    }
    if (device_ && tensor.device() != *device_) {
      tensor = tensor.to(*device_);
    } else if (copies_) {
      tensor = tensor.clone();
    }
    tensors_.push_back(tensor);
    return c10::IValue(std::move(tensor));
  }

  static Error NotOneElement(const CallInput& from, int64_t count) {
    return Error::InvalidArgument(
        StrCat("input '", from.name, "' is a single value in the model, got ", count, " elements"));
  }

  static Result<c10::IValue> MakeText(const CallInput& from, Kind kind) {
    if (kind == Kind::kString) {
      if (from.strings.size() != 1) {
        return NotOneElement(from, static_cast<int64_t>(from.strings.size()));
      }
      return c10::IValue(std::string(from.strings[0]));
    }
    c10::List<std::string> list;
    list.reserve(from.strings.size());
    for (const std::string_view text : from.strings) {
      list.push_back(std::string(text));
    }
    return c10::IValue(std::move(list));
  }

  template <typename T>
  static c10::IValue ListOf(const at::Tensor& tensor, at::ScalarType type) {
    const at::Tensor flat = tensor.to(type).reshape({-1}).contiguous();
    c10::List<T> list;
    list.reserve(static_cast<size_t>(flat.numel()));
    for (int64_t i = 0; i < flat.numel(); ++i) {
      list.push_back(flat.const_data_ptr<T>()[i]);
    }
    return c10::IValue(std::move(list));
  }

  static Result<c10::IValue> MakeNumbers(const CallInput& from, Kind kind,
                                         const at::Tensor& tensor) {
    switch (kind) {
      case Kind::kBools:
        return ListOf<bool>(tensor, at::kBool);
      case Kind::kInts:
        return ListOf<int64_t>(tensor, at::kLong);
      case Kind::kFloats:
        return ListOf<double>(tensor, at::kDouble);
      default:
        break;
    }
    if (tensor.numel() != 1) {
      return NotOneElement(from, tensor.numel());
    }
    const at::Scalar value = tensor.item();
    return kind == Kind::kBool  ? c10::IValue(value.toBool())
           : kind == Kind::kInt ? c10::IValue(value.toLong())
                                : c10::IValue(value.toDouble());
  }

  const std::span<const CallInput> inputs_;
  const std::optional<c10::Device> device_;
  const bool copies_;
  std::vector<at::Tensor>& tensors_;
};

}  // namespace

Result<Call> MakeCall(const c10::FunctionSchema& schema, std::span<const ValueNode> arguments,
                      std::span<const CallInput> inputs, const Device& device, bool copies_inputs,
                      std::vector<at::Tensor>* tensors) {
  Maker maker(inputs, device, copies_inputs, tensors);
  Call call;
  bool by_name = false;
  for (size_t a = 0; a < arguments.size(); ++a) {
    const c10::Argument& argument = schema.arguments()[a + 1];
    if (argument.default_value() && maker.IsMissing(arguments[a])) {
      by_name = true;
      continue;
    }
    NEREID_KIT_ASSIGN(c10::IValue value, maker.Make(arguments[a], argument.type()));
    if (by_name) {
      call.keywords.emplace(argument.name(), std::move(value));
    } else {
      call.positional.push_back(std::move(value));
    }
  }
  return call;
}

}  // namespace nereid::pytorch
