// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/stateful.h"

#include <algorithm>
#include <array>
#include <memory>

#include "backend_kit/wire_reader.h"
#include "tensorflow_backend/status.h"

namespace nereid::tensorflow {

namespace {

// Operations that have a state, as all variables, tables and random numbers do, but never keep a
// tensor that they are given beyond the run.
constexpr std::array kKeepNothing = {
    "VarHandleOp",
    "ReadVariableOp",
    "VariableV2",
    "Variable",
    "Placeholder",
    "VarIsInitializedOp",
    "IsVariableInitialized",
    "HashTable",
    "HashTableV2",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "AnonymousHashTable",
    "LookupTableFind",
    "LookupTableFindV2",
    "LookupTableSize",
    "LookupTableSizeV2",
    "ResourceGather",
    "ResourceGatherNd",
    "StatefulPartitionedCall",
    "If",
    "While",
    "Case",
    "Assert",
    "Print",
    "PrintV2",
    "RandomUniform",
    "RandomUniformInt",
    "RandomStandardNormal",
    "TruncatedNormal",
    "Multinomial",
    "ParameterizedTruncatedNormal",
    "RandomShuffle",
    "NoOp",
};

constexpr uint32_t kIsStatefulOfOpDef = 17;

struct DeleteBuffer {
  const Library* library;
  void operator()(c::Buffer* buffer) const { library->DeleteBuffer(buffer); }
};

// What TensorFlow does not know might have a state.
bool IsStateful(const Library& library, c::Graph* graph, const std::string& operation) {
  const std::unique_ptr<c::Buffer, DeleteBuffer> buffer(library.NewBuffer(), {&library});
  const Status status(library);
  library.GraphGetOpDef(graph, operation.c_str(), buffer.get(), status.get());
  if (!status.ok()) {
    return true;
  }
  backend::WireReader reader(
      std::string_view(static_cast<const char*>(buffer->data), buffer->length));
  backend::WireRange message = reader.whole();
  while (const auto field = reader.Next(message)) {
    if (field->number == kIsStatefulOfOpDef && field->value != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool MayKeepInputs(const Library& library, c::Graph* graph,
                   const std::set<std::string>& operations) {
  return std::any_of(operations.begin(), operations.end(), [&](const std::string& name) {
    const bool is_known =
        std::find(kKeepNothing.begin(), kKeepNothing.end(), name) != kKeepNothing.end();
    return !is_known && IsStateful(library, graph, name);
  });
}

}  // namespace nereid::tensorflow
