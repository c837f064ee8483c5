// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/graph.h"

#include <algorithm>

namespace nereid::tensorrt {

using backend::Error;
using backend::InputPort;
using backend::Ports;
using backend::Result;
using backend::StrCat;

namespace {

// Of CUstreamCaptureMode: what other threads do with the device is not recorded and does not spoil
// the recording.
constexpr int kThisThreadOnly = 1;

Result<Dims> MakeDims(const std::vector<int64_t>& shape, int64_t batch, const std::string& input) {
  Dims dims;
  const size_t count = shape.size() + (batch > 0 ? 1 : 0);
  if (count > Dims::kMaxCount) {
    return Error::InvalidArgument(
        StrCat("graph spec has too many dimensions for input '", input, "'"));
  }
  dims.count = static_cast<int32_t>(count);
  std::copy(shape.begin(), shape.end(), dims.sizes.begin() + (batch > 0 ? 1 : 0));
  if (batch > 0) {
    dims.sizes[0] = batch;
  }
  return dims;
}

}  // namespace

Error Graph::Begin(const Device& device, StreamHandle stream) {
  return device.driver->Check(device.driver->functions().begin_capture(stream, kThisThreadOnly),
                              "cuStreamBeginCapture");
}

Result<std::unique_ptr<Graph>> Graph::End(const Device& device, StreamHandle stream,
                                          bool is_enqueued) {
  const DriverFunctions& f = device.driver->functions();
  GraphHandle graph = nullptr;
  // A recording is always ended, because the stream is unusable until then.
  Error error = device.driver->Check(f.end_capture(stream, &graph), "cuStreamEndCapture");
  GraphHandle executable = nullptr;
  if (error.ok() && is_enqueued) {
    error =
        device.driver->Check(f.instantiate(&executable, graph, 0), "cuGraphInstantiateWithFlags");
  }
  if (graph != nullptr) {
    f.destroy_graph(graph);
  }
  if (!error.ok()) {
    return error;
  }
  if (!is_enqueued) {
    return Error::Internal("TensorRT could not enqueue the execution");
  }
  return std::unique_ptr<Graph>(new Graph(device, executable));
}

Graph::~Graph() {
  const OnDevice scope(*device_.driver, device_.id);
  device_.driver->functions().destroy_executable(executable_);
}

Error Graph::Launch(StreamHandle stream) const {
  return device_.driver->Check(device_.driver->functions().launch(executable_, stream),
                               "cuGraphLaunch");
}

Result<GraphShapes> GraphShapes::FromSpec(const GraphSpec& spec,
                                          const std::vector<TensorInfo>& tensors,
                                          const Ports& ports, const Binding& binding,
                                          const Profile& profile) {
  GraphShapes shapes;
  shapes.inputs.resize(tensors.size());
  shapes.lower.resize(tensors.size());
  shapes.allows_smaller = spec.has_lower_bound;
  for (size_t i = 0; i < ports.inputs.size(); ++i) {
    const InputPort& port = ports.inputs[i];
    const size_t at = binding.inputs[i];
    if (spec.shapes.empty()) {
      Dims dims = profile.range(at).opt;
      if (spec.batch_size != 0 && dims.count > 0) {
        dims.sizes[0] = spec.batch_size;
      }
      shapes.inputs[at] = shapes.lower[at] = dims;
      if (spec.batch_size != 0 && dims.count > 0) {
        shapes.lower[at].sizes[0] = spec.lower_batch_size;
      }
      continue;
    }
    const auto found = spec.shapes.find(port.name);
    if (found == spec.shapes.end()) {
      return Error::InvalidArgument(
          StrCat("trt failed to set input shape for unknown input '", port.name, "'"));
    }
    // What is made of a ragged batch is listed with its whole shape.
    const bool is_whole = port.is_ragged || port.origin == InputPort::Origin::kBatchInput;
    // With less in them they would describe rows that are not there.
    shapes.allows_smaller = shapes.allows_smaller && !is_whole;
    NEREID_KIT_ASSIGN(shapes.inputs[at],
                      MakeDims(found->second, is_whole ? 0 : spec.batch_size, port.name));
    NEREID_KIT_ASSIGN(shapes.lower[at], MakeDims(spec.lower_shapes.find(port.name)->second,
                                                 is_whole ? 0 : spec.lower_batch_size, port.name));
  }
  return shapes;
}

bool GraphShapes::IsExactly(std::span<const InputCall> calls) const {
  for (size_t t = 0; t < inputs.size(); ++t) {
    const auto shape = inputs[t].span();
    if (!std::equal(shape.begin(), shape.end(), calls[t].shape.begin(), calls[t].shape.end())) {
      return false;
    }
  }
  return true;
}

bool GraphShapes::Holds(std::span<const InputCall> calls) const {
  for (size_t t = 0; allows_smaller && t < inputs.size(); ++t) {
    const auto shape = calls[t].shape;
    const auto most = inputs[t].span();
    const auto least = lower[t].span();
    if (shape.size() != most.size() || least.size() != most.size()) {
      return false;
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      // Only with fewer rows do the elements lie where the graph looks for them.
      if (shape[d] < least[d] || shape[d] > most[d] || (d > 0 && shape[d] != most[d])) {
        return false;
      }
    }
  }
  return allows_smaller;
}

}  // namespace nereid::tensorrt
