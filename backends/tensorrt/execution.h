// SPDX-License-Identifier: Apache-2.0
// The device's side of an instance: its memory, its streams, a context for each optimization
// profile, and its CUDA graphs. Knows tensors by their position in the engine, and nothing of
// requests.
//
//   Begin, Put for each piece of the inputs, Run, ShapeOf and Fetch for each wanted output, Wait
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend_kit/memory_use.h"
#include "tensorrt_backend/profile_context.h"
#include "tensorrt_backend/tensor_memory.h"

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
  backend::Error Put(size_t tensor, uint64_t offset, const backend::InputChunk& chunk) {
    return tensors_[tensor].Put(offset, chunk, stream_->handle());
  }
  // Starts the computation.
  backend::Error Run();
  // The shape of an output; final for outputs without data-dependent shapes.
  Dims ShapeOf(size_t tensor) const;
  // Starts to copy an output to memory of the host, valid once Wait has returned.
  backend::Result<std::shared_ptr<char>> Fetch(size_t tensor, uint64_t size) {
    return tensors_[tensor].Fetch(size, output_stream());
  }
  // Waits for all that was started.
  backend::Error Wait();
  // Whether the shape of an output is known only after the computation.
  bool is_data_dependent(size_t tensor) const { return tensors_[tensor].growing() != nullptr; }

  // Copies a part of an output that was computed to another place on the device. Wait for it again.
  backend::Error CopyOnDevice(size_t tensor, uint64_t offset, uint64_t size,
                              DeviceAddress to) const {
    return tensors_[tensor].CopyTo(to, offset, size, output_stream());
  }
  // Values of a shape tensor that was computed; valid until the next execution.
  const char* ShapeValues(size_t tensor) const { return tensors_[tensor].values(); }
  // Memory that inputs and outputs have on the device, and page-locked in the host's.
  std::array<backend::MemoryUse, 2> memory_uses() const;
  // Nanoseconds that the last execution computed, and copied outputs.
  struct Times {
    uint64_t compute_ns = 0;
    uint64_t output_ns = 0;
  };
  Times LastTimes() const;

 private:
  explicit Execution(ExecutionParts parts) : parts_(std::move(parts)) {}

  const TensorInfo& info(size_t tensor) const { return parts_.engine->tensors()[tensor]; }
  const Driver& driver() const { return *parts_.device.driver; }
  StreamHandle output_stream() const {
    return output_stream_ != nullptr ? output_stream_->handle() : stream_->handle();
  }

  backend::Error MakeStreams();
  backend::Error MakeContexts(std::vector<Profile> profiles);
  // Finds out how large the tensors can become with a profile.
  backend::Error MeasureInputs(ProfileContext& context);
  backend::Error MeasureOutputs(ProfileContext& context);
  backend::Error SetAddresses(ProfileContext& context);
  void RecordAll(ProfileContext& context);
  backend::Error RecordOne(ProfileContext& context, const GraphSpec& spec);

  const ExecutionParts parts_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Stream> output_stream_;  // null: stream_
  std::unique_ptr<Event> inputs_ready_;
  std::unique_ptr<Event> computed_;
  std::unique_ptr<Event> done_;
  std::vector<TensorMemory> tensors_;  // in the order of the engine's tensors
  std::vector<ProfileContext> contexts_;

  // Of the execution that has begun.
  std::span<const InputCall> inputs_;
  ProfileContext* context_ = nullptr;
  const RecordedGraph* recorded_ = nullptr;  // null: without a graph
};

}  // namespace nereid::tensorrt
