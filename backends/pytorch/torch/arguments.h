// SPDX-License-Identifier: Apache-2.0
// Makes the arguments of a call from the inputs of a request.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "pytorch_backend/program.h"

namespace nereid::pytorch {

// The arguments of a call. Those behind the first absent one are passed by name, so that absent
// ones get their defaults.
struct Call {
  std::vector<c10::IValue> positional;
  std::unordered_map<std::string, c10::IValue> keywords;
};

// `schema` is that of forward, with the module as its first argument, which is not part of the
// call. Tensors are on `device` and use the memory of inputs that are there, unless
// `copies_inputs`; a reference to each is appended to `tensors`. Fails if an input that is needed
// is absent or does not fit its argument. Throws c10::Error.
backend::Result<Call> MakeCall(const c10::FunctionSchema& schema,
                               std::span<const ValueNode> arguments,
                               std::span<const CallInput> inputs, const Device& device,
                               bool copies_inputs, std::vector<at::Tensor>* tensors);

}  // namespace nereid::pytorch
