// SPDX-License-Identifier: Apache-2.0
// Distributes the outputs of an execution to the responses of its requests.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "onnxruntime_backend/gathering.h"

namespace nereid::onnxruntime {

// A member of the instance that each execution reuses. Confined to the thread that executes.
class Scattering {
 public:
  // `ports` and `gathering` outlive this.
  Scattering(const Ports& ports, const Gathering& gathering, bool batching)
      : ports_(ports), gathering_(gathering), batching_(batching) {}

  // Returns the shape of a response's output for a model's output of `shape`: for a scalar, that of
  // the configuration.
  static std::span<const int64_t> ResponseShape(const Port& port, std::span<const int64_t> shape) {
    return shape.empty() ? std::span<const int64_t>(port.scalar_shape) : shape;
  }

  // Copies each member's rows of output `o` (a port) from `data` to its response, if it requests
  // them. A member fails if its copy fails.
  void Fixed(backend::Batch& batch, size_t o, std::span<const int64_t> shape, const char* data);
  // Like Fixed, for a tensor of strings. Fails if ONNX Runtime does not return its contents.
  backend::Error Strings(backend::Batch& batch, size_t o, std::span<const int64_t> shape,
                         const OrtValue* value);
  // Like Fixed, for an output whose parts have the shapes of an input; `elements` is the total
  // number.
  void ByInputShapes(backend::Batch& batch, size_t o, uint64_t elements, const char* data);
  // Makes each live member's rows of output `o` the new value of its sequence's state.
  void FixedStates(backend::Batch& batch, size_t o, std::span<const int64_t> shape,
                   const char* data);
  backend::Error StringStates(backend::Batch& batch, size_t o, std::span<const int64_t> shape,
                              const OrtValue* value);

 private:
  // The kind of destination of an output.
  enum class To { kResponse, kState };

  // The destination of a member's rows: an output of its response or a state.
  struct Place {
    char* buffer = nullptr;
    TRITONBACKEND_State* state = nullptr;
  };

  // Checks that an output of `rows` rows can be split: it must have exactly as many as the batch,
  // because otherwise it is unknown which request they belong to.
  backend::Error CheckRows(const Port& port, int64_t rows) const;
  // Checks that an output that is split by the shapes of an input has as many elements as these
  // shapes require.
  backend::Error CheckElements(const Port& port, uint64_t elements);
  // Calls answer(r, index of the first element, elements) for each member, with its shape in
  // rows_shape_.
  template <typename Answer>
  void ForEachMember(backend::Batch& batch, To to, size_t o, std::span<const int64_t> shape,
                     Answer&& answer);
  void DealFixed(backend::Batch& batch, To to, size_t o, std::span<const int64_t> shape,
                 const char* data);
  backend::Error DealStrings(backend::Batch& batch, To to, size_t o, std::span<const int64_t> shape,
                             const OrtValue* value);
  // Returns a destination of `byte_size` bytes with rows_shape_.
  backend::Result<Place> MakePlace(backend::Batch& batch, To to, size_t o, uint32_t r,
                                   uint64_t byte_size);
  static backend::Error Finish(const Place& place);
  // Sets rows_shape_ to the shape of request r's part of the output.
  backend::Error TakeInputShape(const backend::BatchOutput& scatter, uint32_t r);

  const Ports& ports_;
  const Gathering& gathering_;
  const bool batching_;
  std::vector<int64_t> rows_shape_;
  std::vector<char> text_;       // all strings of an output
  std::vector<size_t> offsets_;  // the offset of each string in text_, and the end
};

}  // namespace nereid::onnxruntime
