// SPDX-License-Identifier: Apache-2.0
#include "grpc/infer_message.h"

#include <bit>
#include <cstring>

#include "base/empty_list.h"
#include "grpc/wire_reader.h"

namespace nereid::grpc {
namespace {

// Counts the elements of a packed field; fails the reader if it is malformed.
uint64_t CountPackedVarints(std::string_view packed, WireReader& reader) {
  uint64_t count = 0;
  int length = 0;
  for (const char c : packed) {
    if (++length > 10) {
      reader.Fail();
      return 0;
    }
    if (static_cast<uint8_t>(c) < 0x80) {
      ++count;
      length = 0;
    }
  }
  if (length != 0) reader.Fail();
  return count;
}

// Maps are searched one entry after another, so their size is limited (that of a request by
// common::kMaxParameters), far above what clients send.
constexpr size_t kMaxTensorParameters = 128;

// Returns the wire type of elements that are not packed.
WireType ElementWireType(uint32_t field) {
  switch (static_cast<ContentsKind>(field)) {
    case ContentsKind::kFp32:
      return WireType::kFixed32;
    case ContentsKind::kFp64:
      return WireType::kFixed64;
    case ContentsKind::kBytes:
      return WireType::kBytes;
    default:
      return WireType::kVarint;
  }
}

// Checks a contents message and counts its elements.
void CountContents(std::string_view body, WireInput& input, WireReader& outer) {
  WireReader reader(body);
  WireTag tag;
  while (reader.Next(&tag)) {
    const bool is_known = tag.field >= 1 && tag.field < kContentsKinds;
    if (!is_known || (tag.type != ElementWireType(tag.field) && tag.type != WireType::kBytes)) {
      reader.Skip(tag);
      continue;
    }
    uint64_t& count = input.element_counts[tag.field];
    if (tag.type != WireType::kBytes) {
      reader.Skip(tag);
      ++count;
      continue;
    }
    const std::string_view bytes = reader.ReadBytes();
    switch (ElementWireType(tag.field)) {
      case WireType::kBytes:
        input.bytes_contents_size += bytes.size();
        ++count;
        break;
      case WireType::kFixed32:
        if (bytes.size() % 4 != 0) reader.Fail();
        count += bytes.size() / 4;
        break;
      case WireType::kFixed64:
        if (bytes.size() % 8 != 0) reader.Fail();
        count += bytes.size() / 8;
        break;
      default:
        count += CountPackedVarints(bytes, reader);
    }
  }
  if (reader.failed()) outer.Fail();
}

void ParseParameterValue(std::string_view body, WireValue& value, WireReader& outer) {
  WireReader reader(body);
  WireTag tag;
  while (reader.Next(&tag)) {
    if (tag.Is(1, WireType::kVarint)) {
      value = reader.ReadVarint() != 0;
    } else if (tag.Is(2, WireType::kVarint)) {
      value = static_cast<int64_t>(reader.ReadVarint());
    } else if (tag.Is(3, WireType::kBytes)) {
      value = reader.ReadText();
    } else if (tag.Is(4, WireType::kFixed64)) {
      value = std::bit_cast<double>(reader.ReadFixed64());
    } else if (tag.Is(5, WireType::kVarint)) {
      value = reader.ReadVarint();
    } else {
      reader.Skip(tag);
    }
  }
  if (reader.failed()) outer.Fail();
}

// Parses one entry of map<string, InferParameter>, and adds it to the entries from `first` on or
// replaces the one with the same key.
void ParseParameter(std::string_view body, std::vector<WireParameter>& all, size_t first,
                    size_t max_count, WireReader& outer) {
  WireReader reader(body);
  WireParameter parameter;
  WireTag tag;
  while (reader.Next(&tag)) {
    if (tag.Is(1, WireType::kBytes)) {
      parameter.name = reader.ReadText();
    } else if (tag.Is(2, WireType::kBytes)) {
      ParseParameterValue(reader.ReadBytes(), parameter.value, reader);
    } else {
      reader.Skip(tag);
    }
  }
  if (reader.failed() || all.size() - first >= max_count) return outer.Fail();
  for (size_t i = first; i < all.size(); ++i) {
    if (all[i].name == parameter.name) {
      all[i].value = parameter.value;
      return;
    }
  }
  all.push_back(parameter);
}

void ParseShape(std::string_view packed, tensor::Shape& shape, WireReader& outer) {
  WireReader reader(packed);
  while (!reader.at_end()) shape.PushBack(static_cast<int64_t>(reader.ReadVarint()));
  if (reader.failed()) outer.Fail();
}

// Returns whether the list of `message` has room for one more item; otherwise the message is
// refused.
template <typename Item>
bool HasRoom(const std::vector<Item>& items, InferMessage& message, WireReader& reader) {
  if (items.size() < kMaxMessageItems) [[likely]]
    return true;
  message.has_too_many = true;
  reader.Fail();
  return false;
}

WireRange RangeSince(size_t first, size_t end) {
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(end - first)};
}

void ParseInput(std::string_view body, InferMessage& message, WireReader& outer) {
  if (!HasRoom(message.inputs, message, outer)) return;
  WireReader reader(body);
  WireInput& input = message.inputs.emplace_back();
  const size_t first_parameter = message.tensor_parameters.size();
  const size_t first_contents = message.contents_bodies.size();
  WireTag tag;
  while (reader.Next(&tag)) {
    if (tag.Is(1, WireType::kBytes)) {
      input.name = reader.ReadText();
    } else if (tag.Is(2, WireType::kBytes)) {
      input.datatype = reader.ReadText();
    } else if (tag.Is(3, WireType::kVarint)) {
      input.shape.PushBack(static_cast<int64_t>(reader.ReadVarint()));
    } else if (tag.Is(3, WireType::kBytes)) {
      ParseShape(reader.ReadBytes(), input.shape, reader);
    } else if (tag.Is(4, WireType::kBytes)) {
      ParseParameter(reader.ReadBytes(), message.tensor_parameters, first_parameter,
                     kMaxTensorParameters, reader);
    } else if (tag.Is(5, WireType::kBytes)) {
      input.has_contents = true;
      if (!HasRoom(message.contents_bodies, message, reader)) break;
      const std::string_view contents = reader.ReadBytes();
      CountContents(contents, input, reader);
      message.contents_bodies.push_back(contents);
    } else {
      reader.Skip(tag);
    }
  }
  input.parameters = RangeSince(first_parameter, message.tensor_parameters.size());
  input.contents = RangeSince(first_contents, message.contents_bodies.size());
  if (reader.failed()) outer.Fail();
}

void ParseOutput(std::string_view body, InferMessage& message, WireReader& outer) {
  if (!HasRoom(message.outputs, message, outer)) return;
  WireReader reader(body);
  WireOutput& output = message.outputs.emplace_back();
  const size_t first_parameter = message.tensor_parameters.size();
  WireTag tag;
  while (reader.Next(&tag)) {
    if (tag.Is(1, WireType::kBytes)) {
      output.name = reader.ReadText();
    } else if (tag.Is(2, WireType::kBytes)) {
      ParseParameter(reader.ReadBytes(), message.tensor_parameters, first_parameter,
                     kMaxTensorParameters, reader);
    } else {
      reader.Skip(tag);
    }
  }
  output.parameters = RangeSince(first_parameter, message.tensor_parameters.size());
  if (reader.failed()) outer.Fail();
}

template <typename T>
std::byte* Put(std::byte* out, T value, size_t size) {
  std::memcpy(out, &value, size);
  return out + size;
}

// bool is any non-zero number; integers are truncated to their low bytes, as in protobuf and
// Triton.
std::byte* PutVarint(std::byte* out, ContentsKind kind, uint64_t value, size_t element_size) {
  if (kind == ContentsKind::kBool) value = value != 0;
  return Put(out, value, element_size);
}

std::byte* PutPacked(std::string_view bytes, ContentsKind kind, size_t element_size,
                     std::byte* out) {
  switch (kind) {
    case ContentsKind::kBytes:
      out = Put(out, static_cast<uint32_t>(bytes.size()), sizeof(uint32_t));
      [[fallthrough]];
    case ContentsKind::kFp32:
    case ContentsKind::kFp64:
      if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
      return out + bytes.size();
    default:
      break;
  }
  WireReader reader(bytes);
  while (!reader.at_end()) out = PutVarint(out, kind, reader.ReadVarint(), element_size);
  return out;
}

}  // namespace

