// SPDX-License-Identifier: Apache-2.0
// Which input of the configuration is which part of forward's arguments, and which output is which
// part of its result.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "pytorch_backend/path.h"
#include "pytorch_backend/signature.h"

namespace nereid::pytorch {

// One value of a call: an input, or a list, tuple or dictionary of such. Absent if it has neither.
struct ValueNode {
  // Valid as long as the signature.
  const ValueType* type = nullptr;
  int input = -1;                   // of a leaf
  std::vector<ValueNode> children;  // of other values
  std::vector<std::string> keys;    // of a dictionary, one for each child

  bool is_absent() const { return input < 0 && children.empty(); }
};

// An input of the configuration, or one that the server makes (controls, states, batch inputs).
struct InputName {
  std::string name;
  // Whether it is listed in `input`; others cannot be found by their order.
  bool is_listed = true;
  // For messages: "input", "state", ...
  std::string_view what = "input";
};

// Returns one node for each argument. Rules, as in Triton: the inputs of a model with a dictionary
// as its only argument are that dictionary's keys; otherwise inputs are called as the arguments;
// otherwise NAME__N is the N-th; otherwise their order counts. In addition, `argument[key][0]`,
// `ARGS[0]` and `KWARGS[name]` name parts of nested arguments, and N counts these parts. Fails if
// inputs fit no argument, and if an argument that is needed is left without input. `model` is for
// error texts.
backend::Result<std::vector<ValueNode>> BindInputs(const Signature& signature,
                                                   std::span<const InputName> inputs,
                                                   const std::string& model);

// Where an output of the configuration is in the result.
struct OutputPlace {
  std::string name;
  // A place in the flattened result, to be used unless the result has something at `path`.
  int index = -1;
  std::string path;  // like "[scores][0]"; empty: only `index` counts
};

// Rules, as in Triton: NAME__N is the N-th tensor of the result, otherwise the order of the
// configuration counts. In addition, keys of a dictionary, fields of a named tuple, paths such as
// `scores[0]` and `RESULT[scores][0]`. Fails for a number or a name that the result cannot have.
backend::Result<std::vector<OutputPlace>> BindOutputs(const Signature& signature,
                                                      std::span<const std::string> outputs);

}  // namespace nereid::pytorch
