// SPDX-License-Identifier: Apache-2.0
// What a model's `forward` takes and returns, in terms of our own: the rest of the backend is
// compiled and tested without PyTorch's headers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nereid::pytorch {

// The type of an argument or of the result. Immutable.
struct ValueType {
  // The kinds up to kStrings are leaves: one tensor of a request or of a response each.
  enum class Kind {
    kTensor,
    kBool,
    kInt,
    kFloat,
    kString,
    kBools,    // List[bool]
    kInts,     // List[int]
    kFloats,   // List[float]
    kStrings,  // List[str]
    kOptional,
    kTuple,
    kList,
    kDict,   // with keys of type str
    kOther,  // nothing that a request can carry
  };

  Kind kind = Kind::kTensor;
  // The types of all elements of a tuple; the one element type of a list, a dictionary and an
  // optional value.
  std::vector<ValueType> elements;
  // The fields of a tuple that has names for them.
  std::vector<std::string> fields;
  // As TorchScript spells it.
  std::string text;

  bool is_leaf() const { return kind <= Kind::kStrings; }
  bool is_text() const { return kind == Kind::kString || kind == Kind::kStrings; }
  // The type without a leading Optional.
  const ValueType& Required() const {
    return kind == Kind::kOptional ? elements.front().Required() : *this;
  }
};

// An argument of `forward`.
struct Argument {
  std::string name;
  ValueType type;
  bool has_default = false;

  bool may_be_absent() const { return has_default || type.kind == ValueType::Kind::kOptional; }
};

// A model's signature. Immutable.
struct Signature {
  std::vector<Argument> arguments;
  ValueType result;
  // Whether the model may write to the memory of its inputs, which belongs to clients.
  bool writes_inputs = false;
  // Whether the model may change its own attributes, so that each instance needs a copy of it.
  bool writes_attributes = false;
  // Whether an attribute may be an input, or part of one, after the run.
  bool keeps_inputs = false;

  // For messages: "forward(x: Tensor, names: List[str]) -> Tensor".
  std::string ToString() const;
};

}  // namespace nereid::pytorch
