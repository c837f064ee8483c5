// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/argument_tree.h"

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;
using Kind = ValueType::Kind;

namespace {

int FindArgument(const Signature& signature, std::string_view name) {
  for (size_t a = 0; a < signature.arguments.size(); ++a) {
    if (signature.arguments[a].name == name) {
      return static_cast<int>(a);
    }
  }
  return -1;
}

}  // namespace

ArgumentTree::ArgumentTree(const Signature& signature, const std::string& model)
    : signature_(signature), model_(model), nodes_(signature.arguments.size()) {
  for (size_t a = 0; a < nodes_.size(); ++a) {
    nodes_[a].type = &signature.arguments[a].type;
  }
}

std::optional<Path> ArgumentTree::PathOf(const std::string& name) const {
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

Error ArgumentTree::Place(const Path& path, int input, const std::string& name) {
  const int argument = FindArgument(signature_, path.front());
  return PlaceIn(nodes_[static_cast<size_t>(argument)], std::span(path).subspan(1), input, name);
}

Error ArgumentTree::CheckComplete() const {
  for (size_t a = 0; a < nodes_.size(); ++a) {
    const Argument& argument = signature_.arguments[a];
    if (!(nodes_[a].is_absent() && argument.may_be_absent())) {
      NEREID_KIT_TRY(CheckComplete(nodes_[a], {argument.name}));
    }
  }
  return {};
}

Error ArgumentTree::NoPlace(const std::string& input) const {
  return Error::InvalidArgument(StrCat("unable to load model '", model_, "', input '", input,
                                       "' has no place in ", signature_.ToString()));
}

Error ArgumentTree::PlaceIn(ValueNode& node, std::span<const std::string> path, int input,
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

Result<ValueNode*> ArgumentTree::Child(ValueNode& node, const ValueType& type,
                                       const std::string& step, const std::string& name) {
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
    return NoPlace(name);
  }
  const bool is_tuple = type.kind == Kind::kTuple;
  for (size_t i = node.children.size(); i < (is_tuple ? limit : *index + 1); ++i) {
    node.children.push_back({.type = &type.elements[is_tuple ? i : 0]});
  }
  return &node.children[*index];
}

Error ArgumentTree::CheckComplete(const ValueNode& node, const Path& path) const {
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

}  // namespace nereid::pytorch
