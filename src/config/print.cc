// SPDX-License-Identifier: Apache-2.0
#include "config/print.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>
#include <type_traits>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "config/proto_convert.h"

namespace nereid::config {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

// Our own printer, because protobuf's looks up the type of every field by its name, which takes
// milliseconds for one configuration.
void PrintMessage(const Message& message, JsonWriter& json);

// Protobuf prints 64-bit integers as strings. Triton's clients know these fields as strings and all
// others as numbers.
bool IsNumberInQuotes(const FieldDescriptor& field) {
  const std::string& name = field.full_name();
  return name == "inference.ModelInstanceGroup.SecondaryDevice.device_id" ||
         name == "inference.ModelOptimizationPolicy.Cuda.GraphSpec.Shape.dim" ||
         name == "inference.ModelSequenceBatching.InitialState.dims";
}

void PrintText(std::string_view text, JsonWriter& json) {
  json.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

template <typename T>
void PrintInteger(const FieldDescriptor& field, T value, JsonWriter& json) {
  if (IsNumberInQuotes(field)) {
    PrintText(std::to_string(value), json);
  } else if constexpr (std::is_signed_v<T>) {
    json.Int64(value);
  } else {
    json.Uint64(value);
  }
}

// Prints as many digits as protobuf does: few if they suffice. Whole numbers have no fraction.
void PrintReal(double value, bool is_float, JsonWriter& json) {
  if (!std::isfinite(value)) {
    PrintText(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity", json);
    return;
  }
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", is_float ? 6 : 15, value);
  const double read = std::strtod(text, nullptr);
  if (is_float ? static_cast<float>(read) != static_cast<float>(value) : read != value) {
    std::snprintf(text, sizeof(text), "%.*g", is_float ? 9 : 17, value);
  }
  if (std::strpbrk(text, ".e") == nullptr) {
    json.Int64(std::strtoll(text, nullptr, 10));
  } else {
    json.Double(std::strtod(text, nullptr));
  }
}

// Prints the value of `field`, or its element `index` if it is repeated.
void PrintValue(const Message& message, const FieldDescriptor& field, int index, JsonWriter& json) {
  using google::protobuf::Reflection;
  const Reflection& of = *message.GetReflection();
  const auto get = [&](auto one, auto element) -> decltype(auto) {
    return field.is_repeated() ? (of.*element)(message, &field, index) : (of.*one)(message, &field);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return PrintInteger(field, get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32), json);
    case FieldDescriptor::CPPTYPE_INT64:
      return PrintInteger(field, get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64), json);
    case FieldDescriptor::CPPTYPE_UINT32:
      return PrintInteger(field, get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32), json);
    case FieldDescriptor::CPPTYPE_UINT64:
      return PrintInteger(field, get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64), json);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return PrintReal(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat), true, json);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return PrintReal(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble), false, json);
    case FieldDescriptor::CPPTYPE_BOOL:
      json.Bool(get(&Reflection::GetBool, &Reflection::GetRepeatedBool));
      return;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue);
      const auto* const value = field.enum_type()->FindValueByNumber(number);
      if (value != nullptr) {
        PrintText(value->name(), json);
      } else {
        json.Int(number);
      }
      return;
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return PrintText(get(&Reflection::GetString, &Reflection::GetRepeatedString), json);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return PrintMessage(field.is_repeated() ? of.GetRepeatedMessage(message, &field, index)
                                              : of.GetMessage(message, &field),
                          json);
  }
}

// Prints a map in the order of its keys, which are strings or unsigned numbers.
void PrintMap(const Message& message, const FieldDescriptor& field, JsonWriter& json) {
  const google::protobuf::Reflection& of = *message.GetReflection();
  const FieldDescriptor* const key = field.message_type()->map_key();
  const FieldDescriptor* const value = field.message_type()->map_value();
  const bool has_texts = key->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  std::map<std::string, const Message*> texts;
  std::map<uint64_t, const Message*> numbers;
  for (int i = 0; i < of.FieldSize(message, &field); ++i) {
    const Message& entry = of.GetRepeatedMessage(message, &field, i);
    const google::protobuf::Reflection& of_entry = *entry.GetReflection();
    if (has_texts) {
      texts[of_entry.GetString(entry, key)] = &entry;
    } else {
      numbers[of_entry.GetUInt64(entry, key)] = &entry;
    }
  }
  json.StartObject();
  const auto print = [&](const std::string& name, const Message& entry) {
    json.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
    PrintValue(entry, *value, 0, json);
  };
  for (const auto& [name, entry] : texts) print(name, *entry);
  for (const auto& [number, entry] : numbers) print(std::to_string(number), *entry);
  json.EndObject();
}

void PrintField(const Message& message, const FieldDescriptor& field, JsonWriter& json) {
  const google::protobuf::Reflection& of = *message.GetReflection();
  if (field.has_presence() && !of.HasField(message, &field)) return;
  json.Key(field.name().data(), static_cast<rapidjson::SizeType>(field.name().size()));
  if (field.is_map()) {
    PrintMap(message, field, json);
  } else if (field.is_repeated()) {
    json.StartArray();
    for (int i = 0; i < of.FieldSize(message, &field); ++i) PrintValue(message, field, i, json);
    json.EndArray();
  } else {
    PrintValue(message, field, 0, json);
  }
}

// Prints fields in the order of declaration, except that members of a oneof that are plain values
// come last.
void PrintMessage(const Message& message, JsonWriter& json) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  const auto is_plain_alternative = [](const FieldDescriptor& field) {
    return field.containing_oneof() != nullptr &&
           field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
  };
  json.StartObject();
  for (int i = 0; i < type.field_count(); ++i) {
    if (!is_plain_alternative(*type.field(i))) PrintField(message, *type.field(i), json);
  }
  for (int i = 0; i < type.field_count(); ++i) {
    if (is_plain_alternative(*type.field(i))) PrintField(message, *type.field(i), json);
  }
  json.EndObject();
}

std::string Bytes(const inference::ModelConfig& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

base::Result<std::string> ToJson(const ModelConfig& config, uint32_t config_version) {
  if (config_version != 1) {
    return base::InvalidArgumentError("model configuration version " +
                                      std::to_string(config_version) +
                                      " not supported, supported versions are: 1");
  }
  const inference::ModelConfig message = ToProto(config);
  if (message.ByteSizeLong() == 0) return std::string();
  rapidjson::StringBuffer out;
  JsonWriter json(out);
  PrintMessage(message, json);
  return std::string(out.GetString(), out.GetSize());
}

std::string SerializeToProto(const ModelConfig& config) { return Bytes(ToProto(config)); }

std::string ToText(const ModelConfig& config) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(ToProto(config), &text);
  return text;
}

}  // namespace nereid::config
