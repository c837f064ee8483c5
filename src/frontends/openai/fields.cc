// SPDX-License-Identifier: Apache-2.0
#include "openai/fields.h"

#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace nereid::openai {
namespace {

// As many as OpenAI's API takes.
constexpr size_t kMaxStops = 4;
constexpr size_t kMaxTexts = 2048;

// The types of fields.
enum class FieldType : uint8_t {
  kText,
  kNumber,
  kInteger,
  kFlag,
  kFlagOrInteger,
  kArray,
  kObject,
  kTextOrObject,
};

// Bits, one for each task.
constexpr unsigned kOfChat = 1U << static_cast<unsigned>(Task::kChat);
constexpr unsigned kOfCompletions = 1U << static_cast<unsigned>(Task::kCompletions);
constexpr unsigned kOfEmbeddings = 1U << static_cast<unsigned>(Task::kEmbeddings);
constexpr unsigned kOfText = kOfChat | kOfCompletions;
constexpr unsigned kOfAll = kOfText | kOfEmbeddings;

constexpr double kAny = std::numeric_limits<double>::infinity();

// A field that the API knows. Numbers must be in the range.
struct Field {
  const char* name;
  FieldType type;
  unsigned tasks;
  double min = -kAny;
  double max = kAny;
};

constexpr auto kFields = std::to_array<Field>({
    {"model", FieldType::kText, kOfAll},
    {"user", FieldType::kText, kOfAll},
    {"messages", FieldType::kArray, kOfChat},
    {"stream", FieldType::kFlag, kOfText},
    {"stream_options", FieldType::kObject, kOfText},
    {"max_tokens", FieldType::kInteger, kOfText, 1, 1e9},
    {"max_completion_tokens", FieldType::kInteger, kOfChat, 1, 1e9},
    {"temperature", FieldType::kNumber, kOfText, 0, 1e6},
    {"top_p", FieldType::kNumber, kOfText, 0, 1},
    {"n", FieldType::kInteger, kOfText, 1, 1e9},
    {"best_of", FieldType::kInteger, kOfCompletions, 1, 1e9},
    {"seed", FieldType::kInteger, kOfText},
    {"presence_penalty", FieldType::kNumber, kOfText, -1e6, 1e6},
    {"frequency_penalty", FieldType::kNumber, kOfText, -1e6, 1e6},
    {"logit_bias", FieldType::kObject, kOfText},
    {"logprobs", FieldType::kFlagOrInteger, kOfText},
    {"top_logprobs", FieldType::kInteger, kOfChat, 0, 1e9},
    {"echo", FieldType::kFlag, kOfCompletions},
    {"suffix", FieldType::kText, kOfCompletions},
    {"tools", FieldType::kArray, kOfChat},
    {"tool_choice", FieldType::kTextOrObject, kOfChat},
    {"parallel_tool_calls", FieldType::kFlag, kOfChat},
    {"response_format", FieldType::kObject, kOfChat},
    {"metadata", FieldType::kObject, kOfChat},
    {"encoding_format", FieldType::kText, kOfEmbeddings},
    {"dimensions", FieldType::kInteger, kOfEmbeddings, 1, 1e9},
});

bool HasType(const JsonValue& value, FieldType type) {
  const bool is_integer = value.IsInt64() || value.IsUint64();
  switch (type) {
    case FieldType::kText:
      return value.IsString();
    case FieldType::kNumber:
      return value.IsNumber() && !std::isnan(value.GetDouble());
    case FieldType::kInteger:
      return is_integer;
    case FieldType::kFlag:
      return value.IsBool();
    case FieldType::kFlagOrInteger:
      return value.IsBool() || is_integer;
    case FieldType::kArray:
      return value.IsArray();
    case FieldType::kObject:
      return value.IsObject();
    case FieldType::kTextOrObject:
      return value.IsString() || value.IsObject();
  }
  return false;
}

std::string_view NameOf(FieldType type) {
  switch (type) {
    case FieldType::kText:
      return "a string";
    case FieldType::kNumber:
      return "a number";
    case FieldType::kInteger:
      return "an integer";
    case FieldType::kFlag:
      return "a boolean";
    case FieldType::kFlagOrInteger:
      return "a boolean or an integer";
    case FieldType::kArray:
      return "an array";
    case FieldType::kObject:
      return "an object";
    case FieldType::kTextOrObject:
      return "a string or an object";
  }
  return "";
}

ApiError CheckField(const JsonValue& value, const Field& field) {
  if (!HasType(value, field.type)) {
    // A number has a type that fits, so the text says what else is wrong with it.
    const std::string_view found = !value.IsDouble()                  ? TypeName(value)
                                   : field.type == FieldType::kNumber ? "NaN"
                                                                      : "a fraction";
    return FieldError(
        field.name, fmt::format("'{}' must be {}, not {}", field.name, NameOf(field.type), found));
  }
  if (!value.IsNumber()) return {};
  const double number = value.GetDouble();
  if (number >= field.min && number <= field.max) return {};
  return FieldError(field.name,
                    fmt::format("'{}' must be from {} to {}", field.name, field.min, field.max));
}

ApiError CheckStop(const JsonValue& body) {
  constexpr const char* kStop = "stop";
  const JsonValue* const stop = FindField(body, kStop);
  if (stop == nullptr) return {};
  if (!stop->IsString() && !stop->IsArray()) {
    return FieldError(kStop, fmt::format("'stop' must be a string or an array of strings, not {}",
                                         TypeName(*stop)));
  }
  const auto is_sequence = [](const JsonValue& value) {
    return value.IsString() && value.GetStringLength() > 0;
  };
  if (stop->IsString()) {
    return is_sequence(*stop) ? ApiError() : FieldError(kStop, "'stop' must not be empty");
  }
  if (stop->Size() > kMaxStops) {
    return FieldError(kStop, fmt::format("'stop' has {} sequences; there may be up to {}",
                                         stop->Size(), kMaxStops));
  }
  for (const JsonValue& element : stop->GetArray()) {
    if (!is_sequence(element)) {
      return FieldError(kStop, "every element of 'stop' must be a string that is not empty");
    }
  }
  return {};
}

ApiError CheckStreamOptions(const JsonValue& body) {
  const JsonValue* const options = FindField(body, "stream_options");
  if (options == nullptr) return {};
  if (!Flag(body, "stream")) {
    return FieldError("stream_options", "'stream_options' is allowed only if 'stream' is true");
  }
  const JsonValue* const usage = FindField(*options, "include_usage");
  if (usage == nullptr || usage->IsBool()) return {};
  return FieldError("stream_options", fmt::format("'stream_options.include_usage' must be a "
                                                  "boolean, not {}",
                                                  TypeName(*usage)));
}

ApiError CheckEncoding(const JsonValue& body) {
  const JsonValue* const encoding = FindField(body, "encoding_format");
  if (encoding == nullptr || TextOf(*encoding) == "float" || TextOf(*encoding) == "base64") {
    return {};
  }
  return FieldError("encoding_format", "'encoding_format' must be 'float' or 'base64'");
}

// Whether a field asks for something, as opposed to nothing, none or the default.
bool Asks(const JsonValue& body, const char* name) {
  const JsonValue* const value = FindField(body, name);
  if (value == nullptr) return false;
  if (value->IsBool()) return value->GetBool();
  if (value->IsArray()) return !value->Empty();
  if (value->IsString()) return value->GetStringLength() > 0;
  if (!value->IsObject()) return true;
  const JsonValue* const type = FindField(*value, "type");
  return type == nullptr || !type->IsString() || TextOf(*type) != "text";
}

ApiError CheckMessage(const JsonValue& message, size_t i) {
  const auto wrong = [&](std::string_view what) {
    return FieldError("messages", fmt::format("'messages[{}]{}", i, what));
  };
  if (!message.IsObject())
    return wrong(fmt::format("' must be an object, not {}", TypeName(message)));
  const JsonValue* const role = FindField(message, "role");
  if (role == nullptr || !role->IsString()) return wrong(".role' must be a string");
  const JsonValue* const content = FindField(message, "content");
  if (content == nullptr || content->IsString()) return {};
  if (!content->IsArray()) {
    return wrong(
        fmt::format(".content' must be a string or an array of parts, not {}", TypeName(*content)));
  }
  for (const JsonValue& part : content->GetArray()) {
    const JsonValue* const type = FindField(part, "type");
    if (type == nullptr || !type->IsString()) {
      return wrong(".content' must have parts that are objects with a string 'type'");
    }
    const JsonValue* const text = FindField(part, "text");
    if (TextOf(*type) == "text" && (text == nullptr || !text->IsString())) {
      return wrong(".content' has a part of the type 'text' without a string 'text'");
    }
  }
  return {};
}

}  // namespace

