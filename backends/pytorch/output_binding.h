// SPDX-License-Identifier: Apache-2.0
// Which output of the configuration is which part of the result of forward.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend_kit/error.h"
#include "pytorch_backend/signature.h"

namespace nereid::pytorch {

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
