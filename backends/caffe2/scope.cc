// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/scope.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace nereid::caffe2 {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

template <typename T>
Constant Number(Element type, double value) {
  T number = static_cast<T>(0);
  if constexpr (std::is_floating_point_v<T>) {
    number = static_cast<T>(value);
  } else if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
    number = std::numeric_limits<T>::max();
  } else if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    number = std::numeric_limits<T>::min();
  } else if (value == value) {
    number = static_cast<T>(value);
  }
  Constant constant{.type = type, .dims = {}, .bytes = std::string(sizeof(T), '\0'), .texts = {}};
  std::memcpy(constant.bytes.data(), &number, sizeof(T));
  return constant;
}

}  // namespace

Scope::Scope(const Operator& operation, size_t position, std::string_view net,
             std::string_view target, std::vector<const Value*> inputs, uint64_t& filled_bytes,
             Graph& graph)
    : operation_(operation),
      position_(position),
      net_(net),
      target_(target),
      inputs_(std::move(inputs)),
      results_(operation.outputs.size()),
      filled_bytes_(filled_bytes),
      graph_(graph) {
  graph_.SetLabel(
      StrCat("#", position_, " ", operation_.type, " '",
             operation_.outputs.empty() ? std::string_view() : Shown(operation_.outputs[0]), "'"));
}

std::string Scope::Describe() const {
  std::string text = StrCat("operator #", position_, " '", Shown(operation_.type), "'");
  if (!operation_.outputs.empty()) {
    text += StrCat(" (output '", Shown(operation_.outputs[0]), "')");
  }
  return StrCat(text, " of ", net_);
}

int64_t Scope::Int(std::string_view name, int64_t otherwise) const {
  const Argument* argument = operation_.Find(name);
  return argument == nullptr ? otherwise : argument->integer().value_or(otherwise);
}

float Scope::Real(std::string_view name, float otherwise) const {
  const Argument* argument = operation_.Find(name);
  if (argument == nullptr) {
    return otherwise;
  }
  if (argument->real()) {
    return *argument->real();
  }
  return argument->integer() ? static_cast<float>(*argument->integer()) : otherwise;
}

std::string_view Scope::Text(std::string_view name, std::string_view otherwise) const {
  const Argument* argument = operation_.Find(name);
  return argument == nullptr ? otherwise : argument->text().value_or(otherwise);
}

std::vector<int64_t> Scope::Ints(std::string_view name) const {
  const Argument* argument = operation_.Find(name);
  return argument == nullptr ? std::vector<int64_t>() : argument->Integers();
}

Result<int64_t> Scope::Rank(size_t i) const {
  if (!In(i).dims) {
    return Refuse("needs the number of dimensions of its input '", Shown(operation_.inputs[i]),
                  "', which depends on data");
  }
  return static_cast<int64_t>(In(i).dims->size());
}

Result<int64_t> Scope::Axis(std::string_view name, int64_t otherwise, int64_t rank) const {
  const int64_t given = Int(name, otherwise);
  if (given < -rank || given >= rank) {
    return Refuse("has ", name, " ", given, ", but its input has ", rank, " dimensions");
  }
  return given < 0 ? given + rank : given;
}

std::optional<std::vector<int64_t>> Scope::Constants(const Value& value) const {
  const Constant* constant = graph_.FindConstant(value.name);
  return constant == nullptr ? std::nullopt : constant->Integers();
}

std::string Scope::Node(std::string_view type, std::vector<std::string> inputs,
                        Attributes attributes, std::string_view domain) {
  return graph_.AddNode(type, std::move(inputs), std::move(attributes), 1, domain).front();
}

std::vector<std::string> Scope::Nodes(std::string_view type, std::vector<std::string> inputs,
                                      Attributes attributes, size_t outputs,
                                      std::string_view domain) {
  return graph_.AddNode(type, std::move(inputs), std::move(attributes), outputs, domain);
}

std::string Scope::Vector(const std::vector<int64_t>& values) {
  Constant constant{.type = Element::kInt64,
                    .dims = {static_cast<int64_t>(values.size())},
                    .bytes = std::string(values.size() * sizeof(int64_t), '\0'),
                    .texts = {}};
  if (!values.empty()) {
    std::memcpy(constant.bytes.data(), values.data(), constant.bytes.size());
  }
  return graph_.Add(std::move(constant));
}