std::byte* WriteContents(std::string_view contents, ContentsKind kind, size_t element_size,
                         std::byte* out) {
  WireReader reader(contents);
  const auto field = static_cast<uint32_t>(kind);
  const WireType element_type = ElementWireType(field);
  WireTag tag;
  while (reader.Next(&tag)) {
    if (tag.field != field || (tag.type != element_type && tag.type != WireType::kBytes)) {
      reader.Skip(tag);
    } else if (tag.type == WireType::kBytes) {
      out = PutPacked(reader.ReadBytes(), kind, element_size, out);
    } else if (tag.type == WireType::kFixed32) {
      out = Put(out, reader.ReadFixed32(), element_size);
    } else if (tag.type == WireType::kFixed64) {
      out = Put(out, reader.ReadFixed64(), element_size);
    } else {
      out = PutVarint(out, kind, reader.ReadVarint(), element_size);
    }
  }
  return out;
}

bool IsHeavyToParse(std::string_view bytes) {
  constexpr size_t kMaxWalked = size_t{64} << 10;
  constexpr uint32_t kRawContents = 7;
  if (bytes.size() <= kMaxWalked) return false;
  // Even skipping so many fields takes time.
  constexpr int kMaxFields = 4096;
  size_t walked = 0;
  int fields = 0;
  WireReader reader(bytes);
  WireTag tag;
  while (reader.Next(&tag)) {
    if (++fields > kMaxFields) return true;
    if (tag.type != WireType::kBytes) {
      reader.Skip(tag);
      continue;
    }
    const size_t size = reader.ReadBytes().size();
    if (tag.field != kRawContents) walked += size;
    if (walked > kMaxWalked) return true;
  }
  return false;
}

