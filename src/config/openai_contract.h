// SPDX-License-Identifier: Apache-2.0
// The parameters of a model that is to be reached by the routes of OpenAI's API (docs/openai.md):
// which of them it serves, and which tensors carry what. Text and JSON are TYPE_STRING tensors of
// one element.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

// The names of tensors that have a meaning whatever the contract says.
inline constexpr std::string_view kFinishReasonOutput = "finish_reason";
inline constexpr std::string_view kToolCallsOutput = "tool_calls";
inline constexpr std::string_view kPromptTokensOutput = "prompt_tokens";
inline constexpr std::string_view kCompletionTokensOutput = "completion_tokens";

// What a model promises. A value; its texts are views of the configuration it was read from, or
// constants.
struct OpenAiContract {
  bool serves_chat = false;
  bool serves_completions = false;
  bool serves_embeddings = false;
  // The input with the prompt, or the text to embed; empty: there is none.
  std::string_view text_input;
  // The input with the messages of a chat as JSON; empty: the messages are joined to a prompt.
  std::string_view messages_input;
  std::string_view text_output;       // empty: neither chat nor completions are served
  std::string_view embedding_output;  // empty: no embeddings are served
};

// Reads the parameters `openai` and `openai_...`. Nothing if there is no parameter `openai`.
// InvalidArgument, with the names of the model, the parameter and the tensor, if they contradict
// the inputs and outputs. REQUIRES: the configuration is complete.
base::Result<std::optional<OpenAiContract>> ReadOpenAiContract(const ModelConfig& config);

// Whether the parameter is one of those.
bool IsOfOpenAi(std::string_view parameter);

}  // namespace nereid::config
