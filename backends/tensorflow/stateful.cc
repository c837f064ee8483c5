// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/stateful.h"

#include <algorithm>
#include <array>
#include <memory>

#include "backend_kit/wire_reader.h"
#include "tensorflow_backend/status.h"

namespace nereid::tensorflow {

namespace {

// Operations that have a state or take a reference to one, but change nothing that tells one
// request from another, and never keep a tensor that they are given beyond the run.
constexpr std::array kChangeNothing = {
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
    "RefEnter",
    "RefExit",
    "RefIdentity",
    "RefMerge",
    "RefNextIteration",
    "RefSelect",
    "RefSwitch",
    "NoOp",
};

// Fields of TensorFlow's message OpDef, and of the message of its inputs.
constexpr uint32_t kInput = 2;
constexpr uint32_t kIsStateful = 17;
constexpr uint32_t kIsReference = 16;

struct DeleteBuffer {
  const Library* library;
  void operator()(c::Buffer* buffer) const { library->DeleteBuffer(buffer); }
};

bool HasFlag(backend::WireReader& reader, backend::WireRange message, uint32_t flag) {
  while (const auto field = reader.Next(message)) {
    if (field->number == flag && field->value != 0) {
      return true;
    }
  }
  return false;
}

// Whether the operation has a state, or takes a reference to one, as Assign and its like do, which
// do not call themselves stateful.
bool DealsWithState(backend::WireReader& reader) {
  if (HasFlag(reader, reader.whole(), kIsStateful)) {
    return true;
  }
  backend::WireRange message = reader.whole();
  while (const auto field = reader.Next(message)) {
    if (field->number == kInput && field->is_bytes && HasFlag(reader, field->range, kIsReference)) {
      return true;
    }
  }
  return false;
}

// What TensorFlow does not know might deal with a state.
bool DealsWithState(const Library& library, c::Graph* graph, const std::string& operation) {
  const std::unique_ptr<c::Buffer, DeleteBuffer> buffer(library.NewBuffer(), {&library});
  const Status status(library);
  library.GraphGetOpDef(graph, operation.c_str(), buffer.get(), status.get());
  if (!status.ok()) {
    return true;
  }
  backend::WireReader reader(
      std::string_view(static_cast<const char*>(buffer->data), buffer->length));
  return DealsWithState(reader);
}

}  // namespace

bool MayChangeState(const Library& library, const std::set<std::string>& operations) {
  // Any graph knows all operations.
  const std::unique_ptr<c::Graph, DeleteGraph> graph(library.NewGraph(), {&library});
  return std::any_of(operations.begin(), operations.end(), [&](const std::string& name) {
    const bool is_known =
        std::find(kChangeNothing.begin(), kChangeNothing.end(), name) != kChangeNothing.end();
    return !is_known && DealsWithState(library, graph.get(), name);
  });
}

}  // namespace nereid::tensorflow
