// SPDX-License-Identifier: Apache-2.0
// The device's side of an instance: its memory, its streams, a context for each optimization
// profile, and its CUDA graphs. Knows tensors by their position in the engine, and nothing of
// requests.
//
//   Begin, Put for each piece of the inputs, Run, ShapeOf and Fetch for each wanted output, Wait
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensorrt_backend/buffers.h"
#include "tensorrt_backend/graph.h"
#include "tensorrt_backend/profile.h"

namespace nereid::tensorrt {

// Where an execution happens and with what. Everything outlives the execution.
struct ExecutionParts {
  Device device;
  std::shared_ptr<const Engine> engine;
  const Settings& settings;
  const backend::Ports& ports;
  const Binding& binding;
  std::string name;  // of the instance, for error texts
};

// Executes an engine, one execution at a time. Confined to the thread that executes, which must
// have made the device the current one.
class Execution {
 public:
  // Allocates what the largest inputs of `profiles` need, and records the graphs.
  static backend::Result<std::unique_ptr<Execution>> Create(ExecutionParts parts,
                                                            std::vector<Profile> profiles);

  // Chooses the profile that fits the inputs best; they are in the order of the engine's tensors.
  // Fails if none takes them.
  backend::Error Begin(std::span<const InputCall> inputs);
  // Copies a piece of an input to its place on the device.
  backend::Error Put(size_t tensor, uint64_t offset, const backend::InputChunk& chunk);
  // Starts the computation.
  backend::Error Run();
  // The shape of an output; final for outputs without data-dependent shapes.
  Dims ShapeOf(size_t tensor) const;
  // Starts to copy an output to memory of the host, valid once Wait has returned.
  backend::Result<std::shared_ptr<char>> Fetch(size_t tensor, uint64_t size);
  // Waits for all that was started.
  backend::Error Wait();
  // Whether the shape of an output is known only after the computation.
  bool is_data_dependent(size_t tensor) const { return tensors_[tensor].growing != nullptr; }

  // Copies a part of an output that was computed to another place on the device. Wait for it again.
  backend::Error CopyOnDevice(size_t tensor, uint64_t offset, uint64_t size, DeviceAddress to);
  // Values of a shape tensor that was computed; valid until the next execution.
  const char* ShapeValues(size_t tensor) const { return tensors_[tensor].host->data(); }
  // Memory that inputs and outputs have on the device, and page-locked in the host's.
  uint64_t device_bytes() const;
  uint64_t pinned_bytes() const;
  // Nanoseconds that the last execution computed, and copied outputs.
  struct Times {
    uint64_t compute_ns = 0;
    uint64_t output_ns = 0;
  };
  Times LastTimes() const;

 private:
  // A tensor's memory.
  struct Tensor {
    uint64_t capacity = 0;
    std::unique_ptr<DeviceMemory> device;
    std::unique_ptr<HostMemory> host;  // values of a shape tensor
    std::unique_ptr<GrowingOutput> growing;
    std::shared_ptr<HostPool> pool;  // of outputs
    // Where pieces of an input lie before they go to the device in one copy.
    std::unique_ptr<HostMemory> staging;
    uint64_t staged_from = 0;
    uint64_t staged_to = 0;
  };
  // A graph and what its context says of the outputs for its shapes.
  struct Recorded {
    GraphShapes shapes;
    std::unique_ptr<Graph> graph;
    std::vector<Dims> outputs;
  };
  // A profile with its own context.
  struct Way {
    Profile profile;
    std::unique_ptr<Context> context;
    std::vector<Dims> current;  // shapes of inputs that the context has
    std::vector<Recorded> graphs;
  };

  explicit Execution(ExecutionParts parts) : parts_(std::move(parts)) {}

  const TensorInfo& info(size_t tensor) const { return parts_.engine->tensors()[tensor]; }
  const Driver& driver() const { return *parts_.device.driver; }
  StreamHandle output_stream() const {
    return output_stream_ != nullptr ? output_stream_->handle() : stream_->handle();
  }

  backend::Error MakeStreams();
  backend::Error MakeWay(Profile profile);
  // Finds out how large the tensors can become with a way.
  backend::Error MeasureInputs(Way& way);
  backend::Error MeasureOutputs(Way& way);
  backend::Error AllocateAll();
  backend::Error SetAddresses(Way& way);
  backend::Error RecordAll(Way& way);
  backend::Error RecordOne(Way& way, const GraphSpec& spec);
  backend::Error SetShape(Way& way, size_t tensor, const Dims& dims);
  backend::Error PutValues(size_t tensor, std::span<const int64_t> values);
  // Starts the copy of what was staged.
  backend::Error Flush(size_t tensor);
  backend::Error Enqueue();

  const ExecutionParts parts_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Stream> output_stream_;  // null: stream_
  std::unique_ptr<Event> inputs_ready_;
  std::unique_ptr<Event> computed_;
  std::unique_ptr<Event> done_;
  std::vector<Tensor> tensors_;
  std::vector<Way> ways_;

  // Of the execution that has begun.
  std::span<const InputCall> inputs_;
  Way* way_ = nullptr;
  const Recorded* recorded_ = nullptr;
};

}  // namespace nereid::tensorrt
