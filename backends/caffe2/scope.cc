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

}  // namespace nereid::caffe2
