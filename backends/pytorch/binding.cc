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

constexpr size_t kMaxListElements = 4096;

int FindName(const std::vector<std::string>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

int FindArgument(const Signature& signature, std::string_view name) {
  for (size_t a = 0; a < signature.arguments.size(); ++a) {
    if (signature.arguments[a].name == name) {
      return static_cast<int>(a);
    }
  }
  return -1;
}

Error NoPlace(const std::string& model, const std::string& input, const Signature& signature) {
  return Error::InvalidArgument(StrCat("unable to load model '", model, "', input '", input,
                                       "' has no place in ", signature.ToString()));
}

// Makes the nodes of a call. Confined to BindInputs.
class Binder {
 public:
  Binder(const Signature& signature, const std::string& model)
      : signature_(signature), model_(model), nodes_(signature.arguments.size()) {
    for (size_t a = 0; a < nodes_.size(); ++a) {
      nodes_[a].type = &signature.arguments[a].type;
    }
  }

  // Returns the path of a name that begins with an argument; nothing if it does not.
  std::optional<Path> PathOf(const std::string& name) const {
    if (const int argument = FindArgument(signature_, name); argument >= 0) {
      return Path{name};
    }
    std::optional<Path> path = ParsePath(name);
    if (!path || path->empty()) {
      return std::nullopt;
    }
    if (path->front() == "ARGS" && path->size() > 1) {
      const std::optional<size_t> index = ParseIndex((*path)[1]);
      if (!index || *index >= signature_.arguments.size()) {
        return std::nullopt;
      }
      path->erase(path->begin());
      path->front() = signature_.arguments[*index].name;
    } else if (path->front() == "KWARGS" && path->size() > 1) {
      path->erase(path->begin());
    }
    return FindArgument(signature_, path->front()) < 0 ? std::nullopt : path;
  }

  // Makes input number `input` the value at `path`. REQUIRES: path.front() is an argument.
  Error Place(const Path& path, int input, const std::string& name) {
    const int argument = FindArgument(signature_, path.front());
    return PlaceIn(nodes_[static_cast<size_t>(argument)], std::span(path).subspan(1), input, name);
  }

  // Checks that each value has an input. The error names only the value that has none.
  Error CheckComplete() const {
    for (size_t a = 0; a < nodes_.size(); ++a) {
      const Argument& argument = signature_.arguments[a];
      if (!(nodes_[a].is_absent() && argument.may_be_absent())) {
        NEREID_KIT_TRY(CheckComplete(nodes_[a], {argument.name}));
      }
    }
    return {};
  }

  std::vector<ValueNode> Take() { return std::move(nodes_); }

 private:
  Error PlaceIn(ValueNode& node, std::span<const std::string> path, int input,
                const std::string& name) {
    const ValueType& type = node.type->Required();
    if (path.empty()) {
      if (!type.is_leaf()) {
        return Error::Internal(StrCat(
            "An input of type '", type.text,
            "' was detected in the model. A single input cannot be its value: name its parts, "
            "for example '",
            name, type.kind == Kind::kDict ? "[key]'" : "[0]'", " (", signature_.ToString(), ")"));
      }
      if (node.input >= 0) {
        return Error::InvalidArgument(StrCat("unable to load model '", model_, "', '", name,
                                             "' and another input are the same argument of ",
                                             signature_.ToString()));
      }
      node.input = input;
      return {};
    }
    NEREID_KIT_ASSIGN(ValueNode* const child, Child(node, type, path.front(), name));
    return PlaceIn(*child, path.subspan(1), input, name);
  }

  Result<ValueNode*> Child(ValueNode& node, const ValueType& type, const std::string& step,
                           const std::string& name) {
    if (type.kind == Kind::kDict) {
      int at = FindName(node.keys, step);
      if (at < 0) {
        at = static_cast<int>(node.keys.size());
        node.keys.push_back(step);
        node.children.push_back({.type = &type.elements.front()});
      }
      return &node.children[static_cast<size_t>(at)];
    }
    std::optional<size_t> index = ParseIndex(step);
    if (const int field = FindName(type.fields, step); field >= 0) {
      index = static_cast<size_t>(field);
    }
    const size_t limit = type.kind == Kind::kTuple  ? type.elements.size()
                         : type.kind == Kind::kList ? kMaxListElements
                                                    : 0;
    if (!index || *index >= limit) {
      return NoPlace(model_, name, signature_);
    }
    const bool is_tuple = type.kind == Kind::kTuple;
    for (size_t i = node.children.size(); i < (is_tuple ? limit : *index + 1); ++i) {
      node.children.push_back({.type = &type.elements[is_tuple ? i : 0]});
    }
    return &node.children[*index];
  }

  Error CheckComplete(const ValueNode& node, const Path& path) const {
    const ValueType& type = node.type->Required();
    if (node.is_absent() && type.kind != Kind::kList && type.kind != Kind::kDict) {
      if (node.type->kind == Kind::kOptional) {
        return {};
      }
      return Error::InvalidArgument(
          StrCat("no input is for '", ToString(path), "' of ", signature_.ToString()));
    }
    for (size_t c = 0; c < node.children.size(); ++c) {
      Path child = path;
      child.push_back(node.keys.empty() ? std::to_string(c) : node.keys[c]);
      NEREID_KIT_TRY(CheckComplete(node.children[c], child));
    }
    return {};
  }

  const Signature& signature_;
  const std::string& model_;
  std::vector<ValueNode> nodes_;
};

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

Naming NamingOf(const Signature& signature, const Binder& binder,
                std::span<const InputName> inputs) {
  const auto all = [&](auto&& holds) {
    return std::all_of(inputs.begin(), inputs.end(),
                       [&](const InputName& i) { return !i.is_listed || holds(i.name); });
  };
  if (all([&](const std::string& name) { return binder.PathOf(name).has_value(); })) {
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
  Binder binder(signature, model);
  const Naming naming = NamingOf(signature, binder, inputs);
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
      path = binder.PathOf(name);
    }
    // A path that leads nowhere must not count by its order.
    const bool is_path =
        ParsePath(name) && (name.starts_with("ARGS[") || name.starts_with("KWARGS["));
    if (!path && is_path && !binder.PathOf(name)) {
      return Error::InvalidArgument(StrCat("unable to load model '", model, "', input '", name,
                                           "' has no place in ", signature.ToString()));
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
        return NoPlace(model, name, signature);
      }
      path = positions[*index];
    }
    NEREID_KIT_TRY(binder.Place(*path, static_cast<int>(i), name));
  }
  if (const Error error = binder.CheckComplete(); !error.ok()) {
    return inputs.size() < positions.size()
               ? CountMismatch(model, inputs.size(), positions.size(), error.message())
               : Error::InvalidArgument(
                     StrCat("unable to load model '", model, "', ", error.message()));
  }
  return binder.Take();
}

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
