// SPDX-License-Identifier: Apache-2.0
#include "config/text_check.h"

#include <vector>

#include <google/protobuf/descriptor.h>

namespace nereid::config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Returns the bytes of the character that `lead` begins, or 0 if it cannot begin one.
size_t CharacterSize(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

std::string FindIn(const Message& message, const FieldDescriptor* field) {
  const auto* reflection = message.GetReflection();
  const bool many = field->is_repeated();
  const int count = many ? reflection->FieldSize(message, field) : 1;
  for (int i = 0; i < count; ++i) {
    std::string name = many ? field->name() + "[" + std::to_string(i) + "]" : field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      const std::string text = many ? reflection->GetRepeatedString(message, field, i)
                                    : reflection->GetString(message, field);
      if (!IsUtf8(text)) return name;
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const std::string inner =
          FindBrokenText(many ? reflection->GetRepeatedMessage(message, field, i)
                              : reflection->GetMessage(message, field));
      if (!inner.empty()) return name + "." + inner;
    }
  }
  return {};
}

}  // namespace

bool IsUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[i + k]); };
    const size_t size = CharacterSize(byte(0));
    if (size == 0 || size > text.size() - i) return false;
    for (size_t k = 1; k < size; ++k) {
      if ((byte(k) & 0xC0) != 0x80) return false;
    }
    // Refuses overlong forms, surrogates, and code points beyond Unicode.
    if (byte(0) == 0xE0 && byte(1) < 0xA0) return false;
    if (byte(0) == 0xED && byte(1) > 0x9F) return false;
    if (byte(0) == 0xF0 && byte(1) < 0x90) return false;
    if (byte(0) == 0xF4 && byte(1) > 0x8F) return false;
    i += size;
  }
  return true;
}

std::string FindBrokenText(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    std::string path = FindIn(message, field);
    if (!path.empty()) return path;
  }
  return {};
}

}  // namespace nereid::config
