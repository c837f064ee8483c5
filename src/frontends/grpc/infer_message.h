// SPDX-License-Identifier: Apache-2.0
// A ModelInferRequest as views of the received message, with nothing converted. The contents are
// those that protobuf's parser would return: the last of repeated singular fields, merged
// sub-messages, maps with one entry per key.
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

// The repeated fields of InferTensorContents by their field numbers.
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

// A part of one of InferMessage's shared lists.
struct WireRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// An input tensor, as views of the message.
struct WireInput {
  std::string_view name;
  std::string_view datatype;
  tensor::Shape shape;
  WireRange parameters;  // in tensor_parameters
  bool has_contents = false;
  WireRange contents;  // in contents_bodies, to be read one after another
  std::array<uint64_t, kContentsKinds> element_counts{};
  uint64_t bytes_contents_size = 0;  // total size of bytes_contents
};

// A requested output, as views of the message.
struct WireOutput {
  std::string_view name;
  WireRange parameters;
};

// The limit for each of a message's inputs, outputs, raw contents and pieces of other contents: far
// more than models have, and few enough that they take no more memory than the largest tensors.
inline constexpr size_t kMaxMessageItems = size_t{64} << 10;

// Pooled with its owner: Parse reuses the memory of the previous message, unless that was unusually
// large. Thread-compatible.
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
  bool has_too_many = false;  // items: why Parse failed

  // Returns false if `bytes` is not a ModelInferRequest. The views live as long as the bytes.
  bool Parse(std::string_view bytes);
  void Clear();
  // The status for a message that Parse refused: that of grpc++ for a malformed message, or the
  // limit that it exceeds.
  http2::GrpcStatus refusal_status() const;
  std::string_view refusal() const;

  // Returns null if `range` has no such parameter.
  const WireParameter* FindTensorParameter(WireRange range, std::string_view name) const;
};

// Returns whether parsing and its consequences would process more than 64 KiB of the message: all
// but raw tensors, which stay where they are.
bool IsHeavyToParse(std::string_view bytes);

// Writes the elements of `kind` in a contents message (or several, called one after another) to
// `out`, each narrowed to `element_size` bytes, bytes elements with their length before them.
// Returns the end of what it wrote. REQUIRES: the message is parsed, and `out` has room for the
// number of elements that Parse counted.
std::byte* WriteContents(std::string_view contents, ContentsKind kind, size_t element_size,
                         std::byte* out);

}  // namespace nereid::grpc
