// SPDX-License-Identifier: Apache-2.0
// What one response of a model contributes to a completion. Private to this module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/openai_contract.h"
#include "core/response.h"

namespace nereid::openai {

// How many tokens a request has cost, as far as the model says.
struct Usage {
  uint64_t prompt_tokens = 0;
  uint64_t completion_tokens = 0;
};

// The texts are views of the response.
struct Piece {
  std::string_view text;
  std::string_view finish_reason;  // empty: the model does not say
  // For each call of a tool the members of its JSON object, without braces: id, type, function.
  std::vector<std::string> tool_calls;
  std::optional<uint64_t> prompt_tokens;
  uint64_t completion_tokens = 0;  // of this piece
};

// Reads a response of a model that generates text. Internal, with the name of the output, if an
// output is not what the contract promises. `first_call` is the number of calls before this piece,
// which ids are made of where the model gives none. REQUIRES: the response has no error.
base::Result<Piece> ReadPiece(const core::Response& response,
                              const config::OpenAiContract& contract, std::string_view id,
                              size_t first_call);

// Returns the only number of the output; nothing if the response does not have it.
base::Result<std::optional<uint64_t>> ReadCount(const core::Response& response,
                                                std::string_view name);

// Returns the output of that name; null if the response does not have it.
const core::ResponseOutput* FindOutput(const core::Response& response, std::string_view name);

}  // namespace nereid::openai
