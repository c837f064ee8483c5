// SPDX-License-Identifier: Apache-2.0
// Checks of a configuration against a model.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend_kit/config.h"
#include "backend_kit/ports.h"
#include "pytorch_backend/output_binding.h"
#include "pytorch_backend/program.h"

namespace nereid::pytorch {

// What the configuration lacks, before a model is loaded: types that PyTorch does not have, strings
// with more than one dimension.
backend::Error CheckPorts(const backend::Ports& ports, bool is_batching, const std::string& model);

// Fails if there are no inputs, with a configuration to begin with: a TorchScript file says how its
// inputs are called, but neither their types nor their shapes.
backend::Error CheckInputsListed(const backend::Ports& ports, const Program& program,
                                 const std::string& model);

// Fails if the inputs of the configuration have other types or shapes than those that the model was
// compiled for.
backend::Error CheckInputRules(const backend::Ports& ports, const std::vector<ValueNode>& arguments,
                               std::span<const InputRule> rules, int64_t max_batch_size,
                               const std::string& model);

// Fails if a list of strings is to be given numbers, or the other way round.
backend::Error CheckKinds(const backend::Ports& ports, const std::vector<ValueNode>& arguments);

// Fails for outputs that the result of a compiled model, which is always the same, does not have.
backend::Error CheckOutputPlaces(const std::vector<OutputPlace>& outputs,
                                 const Signature& signature, const std::string& model);

// The inputs of the model as BindInputs takes them.
std::vector<InputName> InputNames(const backend::Ports& ports);

}  // namespace nereid::pytorch
