// SPDX-License-Identifier: Apache-2.0
// The call specification of a compiled model: how PyTorch flattens the arguments and the result of
// `forward` into a row of tensors.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "pytorch_backend/binding.h"
#include "pytorch_backend/signature.h"

namespace nereid::pytorch {

// Reads the two JSON texts of a package. Positional arguments are called `ARGS[0]` and so on,
// because their own names are not kept. A dictionary has the keys of the examples that the model
// was exported with, in their order, and therefore becomes a tuple with names. Fails for what is
// no specification.
backend::Result<Signature> ReadCallSpec(std::string_view arguments, std::string_view result);

// How many values the arguments have.
size_t CountValues(const Signature& signature);

// The inputs of the tensors that the model takes, in its order.
std::vector<int> FlatInputs(std::span<const ValueNode> arguments);

// The paths of the tensors that it returns, such as "[scores][0]", in its order.
std::vector<std::string> FlatPaths(const ValueType& result);

}  // namespace nereid::pytorch
