// SPDX-License-Identifier: Apache-2.0
// A ModelInferRequest as it came over the wire: views into the message, nothing converted. Holds
// what protobuf's parser would hold: the last of repeated singular fields, merged sub-messages,
// maps with one entry per key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/infer_request_builder.h"
#include "http2/grpc_server.h"
#include "tensor/shape.h"

namespace nereid::grpc {

// monostate: an InferParameter with no choice set.
using WireValue = common::ParameterValue;

// A parameter, as views of the message.
struct WireParameter {
  std::string_view name;
  WireValue value;
};

// The repeated fields of InferTensorContents by their numbers.
enum class ContentsKind : uint8_t {
  kBool = 1,
  kInt = 2,
  kInt64 = 3,
  kUint = 4,
  kUint64 = 5,
  kFp32 = 6,
  kFp64 = 7,
  kBytes = 8,
};
inline constexpr size_t kContentsKinds = 9;  // indices are field numbers

// Part of one of InferMessage's shared lists.
struct WireRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// An input tensor, as views of the message.
struct WireInput {
  std::string_view name;
  std::string_view datatype;
  tensor::Shape shape;
  WireRange parameters;  // of tensor_parameters
  bool has_contents = false;
  WireRange contents;  // of contents_bodies, to be read one after another
  std::array<uint64_t, kContentsKinds> element_counts{};
  uint64_t bytes_contents_size = 0;  // of all bytes_contents together
};

// A requested output, as views of the message.
struct WireOutput {
  std::string_view name;
  WireRange parameters;
};

// Of inputs, of outputs, of raw contents, and of pieces of other contents that one message may
// have: far more than models have, and few enough that they cost no more memory than the largest
// tensors.
inline constexpr size_t kMaxMessageItems = size_t{64} << 10;

// Pooled with its owner: Parse reuses what the previous message grew, unless that was unusually
// much. Thread-compatible.
struct InferMessage {
  std::string_view model_name;
  std::string_view model_version;
  std::string_view id;
  std::vector<WireParameter> parameters;
  std::vector<WireInput> inputs;
  std::vector<WireOutput> outputs;
  std::vector<std::string_view> raw_input_contents;
  std::vector<WireParameter> tensor_parameters;
  std::vector<std::string_view> contents_bodies;
  bool has_too_many = false;  // items: why Parse gave up

  // False when `bytes` is not a ModelInferRequest. The views live as long as the bytes.
  bool Parse(std::string_view bytes);
  void Clear();
  // Of a message that Parse refused: what grpc++ says of what is no such message, or which limit it
  // broke.
  http2::GrpcStatus refusal_status() const;
  std::string_view refusal() const;

  // Null when `range` names no such parameter.
  const WireParameter* FindTensorParameter(WireRange range, std::string_view name) const;
};

// Whether Parse, and what follows it, would walk through more than 64 KiB of the message: all but
// raw tensors, which stay where they are.
bool IsHeavyToParse(std::string_view bytes);

// Writes the elements of `kind` in an already parsed contents message (or several, called one after
// another) to `out`, each narrowed to `element_size` bytes, bytes elements with their length before
// them; returns where the next would go. `out` has room for what the counts of the parse promise.
std::byte* WriteContents(std::string_view contents, ContentsKind kind, size_t element_size,
                         std::byte* out);

}  // namespace nereid::grpc
