// SPDX-License-Identifier: Apache-2.0
// What operations do with a state, as far as TensorFlow tells.
#pragma once

#include <set>
#include <string>

#include "tensorflow_backend/library.h"

namespace nereid::tensorflow {

// Whether one of the operations may change what outlives a run (a variable, a table, a queue), and
// so perhaps keep a tensor that it is given.
bool MayChangeState(const Library& library, const std::set<std::string>& operations);

}  // namespace nereid::tensorflow
