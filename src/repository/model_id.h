// SPDX-License-Identifier: Apache-2.0
// The identity of a model inside the server. Without namespaces that is its name alone; with them
// (--model-namespacing) the repository is part of it, and several models may share a name.
#pragma once

#include <compare>
#include <string>
#include <utility>

namespace nereid::repository {

// A model's identity. A value type; thread-compatible.
struct ModelId {
  std::string name_space;  // the repository as given by the user; empty without namespaces
  std::string name;

  ModelId() = default;
  ModelId(std::string the_name) : name(std::move(the_name)) {}
  ModelId(const char* the_name) : name(the_name) {}
  ModelId(std::string the_name_space, std::string the_name)
      : name_space(std::move(the_name_space)), name(std::move(the_name)) {}

  // Returns the form that messages and logs print.
  std::string Text() const { return name_space.empty() ? name : name_space + "::" + name; }
  auto operator<=>(const ModelId&) const = default;
};

}  // namespace nereid::repository
