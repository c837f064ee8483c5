// SPDX-License-Identifier: Apache-2.0
// From a request of this API to the inputs and requested outputs of a core::Request, by the model's
// contract. Private to this module.
#pragma once

#include <span>
#include <string_view>

#include "config/openai_contract.h"
#include "core/request.h"
#include "openai/api_error.h"
#include "openai/json_value.h"

namespace nereid::openai {

// A text of an input of the model.
struct TextInput {
  std::string_view name;                    // a view of the model's configuration
  std::span<const std::string_view> texts;  // one, or as many as a batch has; copied
};

// Adds `text`, and the fields of `body` for which the model has an input of the same name, to
// `request`, whose model is set. The outputs are those that the contract names for embeddings, or
// else for texts. REQUIRES: CheckFields has accepted the body.
ApiError FillRequest(const JsonValue& body, const config::OpenAiContract& contract,
                     const TextInput& text, bool is_embedding, core::Request& request);

}  // namespace nereid::openai
