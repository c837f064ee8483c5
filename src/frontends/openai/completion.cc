// SPDX-License-Identifier: Apache-2.0
#include "openai/completion.h"

#include "common/json_text.h"

namespace nereid::openai {
namespace {

void AppendMember(std::string_view name, std::string_view text, std::string& json) {
  json += '"';
  json += name;
  json += "\":";
  common::AppendJsonString(json, text);
}

// Appends the beginning of an object, up to its choices.
void AppendHead(const CompletionHead& head, bool is_event, std::string& json) {
  json += '{';
  AppendMember("id", head.id, json);
  const std::string_view whole = is_event ? "chat.completion.chunk" : "chat.completion";
  json += ',';
  AppendMember("object", head.is_chat ? whole : "text_completion", json);
  json += ",\"created\":";
  common::AppendJsonInteger(json, head.created);
  json += ',';
  AppendMember("model", head.model, json);
  json += ",\"choices\":";
}

void AppendToolCalls(std::span<const std::string> calls, bool is_event, size_t first,
                     std::string& json) {
  json += "\"tool_calls\":[";
  for (size_t i = 0; i < calls.size(); ++i) {
    json += i == 0 ? "{" : ",{";
    if (is_event) {
      json += "\"index\":";
      common::AppendJsonInteger(json, first + i);
      json += ',';
    }
    json += calls[i];
    json += '}';
  }
  json += ']';
}

void AppendFinish(std::string_view reason, std::string& json) {
  json += ",\"logprobs\":null,\"finish_reason\":";
  if (reason.empty()) {
    json += "null";
  } else {
    common::AppendJsonString(json, reason);
  }
}

void AppendMessage(const CompletionPart& whole, std::string& json) {
  json += R"("message":{"role":"assistant","content":)";
  if (whole.text.empty() && !whole.tool_calls.empty()) {
    json += "null";
  } else {
    common::AppendJsonString(json, whole.text);
  }
  json += ",\"refusal\":null";
  if (!whole.tool_calls.empty()) {
    json += ',';
    AppendToolCalls(whole.tool_calls, false, 0, json);
  }
  json += '}';
}

void AppendDelta(const CompletionPart& part, const EventPlace& place, std::string& json) {
  json += "\"delta\":{";
  if (place.is_first) json += R"("role":"assistant")";
  if (!part.text.empty() || (place.is_first && part.tool_calls.empty())) {
    if (place.is_first) json += ',';
    AppendMember("content", part.text, json);
  }
  if (!part.tool_calls.empty()) {
    if (json.back() != '{') json += ',';
    AppendToolCalls(part.tool_calls, true, place.first_call, json);
  }
  json += '}';
}

}  // namespace

void AppendCompletion(const CompletionHead& head, const CompletionPart& whole, const Usage& usage,
                      std::string& json) {
  AppendHead(head, false, json);
  json += R"([{"index":0,)";
  if (head.is_chat) {
    AppendMessage(whole, json);
  } else {
    AppendMember("text", whole.text, json);
  }
  AppendFinish(whole.finish_reason, json);
  json += "}],";
  AppendUsage(usage, false, json);
  json += '}';
}

void AppendPartEvent(const CompletionHead& head, const CompletionPart& part,
                     const EventPlace& place, std::string& text) {
  text += "data: ";
  AppendHead(head, true, text);
  text += R"([{"index":0,)";
  if (head.is_chat) {
    AppendDelta(part, place, text);
  } else {
    AppendMember("text", part.text, text);
  }
  AppendFinish(part.finish_reason, text);
  text += "}]";
  if (place.mentions_usage) text += ",\"usage\":null";
  text += "}\n\n";
}

void AppendUsageEvent(const CompletionHead& head, const Usage& usage, std::string& text) {
  text += "data: ";
  AppendHead(head, true, text);
  text += "[],";
  AppendUsage(usage, false, text);
  text += "}\n\n";
}

void AppendUsage(const Usage& usage, bool is_embedding, std::string& json) {
  json += R"("usage":{"prompt_tokens":)";
  common::AppendJsonInteger(json, usage.prompt_tokens);
  if (!is_embedding) {
    json += ",\"completion_tokens\":";
    common::AppendJsonInteger(json, usage.completion_tokens);
  }
  json += ",\"total_tokens\":";
  common::AppendJsonInteger(json, usage.prompt_tokens + usage.completion_tokens);
  json += '}';
}

}  // namespace nereid::openai
