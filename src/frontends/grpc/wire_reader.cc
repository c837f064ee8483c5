// SPDX-License-Identifier: Apache-2.0
#include "grpc/wire_reader.h"

#include "base/utf8.h"

namespace nereid::grpc {
namespace {

constexpr int kMaxGroupDepth = 100;  // protobuf's own limit

}  // namespace

std::string_view WireReader::ReadText() {
  const std::string_view text = ReadBytes();
  if (!base::IsValidUtf8(text)) Fail();
  return failed_ ? std::string_view() : text;
}

uint64_t WireReader::ReadLongVarint(int max_bytes) {
  uint64_t value = 0;
  for (int i = 0; i < max_bytes; ++i) {
    if (next_ == end_) break;
    const auto byte = static_cast<uint8_t>(*next_++);
    value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte < 0x80) return value;
  }
  Fail();
  return 0;
}

void WireReader::SkipNested(WireTag tag, int depth) {
  switch (tag.type) {
    case WireType::kVarint:
      ReadVarint();
      return;
    case WireType::kFixed64:
      ReadFixed64();
      return;
    case WireType::kFixed32:
      ReadFixed32();
      return;
    case WireType::kBytes:
      ReadBytes();
      return;
    case WireType::kEndGroup:
      Fail();
      return;
    case WireType::kStartGroup:
      break;
  }
  if (depth >= kMaxGroupDepth) return Fail();
  WireTag inner;
  while (Next(&inner)) {
    if (inner.type == WireType::kEndGroup) {
      if (inner.field != tag.field) Fail();
      return;
    }
    SkipNested(inner, depth + 1);
  }
  Fail();  // the group has no end
}

}  // namespace nereid::grpc