ApiError CheckFields(const JsonValue& body, Task task) {
  for (const Field& field : kFields) {
    if ((field.tasks & (1U << static_cast<unsigned>(task))) == 0) continue;
    const JsonValue* const value = FindField(body, field.name);
    if (value != nullptr) NEREID_RETURN_IF_API_ERROR(CheckField(*value, field));
  }
  if (FindField(body, "model") == nullptr) {
    return FieldError("model", "'model' is missing: the name of the model");
  }
  if (task == Task::kEmbeddings) return CheckEncoding(body);
  NEREID_RETURN_IF_API_ERROR(CheckStop(body));
  NEREID_RETURN_IF_API_ERROR(CheckStreamOptions(body));
  return task == Task::kChat ? CheckMessages(body) : ApiError();
}

ApiError CheckAbilities(const JsonValue& body, Task task, const core::Model& model) {
  for (const char* const name : {"n", "best_of"}) {
    const JsonValue* const value = FindField(body, name);
    if (task == Task::kEmbeddings || value == nullptr || value->GetDouble() <= 1) continue;
    return FieldError(name, fmt::format("'{}' must be 1: this server gives one choice", name));
  }
  const JsonValue* const logprobs = FindField(body, "logprobs");
  if (task != Task::kEmbeddings && logprobs != nullptr &&
      (!logprobs->IsBool() || logprobs->GetBool())) {
    return FieldError("logprobs", "this server gives no 'logprobs'");
  }
  for (const Field& field : kFields) {
    const std::string_view name = field.name;
    if (name != "tools" && name != "response_format" && name != "dimensions" && name != "suffix" &&
        name != "echo") {
      continue;
    }
    if ((field.tasks & (1U << static_cast<unsigned>(task))) == 0) continue;
    if (!Asks(body, field.name) || model.FindInput(name) >= 0) continue;
    return FieldError(name, fmt::format("the model '{}' does not support '{}': it has no input of "
                                        "that name",
                                        model.name(), name));
  }
  return {};
}

