// SPDX-License-Identifier: Apache-2.0
// The fields of a request that the API knows: their types, and those that ask for something that
// this server cannot do. Unknown fields are ignored. Private to this module.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model.h"
#include "openai/api_error.h"
#include "openai/json_value.h"

namespace nereid::openai {

// What a request asks for.
enum class Task : uint8_t { kChat, kCompletions, kEmbeddings };

// Checks the types of the fields that the API gives to a request of this kind, wherever the model
// makes use of them or not.
ApiError CheckFields(const JsonValue& body, Task task);

// Refuses what would change the reply and what neither the server nor `model` can do, such as
// several choices.
ApiError CheckAbilities(const JsonValue& body, Task task, const core::Model& model);

// REQUIRES for all below: CheckFields has accepted the body.

std::string_view ModelName(const JsonValue& body);
bool Flag(const JsonValue& body, const char* name);
// Returns the texts of `stop`: up to four, unless the task has no such field, and it is anything.
std::vector<std::string> StopSequences(const JsonValue& body);
// Whether a stream is to end with the usage.
bool WantsUsage(const JsonValue& body);

// Returns the texts of `input` (embeddings) or `prompt` (completions), which live as long as the
// body.
struct Texts {
  ApiError error;
  std::vector<std::string_view> texts;
};
Texts ReadTexts(const JsonValue& body, Task task);

// Checks the messages of a chat.
ApiError CheckMessages(const JsonValue& body);
// Appends the messages as a prompt: "<role>: <content>" in a line each, and then "assistant:".
// Fails for contents other than text.
ApiError AppendPrompt(const JsonValue& body, std::string& prompt);

}  // namespace nereid::openai
