// SPDX-License-Identifier: Apache-2.0
// What a compiled model demands of its inputs. Its code does not look whether it gets that: it
// reads as much memory as the shapes with which it was compiled, or the first input's, make it
// expect.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/error.h"
#include "pytorch_backend/program.h"

namespace nereid::pytorch {

// Reads the rules of all inputs from the C++ source that AOTInductor leaves in a package. Nothing
// if it says them in a way that is not known here.
std::optional<std::vector<InputRule>> ReadInputRules(std::string_view source);

// Checks one call. `inputs` are in the order of the rules.
backend::Error CheckInputs(std::span<const InputRule> rules, std::span<const CallInput> inputs);

// "[-1, 4]", for messages.
std::string ShapeText(const InputRule& rule);

}  // namespace nereid::pytorch
