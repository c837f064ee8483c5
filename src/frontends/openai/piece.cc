// SPDX-License-Identifier: Apache-2.0
#include "openai/piece.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "common/json_text.h"
#include "openai/json_value.h"
#include "openai/text_filter.h"
#include "tensor/data_type.h"
#include "tensor/shape.h"

namespace nereid::openai {
namespace {

using core::ResponseOutput;
using tensor::DataType;

base::Status OutputError(std::string_view name, std::string_view text) {
  return base::InternalError(fmt::format("the model's output '{}' {}", name, text));
}

// Returns the only text of an output; empty if there is no such output, or it has no element.
base::Result<std::string_view> ReadText(const core::Response& response, std::string_view name) {
  const ResponseOutput* const output = FindOutput(response, name);
  if (output == nullptr || output->byte_size == 0) return std::string_view();
  uint32_t length = 0;
  const bool is_text = output->type == DataType::kBytes && output->byte_size >= sizeof(length);
  if (is_text) std::memcpy(&length, output->data, sizeof(length));
  if (!is_text || length != output->byte_size - sizeof(length)) {
    return OutputError(
        name, fmt::format("must have one text, but has the type {} and the shape {}",
                          tensor::ProtocolName(output->type), tensor::ToString(output->shape)));
  }
  return std::string_view(reinterpret_cast<const char*>(output->data) + sizeof(length), length);
}

// Reads the calls of tools that a model makes.
class ToolCallReader {
 public:
  ToolCallReader(std::string_view id, size_t first_call) : id_(id), next_(first_call) {}

  base::Status Read(std::string_view text, std::vector<std::string>& calls) {
    rapidjson::Document document;
    const std::string wrapped = fmt::format("{{\"calls\":{}}}", text);
    const base::Status status = ParseBody(wrapped, document);
    const JsonValue* const list = status.ok() ? FindField(document, "calls") : nullptr;
    if (list == nullptr || !list->IsArray()) return Wrong("must be a JSON array");
    for (const JsonValue& call : list->GetArray()) {
      calls.emplace_back();
      NEREID_RETURN_IF_ERROR(AppendCall(call, calls.back()));
    }
    return base::OkStatus();
  }

 private:
  static base::Status Wrong(std::string_view text) {
    return OutputError(config::kToolCallsOutput, text);
  }

  base::Status AppendCall(const JsonValue& call, std::string& json) {
    const JsonValue* const function = FindField(call, "function");
    const JsonValue* const name = function == nullptr ? nullptr : FindField(*function, "name");
    if (name == nullptr || !name->IsString()) {
      return Wrong("must be a JSON array of objects with a 'function' that has a string 'name'");
    }
    json += "\"id\":";
    const JsonValue* const id = FindField(call, "id");
    const bool has_id = id != nullptr && id->IsString();
    common::AppendJsonString(
        json, has_id ? std::string(TextOf(*id)) : fmt::format("call_{}_{}", id_, next_));
    ++next_;
    json += ",\"type\":\"function\",\"function\":{\"name\":";
    common::AppendJsonString(json, TextOf(*name));
    json += ",\"arguments\":";
    // Clients get them as a text that is JSON.
    const JsonValue* const arguments = FindField(*function, "arguments");
    std::string text = "{}";
    if (arguments != nullptr) {
      text.clear();
      if (arguments->IsString()) {
        text = TextOf(*arguments);
      } else {
        AppendJson(*arguments, text);
      }
    }
    common::AppendJsonString(json, text);
    json += '}';
    json = CleanText(json);
    return base::OkStatus();
  }

  const std::string_view id_;
  size_t next_;
};

}  // namespace

const ResponseOutput* FindOutput(const core::Response& response, std::string_view name) {
  for (size_t i = 0; i < response.output_count(); ++i) {
    if (response.output(i).name == name) return &response.output(i);
  }
  return nullptr;
}

base::Result<std::optional<uint64_t>> ReadCount(const core::Response& response,
                                                std::string_view name) {
  const ResponseOutput* const output = FindOutput(response, name);
  if (output == nullptr || output->byte_size == 0) return std::optional<uint64_t>();
  int64_t count = -1;
  if (output->type == DataType::kInt64 && output->byte_size == sizeof(int64_t)) {
    std::memcpy(&count, output->data, sizeof(int64_t));
  } else if (output->type == DataType::kInt32 && output->byte_size == sizeof(int32_t)) {
    int32_t small = 0;
    std::memcpy(&small, output->data, sizeof(small));
    count = small;
  }
  if (count >= 0) return std::optional(static_cast<uint64_t>(count));
  return OutputError(name, "must have one number, which is not negative");
}

base::Result<Piece> ReadPiece(const core::Response& response,
                              const config::OpenAiContract& contract, std::string_view id,
                              size_t first_call) {
  Piece piece;
  NEREID_ASSIGN_OR_RETURN(piece.text, ReadText(response, contract.text_output));
  NEREID_ASSIGN_OR_RETURN(piece.finish_reason, ReadText(response, config::kFinishReasonOutput));
  NEREID_ASSIGN_OR_RETURN(const std::string_view calls,
                          ReadText(response, config::kToolCallsOutput));
  if (!calls.empty()) {
    NEREID_RETURN_IF_ERROR(ToolCallReader(id, first_call).Read(calls, piece.tool_calls));
  }
  NEREID_ASSIGN_OR_RETURN(piece.prompt_tokens, ReadCount(response, config::kPromptTokensOutput));
  NEREID_ASSIGN_OR_RETURN(const std::optional<uint64_t> completion_tokens,
                          ReadCount(response, config::kCompletionTokensOutput));
  piece.completion_tokens = completion_tokens.value_or(0);
  return piece;
}

}  // namespace nereid::openai
