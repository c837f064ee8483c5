// SPDX-License-Identifier: Apache-2.0
// Translates a Caffe2 network and the one that makes its weights into one ONNX model.
//
// Caffe2 runs operators in order, and each may replace what a blob contains, often its own input
// (`bn` → `bn`). In ONNX a tensor is made once. So each writing of a blob becomes a tensor of its
// own, and reading it means the last one that was written before. Operators on which no output
// depends are left out.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/error.h"
#include "caffe2_backend/graph.h"
#include "caffe2_backend/netdef.h"

namespace nereid::caffe2 {

// A tensor that comes in or goes out, with the dimension of the batch if there is one. Immutable.
struct Border {
  std::string name;
  Element type = Element::kFloat;
  Dims dims;
};

// What is to be translated. Refers to what outlives the call.
struct Source {
  const NetDef& init;
  const NetDef& net;
  std::string init_name;  // of the files, for errors
  std::string net_name;
};

// Returns the serialised ONNX model, whose inputs and outputs have the names of `inputs` and
// `outputs`. If `outputs` is empty, it has all the network's external outputs. Dimensions of an
// output that the translation does not know are those of `outputs`. Fails with the name of the
// operator that has no translation.
backend::Result<std::string> Translate(const Source& source, const std::vector<Border>& inputs,
                                       const std::vector<Border>& outputs);

}  // namespace nereid::caffe2
