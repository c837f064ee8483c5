// SPDX-License-Identifier: Apache-2.0
// Reads SavedModel and GraphDef files without TensorFlow: what inputs and outputs they have, and
// what a file is that is neither. Weights are skipped.
#pragma once

#include <string>
#include <vector>

#include "tensorflow_backend/graph.h"

namespace nereid::tensorflow {

// Fail with what the file is instead, and where.
backend::Result<std::vector<MetaGraph>> ReadSavedModel(const std::string& folder);
backend::Result<Graph> ReadGraphDef(const std::string& path);

}  // namespace nereid::tensorflow
