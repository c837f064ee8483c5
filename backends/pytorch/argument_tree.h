// SPDX-License-Identifier: Apache-2.0
// The arguments of a call as trees of values, at whose leaves are inputs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend_kit/error.h"
#include "pytorch_backend/path.h"
#include "pytorch_backend/signature.h"

namespace nereid::pytorch {

// The largest position in a list, plus one, that an input may have.
inline constexpr size_t kMaxListElements = 4096;

// One value of a call: an input, or a list, tuple or dictionary of such. Absent if it has neither.
struct ValueNode {
  // Valid as long as the signature.
  const ValueType* type = nullptr;
  int input = -1;                   // of a leaf
  std::vector<ValueNode> children;  // of other values
  std::vector<std::string> keys;    // of a dictionary, one for each child

  bool is_absent() const { return input < 0 && children.empty(); }
};

// Makes the nodes of a call, one for each argument. Confined to a thread.
class ArgumentTree {
 public:
  ArgumentTree(const Signature& signature, const std::string& model);

  // Returns the path of a name that begins with an argument; nothing if it does not.
  std::optional<Path> PathOf(const std::string& name) const;
  // Makes input number `input` the value at `path`. REQUIRES: path.front() is an argument.
  backend::Error Place(const Path& path, int input, const std::string& name);
  // Checks that each value has an input. The error names only the value that has none.
  backend::Error CheckComplete() const;
  std::vector<ValueNode> Take() { return std::move(nodes_); }
  // An error about an input that fits no argument.
  backend::Error NoPlace(const std::string& input) const;

 private:
  backend::Error PlaceIn(ValueNode& node, std::span<const std::string> path, int input,
                         const std::string& name);
  backend::Result<ValueNode*> Child(ValueNode& node, const ValueType& type, const std::string& step,
                                    const std::string& name);
  backend::Error CheckComplete(const ValueNode& node, const Path& path) const;

  const Signature& signature_;
  const std::string& model_;
  std::vector<ValueNode> nodes_;
};

}  // namespace nereid::pytorch
