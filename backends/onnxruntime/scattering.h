// SPDX-License-Identifier: Apache-2.0
// Deals the outputs of an execution out to the responses of its requests.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "onnxruntime_backend/gathering.h"

namespace nereid::onnxruntime {

// Meant to live in the instance. Confined to the thread that executes.
class Scattering {
 public:
  // `ports` and `gathering` outlive this.
  Scattering(const Ports& ports, const Gathering& gathering, bool batching)
      : ports_(ports), gathering_(gathering), batching_(batching) {}

  // The shape of a response's output where the model's was `shape`: that of the configuration for a
  // scalar.
  static std::span<const int64_t> ResponseShape(const Port& port, std::span<const int64_t> shape) {
    return shape.empty() ? std::span<const int64_t>(port.scalar_shape) : shape;
  }

  // Copies each member's rows of output `o` (a port) from `data` to its response, if it wants them.
  // A member for which that fails is failed in the batch.
  void Fixed(backend::Batch& batch, size_t o, std::span<const int64_t> shape, const char* data);
  // The same for a tensor of strings. Fails when ONNX Runtime does not give its contents.
  backend::Error Strings(backend::Batch& batch, size_t o, std::span<const int64_t> shape,
                         const OrtValue* value);
  // The same for an output whose parts have the shapes of an input; `elements` are all there are.
  void ByInputShapes(backend::Batch& batch, size_t o, uint64_t elements, const char* data);
  // Makes each live member's rows of output `o` the new value of its sequence's state.
  void FixedStates(backend::Batch& batch, size_t o, std::span<const int64_t> shape,
                   const char* data);
  backend::Error StringStates(backend::Batch& batch, size_t o, std::span<const int64_t> shape,
                              const OrtValue* value);

 private:
  enum class To { kResponse, kState };

  // Where a member's rows go: an output of its response or a state.
  struct Place {
    char* buffer = nullptr;
    TRITONBACKEND_State* state = nullptr;
  };

  // Why an output of `rows` rows cannot be dealt out: it must have as many as the batch, neither
  // fewer nor more, or nobody knows whose they are.
  backend::Error CheckRows(const Port& port, int64_t rows) const;
  // Why an output that is divided by the shapes of an input cannot be dealt out: it must have as
  // many elements as these shapes ask for.
  backend::Error CheckElements(const Port& port, uint64_t elements);
  // Calls answer(r, index of the first element, elements) for each, with its shape in rows_shape_.
  template <typename Answer>
  void ForEachMember(backend::Batch& batch, To to, size_t o, std::span<const int64_t> shape,
                     Answer&& answer);
  void DealFixed(backend::Batch& batch, To to, size_t o, std::span<const int64_t> shape,
                 const char* data);
  backend::Error DealStrings(backend::Batch& batch, To to, size_t o, std::span<const int64_t> shape,
                             const OrtValue* value);
  // `byte_size` bytes for rows_shape_.
  backend::Result<Place> MakePlace(backend::Batch& batch, To to, size_t o, uint32_t r,
                                   uint64_t byte_size);
  static backend::Error Finish(const Place& place);
  // The shape that request r's part of the output has; in rows_shape_.
  backend::Error TakeInputShape(const backend::BatchOutput& scatter, uint32_t r);

  const Ports& ports_;
  const Gathering& gathering_;
  const bool batching_;
  std::vector<int64_t> rows_shape_;
  std::vector<char> text_;       // of all strings of an output
  std::vector<size_t> offsets_;  // of each string in text_, and its end
};

}  // namespace nereid::onnxruntime
