// SPDX-License-Identifier: Apache-2.0
// Reads TensorFlow's messages SavedModel and GraphDef.
#pragma once

#include <optional>
#include <vector>

#include "backend_kit/wire_reader.h"
#include "tensorflow_backend/graph.h"

namespace nereid::tensorflow {

// Return nothing for what is another message, or none.
std::optional<std::vector<MetaGraph>> ParseSavedModel(backend::WireReader& reader);
std::optional<Graph> ParseGraphDef(backend::WireReader& reader);

}  // namespace nereid::tensorflow
