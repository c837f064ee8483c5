// SPDX-License-Identifier: Apache-2.0
// Which input of the configuration is which part of forward's arguments.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "pytorch_backend/argument_tree.h"
#include "pytorch_backend/signature.h"

namespace nereid::pytorch {

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

}  // namespace nereid::pytorch
