// SPDX-License-Identifier: Apache-2.0
// Flattens the result of a call.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pytorch_backend/program.h"

namespace nereid::pytorch {

// Takes `result`, which the caller must not keep another reference of: memory that anyone else
// refers to is not lendable. Tensors on the program's device stay there if that is a GPU. Throws
// c10::Error.
std::shared_ptr<const Results> Flatten(c10::IValue result, const Device& device, bool with_paths);

// Makes results of tensors that a compiled model returned, on the CPU and with known paths. Throws
// c10::Error.
std::shared_ptr<const Results> Flatten(std::vector<at::Tensor> tensors,
                                       std::span<const std::string> paths);

}  // namespace nereid::pytorch