std::string_view ModelName(const JsonValue& body) { return TextOf(*FindField(body, "model")); }

bool Flag(const JsonValue& body, const char* name) {
  const JsonValue* const value = FindField(body, name);
  return value != nullptr && value->GetBool();
}

std::vector<std::string> StopSequences(const JsonValue& body) {
  std::vector<std::string> stops;
  const JsonValue* const stop = FindField(body, "stop");
  if (stop == nullptr) return stops;
  if (stop->IsString()) stops.emplace_back(TextOf(*stop));
  if (!stop->IsArray()) return stops;
  for (const JsonValue& element : stop->GetArray()) {
    if (element.IsString()) stops.emplace_back(TextOf(element));
  }
  return stops;
}

bool WantsUsage(const JsonValue& body) {
  const JsonValue* const options = FindField(body, "stream_options");
  return options != nullptr && Flag(*options, "include_usage");
}

Texts ReadTexts(const JsonValue& body, Task task) {
  const char* const name = task == Task::kEmbeddings ? "input" : "prompt";
  const size_t most = task == Task::kEmbeddings ? kMaxTexts : 1;
  Texts read;
  const auto refuse = [&](std::string message) {
    read.error = FieldError(name, std::move(message));
    return read;
  };
  const JsonValue* const value = FindField(body, name);
  if (value == nullptr) return refuse(fmt::format("'{}' is missing: a text", name));
  if (value->IsString()) {
    read.texts.push_back(TextOf(*value));
    return read;
  }
  if (!value->IsArray()) {
    return refuse(fmt::format("'{}' must be a string or an array of strings, not {}", name,
                              TypeName(*value)));
  }
  if (value->Empty() || value->Size() > most) {
    return refuse(fmt::format("'{}' has {} elements; there must be {}", name, value->Size(),
                              most == 1 ? "1" : fmt::format("from 1 to {}", most)));
  }
  for (const JsonValue& element : value->GetArray()) {
    if (!element.IsString()) {
      return refuse(
          fmt::format("'{}' must have strings as its elements, not {}; this server takes "
                      "no tokens",
                      name, TypeName(element)));
    }
    read.texts.push_back(TextOf(element));
  }
  return read;
}

ApiError CheckMessages(const JsonValue& body) {
  const JsonValue* const messages = FindField(body, "messages");
  if (messages == nullptr) return FieldError("messages", "'messages' is missing");
  if (messages->Empty()) return FieldError("messages", "'messages' must not be empty");
  for (rapidjson::SizeType i = 0; i < messages->Size(); ++i) {
    NEREID_RETURN_IF_API_ERROR(CheckMessage((*messages)[i], i));
  }
  return {};
}

ApiError AppendPrompt(const JsonValue& body, std::string& prompt) {
  for (const JsonValue& message : FindField(body, "messages")->GetArray()) {
    prompt += TextOf(*FindField(message, "role"));
    prompt += ": ";
    const JsonValue* const content = FindField(message, "content");
    if (content != nullptr && content->IsString()) prompt += TextOf(*content);
    if (content != nullptr && content->IsArray()) {
      for (const JsonValue& part : content->GetArray()) {
        const std::string_view type = TextOf(*FindField(part, "type"));
        if (type != "text") {
          return FieldError("messages", fmt::format("the model takes text only, and not a part of "
                                                    "the type '{}'",
                                                    type));
        }
        prompt += TextOf(*FindField(part, "text"));
      }
    }
    prompt += '\n';
  }
  prompt += "assistant:";
  return {};
}

}  // namespace nereid::openai
