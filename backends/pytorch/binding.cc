// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/binding.h"

#include <algorithm>
#include <optional>

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;
using Kind = ValueType::Kind;

namespace {

// Appends the paths of the leaves of `type`. A list takes `list_elements` of them; dictionaries
// have no order that a configuration could know.
void AppendPositions(const ValueType& type, const Path& path, size_t list_elements,
                     std::vector<Path>* positions) {
  const ValueType& required = type.Required();
  const size_t count = required.kind == Kind::kTuple  ? required.elements.size()
                       : required.kind == Kind::kList ? list_elements
                                                      : 0;
  if (required.is_leaf()) {
    positions->push_back(path);
  }
  for (size_t i = 0; i < count; ++i) {
    Path child = path;
    child.push_back(std::to_string(i));
    AppendPositions(required.elements[required.kind == Kind::kTuple ? i : 0], child, list_elements,
                    positions);
  }
}

std::vector<Path> PositionsWith(const Signature& signature, size_t list_elements) {
  std::vector<Path> positions;
  for (const Argument& argument : signature.arguments) {
    AppendPositions(argument.type, {argument.name}, list_elements, &positions);
  }
  return positions;
}

// The leaves that `__N` counts. With one list among the arguments, it has what the others leave
// over.
std::vector<Path> Positions(const Signature& signature, size_t inputs) {
  const size_t fixed = PositionsWith(signature, 0).size();
  const size_t per_element = PositionsWith(signature, 1).size() - fixed;
  const size_t left = inputs > fixed ? inputs - fixed : 0;
  return PositionsWith(signature,
                       per_element == 0 ? 0 : std::min(left / per_element, kMaxListElements));
}

// How the inputs of a configuration are named.
enum class Naming { kKeys, kArguments, kIndices, kOrder };

Naming NamingOf(const Signature& signature, const ArgumentTree& tree,
                std::span<const InputName> inputs) {
  const auto all = [&](auto&& holds) {
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](const InputName& i) { return !i.is_listed || holds(i.name); });
  };
  if (all([&](const std::string& name) { return tree.PathOf(name).has_value(); })) {
    return Naming::kArguments;
  }
  if (signature.arguments.size() == 1 &&
      signature.arguments[0].type.Required().kind == Kind::kDict) {
    return Naming::kKeys;
  }
  return all([](const std::string& name) { return IndexOf(name).has_value(); }) ? Naming::kIndices
                                                                                : Naming::kOrder;
}

Error CountMismatch(const std::string& model, size_t configured, size_t provided,
                    const std::string& details) {
  return Error::InvalidArgument(StrCat("unable to load model '", model, "', configuration expects ",
                                       configured, " inputs, model provides ", provided, ": ",
                                       details));
}

// Checks that inputs which do not name arguments can be told apart by their positions.
Error CheckPositional(const Signature& signature) {
  const auto is_dictionary = [](const Argument& argument) {
    return argument.type.Required().kind == Kind::kDict;
  };
  if (signature.arguments.size() < 2 ||
      std::none_of(signature.arguments.begin(), signature.arguments.end(), is_dictionary)) {
    return {};
  }
  return Error::Internal(
      StrCat("Multiple inputs of kind DictType were detected. Only a single input of type "
             "Dict(str, Tensor) is supported, unless inputs are named 'argument[key]': ",
             signature.ToString()));
}

}  // namespace

Result<std::vector<ValueNode>> BindInputs(const Signature& signature,
                                          std::span<const InputName> inputs,
                                          const std::string& model) {
  for (const Argument& argument : signature.arguments) {
    if (argument.type.kind == Kind::kOther && !argument.may_be_absent()) {
      return Error::Internal(StrCat(
          "An input of type '", argument.type.text,
          "' was detected in the model, which no request can carry: ", signature.ToString()));
    }
  }
  ArgumentTree tree(signature, model);
  const Naming naming = NamingOf(signature, tree, inputs);
  if (naming == Naming::kIndices || naming == Naming::kOrder) {
    NEREID_KIT_TRY(CheckPositional(signature));
  }
  const std::vector<Path> positions = Positions(signature, inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = inputs[i].name;
    std::optional<Path> path;
    std::optional<size_t> index;
    if (naming == Naming::kKeys) {
      path = ParsePath(name);
      path = path ? path : Path{name};
      path->insert(path->begin(), signature.arguments[0].name);
    } else if (naming == Naming::kArguments || !inputs[i].is_listed) {
      path = tree.PathOf(name);
    }
    // A path that leads nowhere must not count by its order.
    const bool is_path =
        ParsePath(name) && (name.starts_with("ARGS[") || name.starts_with("KWARGS["));
    if (!path && is_path && !tree.PathOf(name)) {
      return tree.NoPlace(name);
    }
    if (!path) {
      index = naming == Naming::kOrder && inputs[i].is_listed ? i : IndexOf(name);
      if (!index) {
        return Error::Internal(StrCat(inputs[i].what, " '", name,
                                      "' does not follow <name>__<index> ", "naming convention."));
      }
      if (*index >= positions.size() && inputs.size() > positions.size()) {
        return CountMismatch(model, inputs.size(), positions.size(), signature.ToString());
      }
      if (*index >= positions.size()) {
        return tree.NoPlace(name);
      }
      path = positions[*index];
    }
    NEREID_KIT_TRY(tree.Place(*path, static_cast<int>(i), name));
  }
  if (const Error error = tree.CheckComplete(); !error.ok()) {
    return inputs.size() < positions.size()
               ? CountMismatch(model, inputs.size(), positions.size(), error.message())
               : Error::InvalidArgument(
                     StrCat("unable to load model '", model, "', ", error.message()));
  }
  return tree.Take();
}

}  // namespace nereid::pytorch