std::string Scope::Scalar(int64_t value) {
  Constant constant{
      .type = Element::kInt64, .dims = {}, .bytes = std::string(sizeof(value), '\0'), .texts = {}};
  std::memcpy(constant.bytes.data(), &value, sizeof(value));
  return graph_.Add(std::move(constant));
}

std::string Scope::Scalar(float value) { return Scalar(value, Element::kFloat); }

std::string Scope::Scalar(double value, Element type) {
  switch (type) {
    case Element::kDouble:
      return graph_.Add(Number<double>(type, value));
    case Element::kInt32:
      return graph_.Add(Number<int32_t>(type, value));
    case Element::kInt64:
      return graph_.Add(Number<int64_t>(type, value));
    case Element::kUint8:
      return graph_.Add(Number<uint8_t>(type, value));
    default:
      break;
  }
  const std::string number = graph_.Add(Number<float>(Element::kFloat, value));
  return type == Element::kFloat ? number : Cast(number, Element::kFloat, type);
}

std::string Scope::Cast(const std::string& value, Element from, Element to) {
  return from == to ? value : Node("Cast", {value}, {{"to", static_cast<int64_t>(to)}});
}

Error Scope::Fill(uint64_t bytes) {
  constexpr uint64_t kMaxBytes = uint64_t{2} << 30;
  if (bytes > kMaxBytes || filled_bytes_ > kMaxBytes - bytes) {
    return Refuse("makes a tensor of ", bytes,
                  " bytes; all that a network fills may take 2 GB at most");
  }
  filled_bytes_ += bytes;
  return {};
}

Error Scope::Fill(const std::optional<Dims>& dims) {
  constexpr uint64_t kElementBytes = 8;
  uint64_t bytes = kElementBytes;
  bool overflows = false;
  for (const int64_t dim : dims.value_or(Dims{-1})) {
    if (dim < 0) {
      return {};
    }
    overflows = overflows || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes);
  }
  return Fill(overflows ? UINT64_MAX : bytes);
}

std::optional<Element> FromDataType(int64_t data_type) {
  switch (data_type) {
    case 1:
      return Element::kFloat;
    case 2:
      return Element::kInt32;
    case 3:  // BYTE
    case 6:
      return Element::kUint8;
    case 4:
      return Element::kString;
    case 5:
      return Element::kBool;
    case 7:
      return Element::kInt8;
    case 8:
      return Element::kUint16;
    case 9:
      return Element::kInt16;
    case 10:
      return Element::kInt64;
    case 12:
      return Element::kHalf;
    case 13:
      return Element::kDouble;
    default:
      return std::nullopt;
  }
}

std::optional<Dims> Broadcast(const std::optional<Dims>& a, const std::optional<Dims>& b) {
  if (!a || !b) {
    return std::nullopt;
  }
  const Dims& longer = a->size() >= b->size() ? *a : *b;
  const Dims& shorter = a->size() >= b->size() ? *b : *a;
  Dims dims = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& dim = dims[offset + i];
    if (dim == 1 || (dim == -1 && shorter[i] != 1)) {
      dim = shorter[i];
    }
  }
  return dims;
}

std::string ToChannelsFirst(Scope& scope, const std::string& value, int64_t rank) {
  std::vector<int64_t> order{0, rank - 1};
  for (int64_t d = 1; d < rank - 1; ++d) {
    order.push_back(d);
  }
  return scope.Node("Transpose", {value}, {{"perm", order}});
}

std::string ToChannelsLast(Scope& scope, const std::string& value, int64_t rank) {
  std::vector<int64_t> order{0};
  for (int64_t d = 2; d < rank; ++d) {
    order.push_back(d);
  }
  order.push_back(1);
  return scope.Node("Transpose", {value}, {{"perm", order}});
}

std::string ShapeOf(Scope& scope, const std::string& value) { return scope.Node("Shape", {value}); }

std::string ShapeOf(Scope& scope, const std::string& value, int64_t begin, int64_t end) {
  const std::string first = scope.Vector({begin});
  const std::string last = scope.Vector({end});
  return scope.Node("Slice", {ShapeOf(scope, value), first, last});
}

}  // namespace nereid::caffe2
