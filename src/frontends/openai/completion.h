// SPDX-License-Identifier: Apache-2.0
// The JSON of completions: whole ones, and the events of a stream. Private to this module.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "openai/piece.h"

namespace nereid::openai {

// What all parts of a completion repeat.
struct CompletionHead {
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
  bool is_chat = false;
};

// A part of a completion, or the whole. Texts are valid UTF-8.
struct CompletionPart {
  std::string_view text;
  std::span<const std::string> tool_calls;  // the members of each, see Piece
  std::string_view finish_reason;           // empty: more follows
};

// Appends a whole completion.
void AppendCompletion(const CompletionHead& head, const CompletionPart& whole, const Usage& usage,
                      std::string& json);

// Which event of a stream it is.
struct EventPlace {
  bool is_first = false;
  size_t first_call = 0;        // the number of calls of tools before it
  bool mentions_usage = false;  // which is then null, until AppendUsageEvent
};
// Appends an event with a part.
void AppendPartEvent(const CompletionHead& head, const CompletionPart& part,
                     const EventPlace& place, std::string& text);
// Appends the event that has only the usage.
void AppendUsageEvent(const CompletionHead& head, const Usage& usage, std::string& text);

// Appends "<name>":{"prompt_tokens":...}, for embeddings without completion tokens.
void AppendUsage(const Usage& usage, bool is_embedding, std::string& json);

inline constexpr std::string_view kDoneEvent = "data: [DONE]\n\n";

}  // namespace nereid::openai
