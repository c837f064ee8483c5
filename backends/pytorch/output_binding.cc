// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/output_binding.h"

#include <optional>

#include "pytorch_backend/path.h"

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;
using Kind = ValueType::Kind;

namespace {

// How many tensors a result of this type has; nothing if it depends on the call.
std::optional<size_t> CountLeaves(const ValueType& type) {
  if (type.is_leaf()) {
    return 1;
  }
  if (type.kind != Kind::kTuple) {
    return std::nullopt;
  }
  size_t count = 0;
  for (const ValueType& element : type.elements) {
    const std::optional<size_t> leaves = CountLeaves(element);
    if (!leaves) {
      return std::nullopt;
    }
    count += *leaves;
  }
  return count;
}

std::string InBrackets(const Path& path) {
  std::string text;
  for (const std::string& step : path) {
    text += "[" + step + "]";
  }
  return text;
}

// The path that an output's name stands for; empty if it cannot be one. Names count only where the
// result has names: in dictionaries and named tuples, and after RESULT.
std::string OutputPath(const ValueType& result, const std::string& name) {
  std::optional<Path> path = ParsePath(name);
  const ValueType& type = result.Required();
  if (path && !path->empty() && path->front() == "RESULT") {
    path->erase(path->begin());
    return InBrackets(*path);
  }
  if (type.kind == Kind::kTuple && path && !path->empty() &&
      FindName(type.fields, path->front()) >= 0) {
    return InBrackets(*path);
  }
  return type.kind != Kind::kDict ? "" : InBrackets(path ? *path : Path{name});
}

}  // namespace

Result<std::vector<OutputPlace>> BindOutputs(const Signature& signature,
                                             std::span<const std::string> outputs) {
  std::vector<OutputPlace> places;
  bool by_order = false;
  for (const std::string& name : outputs) {
    by_order = by_order ||
               (!IndexOf(name) && OutputPath(signature.result, name).empty() && name != "RESULT");
  }
  const std::optional<size_t> count = CountLeaves(signature.result);
  for (const std::string& name : outputs) {
    OutputPlace place{.name = name, .path = OutputPath(signature.result, name)};
    const std::optional<size_t> index = by_order           ? std::optional(places.size())
                                        : name == "RESULT" ? std::optional<size_t>(0)
                                                           : IndexOf(name);
    if (index && !(by_order && !place.path.empty())) {
      place.index = static_cast<int>(*index);
    }
    if (place.path.empty() && count && *index >= *count) {
      return Error::InvalidArgument(
          StrCat("The output ", name,
                 " in the model configuration refers to an output index which doesn't exist. This "
                 "model has ",
                 *count, " outputs"));
    }
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace nereid::pytorch
