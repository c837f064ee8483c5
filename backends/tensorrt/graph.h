// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: executions for certain shapes, recorded when an instance is made and replayed with
// one call instead of one for each kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensorrt_backend/profile.h"
#include "tensorrt_backend/settings.h"

namespace nereid::tensorrt {

// A recorded execution. Thread-compatible.
class Graph {
 public:
  // Records what `enqueue`, a bool() callable, puts into the stream. REQUIRES: the device is the
  // current one.
  template <typename Enqueue>
  static backend::Result<std::unique_ptr<Graph>> Record(const Device& device, StreamHandle stream,
                                                        Enqueue&& enqueue) {
    NEREID_KIT_TRY(Begin(device, stream));
    const bool is_enqueued = enqueue();
    return End(device, stream, is_enqueued);
  }
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  backend::Error Launch(StreamHandle stream) const;

 private:
  Graph(const Device& device, GraphHandle executable) : device_(device), executable_(executable) {}

  static backend::Error Begin(const Device& device, StreamHandle stream);
  static backend::Result<std::unique_ptr<Graph>> End(const Device& device, StreamHandle stream,
                                                     bool is_enqueued);

  const Device device_;
  const GraphHandle executable_;
};

// The shapes of the inputs for which a graph is recorded. Immutable.
struct GraphShapes {
  std::vector<Dims> inputs;  // of each tensor of the engine; of outputs empty
  std::vector<Dims> lower;   // the smallest that may use the graph
  bool allows_smaller = false;

  // The shapes of one entry of graph_spec. Fails if it does not fit the model.
  static backend::Result<GraphShapes> FromSpec(const GraphSpec& spec,
                                               const std::vector<TensorInfo>& tensors,
                                               const backend::Ports& ports, const Binding& binding,
                                               const Profile& profile);
  bool IsExactly(std::span<const InputCall> calls) const;
  // Whether inputs of these shapes fit into the graph's.
  bool Holds(std::span<const InputCall> calls) const;
};

}  // namespace nereid::tensorrt
