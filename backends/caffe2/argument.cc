// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/argument.h"

#include <bit>

#include "caffe2_backend/wire.h"

namespace nereid::caffe2 {

namespace {

using Kind = WireField::Kind;

// The field numbers of Caffe2's message Argument.
namespace argument_field {
constexpr uint32_t kName = 1, kReal = 2, kInteger = 3, kText = 4, kReals = 5, kIntegers = 6,
                   kTexts = 7;
}

// Calls `add` for each number of a repeated field, which may be packed. Returns false if a packed
// field is damaged.
template <typename Add>
bool ForEachNumber(const WireField& field, Kind kind, Add&& add) {
  if (field.kind == kind) {
    add(field.value);
    return true;
  }
  if (field.kind != Kind::kBytes) {
    return false;
  }
  WireReader packed(field.bytes);
  while (!packed.is_at_end()) {
    uint64_t value = 0;
    if (!(kind == Kind::kFixed32 ? packed.Fixed32(value) : packed.Varint(value))) {
      return false;
    }
    add(value);
  }
  return true;
}

// Checks the field of a list and counts nothing: it is read when it is asked for.
bool IsSoundList(const WireField& field, Kind kind) {
  return field.kind == kind || ForEachNumber(field, kind, [](uint64_t) {});
}

}  // namespace

std::optional<Argument> Argument::Parse(std::string_view message) {
  Argument parsed;
  parsed.message_ = message;
  WireReader reader(message);
  WireField field;
  while (reader.Next(field)) {
    bool is_sound = true;
    switch (field.number) {
      case argument_field::kName:
        is_sound = field.kind == Kind::kBytes;
        parsed.name_ = field.bytes;
        break;
      case argument_field::kReal:
        is_sound = field.kind == Kind::kFixed32;
        parsed.real_ = field.AsFloat();
        break;
      case argument_field::kInteger:
        is_sound = field.kind == Kind::kVarint;
        parsed.integer_ = static_cast<int64_t>(field.value);
        break;
      case argument_field::kText:
        is_sound = field.kind == Kind::kBytes;
        parsed.text_ = field.bytes;
        break;
      case argument_field::kReals:
        is_sound = IsSoundList(field, Kind::kFixed32);
        break;
      case argument_field::kIntegers:
        is_sound = IsSoundList(field, Kind::kVarint);
        break;
      case argument_field::kTexts:
        is_sound = field.kind == Kind::kBytes;
        break;
      default:
        break;
    }
    if (!is_sound) {
      return std::nullopt;
    }
  }
  if (reader.is_malformed()) {
    return std::nullopt;
  }
  return parsed;
}

std::vector<int64_t> Argument::Integers() const {
  std::vector<int64_t> values;
  WireReader reader(message_);
  WireField field;
  while (reader.Next(field)) {
    if (field.number == argument_field::kIntegers) {
      ForEachNumber(field, Kind::kVarint,
                    [&values](uint64_t value) { values.push_back(static_cast<int64_t>(value)); });
    }
  }
  return values;
}

std::vector<float> Argument::Reals() const {
  std::vector<float> values;
  WireReader reader(message_);
  WireField field;
  while (reader.Next(field)) {
    if (field.number == argument_field::kReals) {
      ForEachNumber(field, Kind::kFixed32, [&values](uint64_t value) {
        values.push_back(std::bit_cast<float>(static_cast<uint32_t>(value)));
      });
    }
  }
  return values;
}

std::vector<std::string_view> Argument::Texts() const {
  std::vector<std::string_view> values;
  WireReader reader(message_);
  WireField field;
  while (reader.Next(field)) {
    if (field.number == argument_field::kTexts) {
      values.push_back(field.bytes);
    }
  }
  return values;
}

}  // namespace nereid::caffe2