void InferMessage::Clear() {
  model_name = {};
  model_version = {};
  id = {};
  base::EmptyList(parameters);
  base::EmptyList(inputs);
  base::EmptyList(outputs);
  base::EmptyList(raw_input_contents);
  base::EmptyList(tensor_parameters);
  base::EmptyList(contents_bodies);
  has_too_many = false;
}

bool InferMessage::Parse(std::string_view bytes) {
  Clear();
  WireReader reader(bytes);
  WireTag tag;
  while (reader.Next(&tag)) {
    if (tag.type != WireType::kBytes) {
      reader.Skip(tag);
      continue;
    }
    switch (tag.field) {
      case 1:
        model_name = reader.ReadText();
        break;
      case 2:
        model_version = reader.ReadText();
        break;
      case 3:
        id = reader.ReadText();
        break;
      case 4:
        ParseParameter(reader.ReadBytes(), parameters, 0, common::kMaxParameters, reader);
        break;
      case 5:
        ParseInput(reader.ReadBytes(), *this, reader);
        break;
      case 6:
        ParseOutput(reader.ReadBytes(), *this, reader);
        break;
      case 7:
        if (HasRoom(raw_input_contents, *this, reader)) {
          raw_input_contents.push_back(reader.ReadBytes());
        }
        break;
      default:
        reader.Skip(tag);
    }
  }
  return !reader.failed();
}

http2::GrpcStatus InferMessage::refusal_status() const {
  return has_too_many ? http2::GrpcStatus::kInvalidArgument : http2::GrpcStatus::kInternal;
}

std::string_view InferMessage::refusal() const {
  return has_too_many ? "Unable to parse request: it has more than 65536 inputs, outputs or pieces "
                        "of contents"
                      : "Unable to parse request";
}

const WireParameter* InferMessage::FindTensorParameter(WireRange range,
                                                       std::string_view name) const {
  for (uint32_t i = 0; i < range.count; ++i) {
    const WireParameter& parameter = tensor_parameters[range.first + i];
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

}  // namespace nereid::grpc
