// SPDX-License-Identifier: Apache-2.0
// What operations do with the tensors that they are given, as far as TensorFlow tells.
#pragma once

#include <set>
#include <string>

#include "tensorflow_backend/library.h"

namespace nereid::tensorflow {

// Whether one of the operations may keep a tensor that it is given beyond the run.
bool MayKeepInputs(const Library& library, c::Graph* graph,
                   const std::set<std::string>& operations);

}  // namespace nereid::tensorflow
