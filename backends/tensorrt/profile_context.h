// SPDX-License-Identifier: Apache-2.0
// An optimization profile with a context of its own, and the CUDA graphs recorded with it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensorrt_backend/context.h"
#include "tensorrt_backend/graph.h"
#include "tensorrt_backend/profile.h"

namespace nereid::tensorrt {

// A graph and what its context says of the outputs for its shapes. Immutable.
struct RecordedGraph {
  GraphShapes shapes;
  std::unique_ptr<Graph> graph;
  std::vector<Dims> outputs;
};

// Confined to the thread that executes, which must have made the device the current one.
class ProfileContext {
 public:
  // Whose context it is. Everything outlives it.
  struct Owner {
    const Device& device;
    const Engine& engine;
    const std::string& name;  // of the instance, for error texts
  };

  // Makes a context that has the profile.
  static backend::Result<ProfileContext> Create(const Owner& owner, Profile profile,
                                                StreamHandle stream);

  const Profile& profile() const { return profile_; }
  Context& context() const { return *context_; }

  // Sets the shape of an input.
  backend::Error SetShape(size_t tensor, const Dims& dims);
  // Fails if a shape, or the values of a shape tensor, are missing.
  backend::Error InferShapes();
  // Starts an execution with these inputs, whose data is where the addresses say.
  backend::Error Enqueue(std::span<const InputCall> inputs, StreamHandle stream);

  // Records an execution with these shapes.
  backend::Error Record(GraphShapes shapes, StreamHandle stream);
  // Returns a graph for these inputs, preferably one of exactly their shapes; null if there is
  // none.
  const RecordedGraph* FindGraph(std::span<const InputCall> inputs) const;

 private:
  ProfileContext(const Owner& owner, Profile profile, std::unique_ptr<Context> context);

  const TensorInfo& info(size_t tensor) const { return owner_.engine.tensors()[tensor]; }
  backend::Error Wait(StreamHandle stream) const;

  Owner owner_;
  Profile profile_;
  std::unique_ptr<Context> context_;
  std::vector<Dims> current_;  // shapes of inputs that the context has
  std::vector<RecordedGraph> graphs_;
};

}  // namespace nereid::tensorrt
