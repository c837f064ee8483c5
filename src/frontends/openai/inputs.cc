// SPDX-License-Identifier: Apache-2.0
#include "openai/inputs.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"
#include "core/model.h"

namespace nereid::openai {
namespace {

using config::OpenAiContract;
using tensor::DataType;

// Fills one request.
class RequestFiller {
 public:
  RequestFiller(const JsonValue& body, core::Request& request)
      : body_(body), request_(request), model_(*request.model) {}

  // Adds a text for each of `texts`, along the batch dimension if there are several.
  ApiError AddTexts(const TextInput& text) {
    const int index = model_.FindInput(text.name);
    if (index < 0) return base::InternalError(fmt::format("there is no input '{}'", text.name));
    batch_ = text.texts.size();
    return AddTexts(model_.inputs()[static_cast<size_t>(index)], text.texts, 1, 1);
  }

  // Adds the field of the input's name, if the body has it.
  ApiError AddField(const core::ModelTensor& input) {
    const JsonValue* const value = FindValue(input.name);
    if (value == nullptr) return {};
    if (input.type == DataType::kBytes) return AddTextField(input, *value);
    return AddScalar(input, *value);
  }

  void AskFor(std::string_view output) {
    const int index = output.empty() ? -1 : model_.FindOutput(output);
    if (index < 0) return;
    request_.outputs.emplace_back().name = model_.outputs()[static_cast<size_t>(index)].name;
  }

 private:
  const JsonValue* FindValue(const std::string& name) const {
    const JsonValue* const value = FindField(body_, name.c_str());
    if (value != nullptr || name != "max_tokens") return value;
    return FindField(body_, "max_completion_tokens");
  }

  // The shape of one element for each text, or of `count` where the dims say -1.
  void SetShape(const core::ModelTensor& tensor, size_t count, core::RequestInput& input) const {
    if (model_.max_batch_size() > 0) input.shape.PushBack(static_cast<int64_t>(batch_));
    bool is_placed = false;
    std::vector<int64_t> dims(tensor.dims.dims().begin(), tensor.dims.dims().end());
    for (size_t i = dims.size(); i-- > 0;) {
      if (dims[i] != tensor::kWildcard) continue;
      dims[i] = is_placed ? 1 : static_cast<int64_t>(count);
      is_placed = true;
    }
    for (const int64_t dim : dims) input.shape.PushBack(dim);
  }

  // Adds `texts`, `count` of them for each element of the batch, `repeats` times.
  ApiError AddTexts(const core::ModelTensor& tensor, std::span<const std::string_view> texts,
                    size_t count, size_t repeats) {
    size_t size = 0;
    for (const std::string_view text : texts) {
      if (text.size() > std::numeric_limits<uint32_t>::max()) {
        return base::InvalidArgumentError("a text of the request is larger than 4 GiB");
      }
      // An escape in the JSON may be half of a pair.
      if (!base::IsValidUtf8(text)) {
        return FieldError(tensor.name,
                          "the request has a text with an escape that is no character");
      }
      size += sizeof(uint32_t) + text.size();
    }
    core::RequestInput& input = request_.AddInput(tensor.name, tensor.type);
    SetShape(tensor, count, input);
    if (size == 0) return {};
    std::byte* const memory = request_.arena().Allocate(size, 1);
    if (memory == nullptr) return base::UnavailableError("there is no memory for the request");
    std::byte* next = memory;
    for (const std::string_view text : texts) {
      const auto length = static_cast<uint32_t>(text.size());
      std::memcpy(next, &length, sizeof(length));
      if (!text.empty()) std::memcpy(next + sizeof(length), text.data(), text.size());
      next += sizeof(length) + text.size();
    }
    for (size_t i = 0; i < repeats; ++i) input.Append({.data = memory, .size = size});
    return {};
  }

  // A list of texts goes to an input of the dims [ -1 ] as its elements. An input of one element
  // gets a text as it is, and everything else, and any `stop`, as JSON.
  ApiError AddTextField(const core::ModelTensor& tensor, const JsonValue& value) {
    const bool takes_list =
        std::ranges::find(tensor.dims.dims(), tensor::kWildcard) != tensor.dims.dims().end();
    const auto is_text = [](const JsonValue& element) { return element.IsString(); };
    const bool is_list = value.IsArray() && std::ranges::all_of(value.GetArray(), is_text);
    const bool is_stop = tensor.name == "stop";
    if (takes_list && (is_list || (is_stop && value.IsString()))) {
      std::vector<std::string_view> texts;
      if (value.IsString()) texts.push_back(TextOf(value));
      if (is_list) {
        for (const JsonValue& element : value.GetArray()) texts.push_back(TextOf(element));
      }
      return AddTexts(tensor, texts, texts.size(), batch_);
    }
    std::string json;
    if (is_stop && value.IsString()) {
      json += '[';
      AppendJson(value, json);
      json += ']';
    } else if (!value.IsString()) {
      AppendJson(value, json);
    }
    const std::string_view text = json.empty() ? TextOf(value) : std::string_view(json);
    return AddTexts(tensor, {&text, 1}, 1, batch_);
  }

