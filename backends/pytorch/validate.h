// SPDX-License-Identifier: Apache-2.0
// Checks of a configuration against a model.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/config.h"
#include "backend_kit/ports.h"
#include "pytorch_backend/program.h"

namespace nereid::pytorch {

// What the configuration lacks, before a model is loaded: types that PyTorch does not have, strings
// with more than one dimension.
backend::Error CheckPorts(const backend::Ports& ports, bool is_batching, const std::string& model);

// Fails if there are no inputs, with a configuration to begin with: the file of a model says how
// its inputs are called, but neither their types nor their shapes.
backend::Error CheckInputsListed(const backend::Ports& ports, const Signature& signature,
                                 const std::string& model);

// Fails if a list of strings is to be given numbers, or the other way round.
backend::Error CheckKinds(const backend::Ports& ports, const std::vector<ValueNode>& arguments);

// The inputs of the model as BindInputs takes them.
std::vector<InputName> InputNames(const backend::Ports& ports);

}  // namespace nereid::pytorch
