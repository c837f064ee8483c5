// SPDX-License-Identifier: Apache-2.0
// Whether a configuration fits what a file says of its tensors, with Triton's error texts.
#pragma once

#include <string>

#include "backend_kit/ports.h"
#include "tensorflow_backend/graph.h"
#include "tensorflow_backend/program.h"

namespace nereid::tensorflow {

// Makes inputs that have no dimensions in the signature, but some in the configuration, inputs of
// any shape. TensorFlow runs with the shape that an input comes with, and Triton serves such
// models.
void OpenScalars(const backend::Ports& ports, int64_t max_batch_size, Signature* signature);

// Checks names, types and shapes against a signature of a SavedModel.
backend::Error CheckSignature(const backend::Ports& ports, const Signature& signature,
                              int64_t max_batch_size, const std::string& model);

// Checks names against the nodes of a GraphDef, whose placeholders may be inputs.
backend::Error CheckNodes(const backend::Ports& ports, const Graph& graph,
                          const std::string& model);

// Fails if no outputs are configured, with what could be: a GraphDef does not say what its inputs
// and outputs are.
backend::Error CheckListed(const backend::Ports& ports, const Graph& graph,
                           const std::string& model);

// Finds the tensors of a configuration that was checked. For a GraphDef, without a signature, names
// are places, and types are checked here. Does not set changes_state.
backend::Result<Bound> Bind(const backend::Ports& ports, const Signature* signature,
                            Session& session, const std::string& model);

}  // namespace nereid::tensorflow
