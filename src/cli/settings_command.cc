// SPDX-License-Identifier: Apache-2.0
// nereid trace, nereid log: settings of a running server that are shown and changed.
#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/live.h"
#include "cli/model_metadata.h"

namespace nereid::cli {
namespace {

struct SettingsOfServer {
  std::vector<std::string> changes;  // "NAME=VALUE"
  std::optional<std::string> model;  // of traces
  ServerOptions server;
};

// Returns the value as the server expects it: a list where there is one now, a number or boolean
// likewise, else text. An empty text is null, which removes a setting.
rapidjson::Value ValueLike(const rapidjson::Value& now, std::string_view text,
                           rapidjson::Document& document) {
  if (text.empty()) return {};
  if (now.IsArray()) {
    rapidjson::Value list(rapidjson::kArrayType);
    while (true) {
      const size_t comma = text.find(',');
      list.PushBack(TextValue(text.substr(0, comma), document), document.GetAllocator());
      if (comma == std::string_view::npos) return list;
      text.remove_prefix(comma + 1);
    }
  }
  if (now.IsBool() && (text == "true" || text == "false")) return rapidjson::Value(text == "true");
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (now.IsNumber() && error == std::errc() && end == text.data() + text.size()) {
    return rapidjson::Value(number);
  }
  return TextValue(text, document);
}

std::string TextOfValue(const rapidjson::Value& value) {
  if (value.IsString()) return {value.GetString(), value.GetStringLength()};
  if (!value.IsArray()) return WriteJson(value);
  std::string text;
  for (const rapidjson::Value& one : value.GetArray()) {
    text += text.empty() ? "" : ",";
    text += TextOfValue(one);
  }
  return text;
}

// Returns the body that makes the changes. Names are checked here, because servers ignore unknown
// ones.
base::Result<std::string> ChangeBody(const std::vector<std::string>& changes,
                                     const rapidjson::Document& now) {
  std::vector<std::string_view> names;
  for (const auto& member : now.GetObject()) {
    names.emplace_back(member.name.GetString(), member.name.GetStringLength());
  }
  rapidjson::Document body;
  body.SetObject();
  for (const std::string_view change : changes) {
    const size_t equals = change.find('=');
    const std::string_view name = change.substr(0, equals);
    if (equals == std::string_view::npos) {
      return base::InvalidArgumentError(fmt::format("'{}': expected SETTING=VALUE", change));
    }
    const rapidjson::Value* const value = MemberOf(now, name);
    if (value == nullptr) {
      return base::InvalidArgumentError(
          fmt::format("there is no setting '{}'{}", name, base::DidYouMean(name, names)));
    }
    body.AddMember(TextValue(name, body), ValueLike(*value, change.substr(equals + 1), body),
                   body.GetAllocator());
  }
  return WriteJson(body);
}

bool IsSameNumber(std::string_view a, std::string_view b) {
  int64_t numbers[2] = {};
  for (const auto& [text, number] : {std::pair(a, &numbers[0]), std::pair(b, &numbers[1])}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
    if (error != std::errc() || end != text.data() + text.size()) return false;
  }
  return numbers[0] == numbers[1];
}

bool HasElement(const rapidjson::Value& list, std::string_view text) {
  return std::ranges::any_of(list.GetArray(), [&](const rapidjson::Value& element) {
    return element.IsString() && std::string_view(element.GetString()) == text;
  });
}

// Returns what of `change` the server has ignored, which it does without a word where it does not
// know a value; empty if nothing.
std::string IgnoredPart(std::string_view change, const rapidjson::Document& before,
                        const rapidjson::Document& after) {
  const size_t equals = change.find('=');
  const std::string_view name = change.substr(0, equals);
  std::string_view text = change.substr(equals + 1);
  const rapidjson::Value* const old = MemberOf(before, name);
  const rapidjson::Value* const now = MemberOf(after, name);
  if (text.empty() || old == nullptr || now == nullptr) return {};
  if (!now->IsArray()) {
    const std::string is = TextOfValue(*now);
    const bool is_ignored = is != text && is == TextOfValue(*old) && !IsSameNumber(is, text);
    return is_ignored ? std::string(text) : "";
  }
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view element = text.substr(0, comma);
    if (!HasElement(*now, element)) return std::string(element);
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

base::Status CheckChanges(const std::vector<std::string>& changes,
                          const rapidjson::Document& before, const rapidjson::Document& after) {
  for (const std::string& change : changes) {
    const std::string ignored = IgnoredPart(change, before, after);
    if (ignored.empty()) continue;
    const std::string name = change.substr(0, change.find('='));
    return base::Status(base::StatusCode::kUnknown,
                        fmt::format("the server has ignored '{}', which it does not know: {} is {}",
                                    ignored, name, TextOfValue(*MemberOf(after, name))));
  }
  return base::OkStatus();
}

base::Result<ExitCode> ShowOrChange(const SettingsOfServer& settings, const std::string& path,
                                    ServerClient& client, Output& output) {
  NEREID_ASSIGN_OR_RETURN(rapidjson::Document now, client.GetJson(path));
  if (!now.IsObject()) return UnknownReply();
  if (!settings.changes.empty()) {
    NEREID_ASSIGN_OR_RETURN(std::string body, ChangeBody(settings.changes, now));
    NEREID_RETURN_IF_ERROR(client.PostJson(path, std::move(body)).status());
    NEREID_ASSIGN_OR_RETURN(rapidjson::Document changed, client.GetJson(path));
    if (!changed.IsObject()) return UnknownReply();
    NEREID_RETURN_IF_ERROR(CheckChanges(settings.changes, now, changed));
    now = std::move(changed);
  }
  if (output.wants_json()) {
    output.PrintJson(now);
    return ExitCode::kSuccess;
  }
  Table table({{.title = "SETTING"}, {.title = "VALUE", .may_shrink = true}});
  for (const auto& member : now.GetObject()) {
    table.Add({member.name.GetString(), TextOfValue(member.value)});
  }
  output.PrintTable(table);
  return ExitCode::kSuccess;
}

}  // namespace

void AddTrace(Command& command) {
  auto& settings = command.Keep<SettingsOfServer>();
  command.Describe(
      "Settings that are given are changed; then all are shown. A model has the settings of the "
      "server until it gets its own. Traces need a server that was started with a file or a "
      "collector for them (--trace-config).");
  command.Positional("SETTING=VALUE", settings.changes,
                     "What to change; the levels are a list with commas, and an empty value goes "
                     "back to what the server was started with.");
  command.Option("--model,-m", "MODEL", settings.model, "The settings of this model.")
      .Names(Hint::kModel);
  AddServerOptions(command, settings.server);
  command.AddExample("nereid trace", "The settings of the server.");
  command.AddExample("nereid trace trace_level=TIMESTAMPS trace_rate=100",
                     "Traces one request in a hundred.");
  command.AddExample("nereid trace --model resnet trace_level=",
                     "Lets resnet have the level of the server again.");
  command.OnRun([&settings](Invocation& invocation) {
    const std::string path =
        settings.model ? ModelPath(*settings.model, "", "/trace/setting") : "/v2/trace/setting";
    return AskServer(settings.server, invocation.output, [&](ServerClient& client) {
      return ShowOrChange(settings, path, client, invocation.output);
    });
  });
}

void AddLog(Command& command) {
  auto& settings = command.Keep<SettingsOfServer>();
  command.Describe("Settings that are given are changed; then all are shown.");
  command.Positional("SETTING=VALUE", settings.changes, "What to change.");
  AddServerOptions(command, settings.server);
  command.AddExample("nereid log", "The settings of the log.");
  command.AddExample("nereid log log_verbose_level=1", "Logs each request.");
  command.OnRun([&settings](Invocation& invocation) {
    return AskServer(settings.server, invocation.output, [&](ServerClient& client) {
      return ShowOrChange(settings, "/v2/logging", client, invocation.output);
    });
  });
}

}  // namespace nereid::cli