  ApiError AddScalar(const core::ModelTensor& tensor, const JsonValue& value) {
    switch (tensor.type) {
      case DataType::kBool:
        if (!value.IsBool()) return WrongType(tensor, value, "a boolean");
        return Add<uint8_t>(tensor, value.GetBool() ? 1 : 0);
      case DataType::kUint8:
        return AddInteger<uint8_t>(tensor, value);
      case DataType::kUint16:
        return AddInteger<uint16_t>(tensor, value);
      case DataType::kUint32:
        return AddInteger<uint32_t>(tensor, value);
      case DataType::kUint64:
        return AddInteger<uint64_t>(tensor, value);
      case DataType::kInt8:
        return AddInteger<int8_t>(tensor, value);
      case DataType::kInt16:
        return AddInteger<int16_t>(tensor, value);
      case DataType::kInt32:
        return AddInteger<int32_t>(tensor, value);
      case DataType::kInt64:
        return AddInteger<int64_t>(tensor, value);
      case DataType::kFp32:
        if (!value.IsNumber()) return WrongType(tensor, value, "a number");
        return Add(tensor, static_cast<float>(value.GetDouble()));
      case DataType::kFp64:
        if (!value.IsNumber()) return WrongType(tensor, value, "a number");
        return Add(tensor, value.GetDouble());
      default:
        return base::InternalError(
            fmt::format("the input '{}' has a type that no field has", tensor.name));
    }
  }

  template <typename T>
  ApiError AddInteger(const core::ModelTensor& tensor, const JsonValue& value) {
    using Limits = std::numeric_limits<T>;
    if (value.IsUint64() && value.GetUint64() <= static_cast<uint64_t>(Limits::max())) {
      return Add(tensor, static_cast<T>(value.GetUint64()));
    }
    if (value.IsInt64() && value.GetInt64() < 0 && std::is_signed_v<T> &&
        value.GetInt64() >= static_cast<int64_t>(Limits::min())) {
      return Add(tensor, static_cast<T>(value.GetInt64()));
    }
    return WrongType(tensor, value,
                     fmt::format("an integer from {} to {}", Limits::min(), Limits::max()));
  }

  static ApiError WrongType(const core::ModelTensor& tensor, const JsonValue& value,
                            std::string_view expected) {
    const bool is_number = value.IsNumber();
    return FieldError(tensor.name,
                      fmt::format("the model takes {} as '{}', not {}", expected, tensor.name,
                                  is_number ? "this number" : TypeName(value)));
  }

  template <typename T>
  ApiError Add(const core::ModelTensor& tensor, T value) {
    core::RequestInput& input = request_.AddInput(tensor.name, tensor.type);
    SetShape(tensor, 1, input);
    std::byte* const memory = request_.arena().Allocate(sizeof(T));
    if (memory == nullptr) return base::UnavailableError("there is no memory for the request");
    std::memcpy(memory, &value, sizeof(T));
    for (size_t i = 0; i < batch_; ++i) input.Append({.data = memory, .size = sizeof(T)});
    return {};
  }

  const JsonValue& body_;
  core::Request& request_;
  const core::Model& model_;
  size_t batch_ = 1;  // as many elements as the batch has, for a model that batches
};

}  // namespace

ApiError FillRequest(const JsonValue& body, const OpenAiContract& contract, const TextInput& text,
                     bool is_embedding, core::Request& request) {
  RequestFiller filler(body, request);
  NEREID_RETURN_IF_API_ERROR(filler.AddTexts(text));
  for (const core::ModelTensor& input : request.model->inputs()) {
    if (input.name == contract.text_input || input.name == contract.messages_input ||
        input.name == text.name) {
      continue;
    }
    NEREID_RETURN_IF_API_ERROR(filler.AddField(input));
  }
  filler.AskFor(config::kPromptTokensOutput);
  if (is_embedding) {
    filler.AskFor(contract.embedding_output);
    return {};
  }
  filler.AskFor(contract.text_output);
  filler.AskFor(config::kCompletionTokensOutput);
  filler.AskFor(config::kFinishReasonOutput);
  filler.AskFor(config::kToolCallsOutput);
  return {};
}

}  // namespace nereid::openai
