// SPDX-License-Identifier: Apache-2.0
// nereid keys: the API keys in a file of --api-keys.
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "access/key_file.h"
#include "access/rules.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/table.h"

namespace nereid::cli {
namespace {

struct KeysSettings {
  std::string action;
  std::optional<std::string> id;
  std::string file;
  std::vector<std::string> scopes;
  std::vector<std::string> models;
  std::optional<std::string> expires;
};

ExitCode Report(const base::Status& status, Output& output) {
  const bool is_usage = status.code() == base::StatusCode::kInvalidArgument;
  return output.Fail(is_usage ? ExitCode::kUsage : ExitCode::kFailure, status.message());
}

ExitCode AddOne(const KeysSettings& settings, Output& output) {
  if (const auto expires = access::ParseTime(settings.expires.value_or(""));
      expires && *expires <= std::time(nullptr)) {
    return output.Fail(ExitCode::kUsage,
                       fmt::format("--expires {} has passed: the key would be invalid at once",
                                   *settings.expires));
  }
  const base::Result<std::string> key =
      access::AddKey(settings.file, {.id = *settings.id,
                                     .scopes = settings.scopes,
                                     .models = settings.models,
                                     .expires = settings.expires.value_or(""),
                                     .created = {}});
  if (!key.ok()) return Report(key.status(), output);
  if (output.wants_json()) {
    rapidjson::Document document(rapidjson::kObjectType);
    AddMember(document, document, "id", TextValue(*settings.id, document));
    AddMember(document, document, "key", TextValue(*key, document));
    output.PrintJson(document);
  } else {
    output.PrintText(*key + "\n");
  }
  if (!output.Flush()) {
    // Nobody has seen the key, and the file cannot tell it.
    const base::Status removed = access::RevokeKey(settings.file, *settings.id);
    return output.Fail(
        ExitCode::kFailure,
        fmt::format("the key cannot be shown; {}",
                    removed.ok() ? fmt::format("'{}' is removed again", *settings.id)
                                 : fmt::format("revoke '{}', which is in the file: {}",
                                               *settings.id, removed.message())));
  }
  output.Note("Keep this key: the file has only its hash. Running servers know it in a second.");
  return ExitCode::kSuccess;
}

ExitCode Revoke(const KeysSettings& settings, Output& output) {
  const base::Status status = access::RevokeKey(settings.file, *settings.id);
  if (!status.ok()) return Report(status, output);
  if (output.wants_json()) {
    rapidjson::Document document(rapidjson::kObjectType);
    AddMember(document, document, "revoked", TextValue(*settings.id, document));
    output.PrintJson(document);
  }
  output.Note("Running servers refuse the key in a second.");
  return ExitCode::kSuccess;
}

rapidjson::Value ListValue(const std::vector<std::string>& texts, rapidjson::Document& document) {
  rapidjson::Value list(rapidjson::kArrayType);
  for (const std::string& text : texts) {
    list.PushBack(TextValue(text, document), document.GetAllocator());
  }
  return list;
}

ExitCode List(const KeysSettings& settings, Output& output) {
  const base::Result<std::vector<access::KeyEntry>> keys = access::ListKeys(settings.file);
  if (!keys.ok()) return Report(keys.status(), output);
  Table table({{.title = "ID"},
               {.title = "SCOPES", .may_shrink = true},
               {.title = "MODELS", .may_shrink = true},
               {.title = "EXPIRES"},
               {.title = "CREATED"}});
  rapidjson::Document document(rapidjson::kArrayType);
  for (const access::KeyEntry& key : *keys) {
    table.Add({key.id, fmt::format("{}", fmt::join(key.scopes, ",")),
               key.models.empty() ? "all" : fmt::format("{}", fmt::join(key.models, ",")),
               key.expires.empty() ? "never" : key.expires, key.created});
    rapidjson::Value one(rapidjson::kObjectType);
    AddMember(document, one, "id", TextValue(key.id, document));
    AddMember(document, one, "scopes", ListValue(key.scopes, document));
    AddMember(document, one, "models", ListValue(key.models, document));
    AddMember(document, one, "expires", TextValue(key.expires, document));
    AddMember(document, one, "created", TextValue(key.created, document));
    document.PushBack(one, document.GetAllocator());
  }
  if (output.wants_json()) {
    output.PrintJson(document);
  } else {
    output.PrintTable(table);
  }
  return ExitCode::kSuccess;
}

ExitCode Keys(const KeysSettings& settings, Output& output) {
  if (settings.action == "list") return List(settings, output);
  if (!settings.id) {
    return output.Fail(ExitCode::kUsage, fmt::format("{} needs the ID of a key", settings.action));
  }
  if (settings.action == "revoke") return Revoke(settings, output);
  if (settings.scopes.empty()) {
    return output.Fail(ExitCode::kUsage, "add needs at least one --scope");
  }
  return AddOne(settings, output);
}

}  // namespace

void AddKeys(Command& command) {
  auto& settings = command.Keep<KeysSettings>();
  command.Describe(
      "Adds a key and prints it, lists the keys, or revokes one, in a file for --api-keys. The "
      "file contains hashes only, so a lost key cannot be shown again. Servers that use the file "
      "read it again by themselves.");
  command.Positional("ACTION", settings.action, "What to do.").OneOf({"add", "list", "revoke"});
  command.Positional("ID", settings.id, "The name of the key, which logs show.");
  command
      .Option("--file,-f", "FILE", settings.file,
              "The file of --api-keys; made by the first key that is added.")
      .Variable("NEREID_KEYS_FILE")
      .Names(Hint::kFile)
      .Required();
  command
      .Option("--scope,-s", "SCOPE", settings.scopes,
              "What the key permits; admin permits everything.")
      .OneOf(
          {"infer", "metadata", "metrics", "model-control", "shared-memory", "trace-log", "admin"});
  command.Option("--model,-m", "PATTERN", settings.models,
                 "Models that the key is for, with * and ? as wildcards. By default all.");
  command.Option("--expires", "TIME", settings.expires,
                 "When the key becomes invalid: 2027-01-31 or 2027-01-31T12:00:00Z (UTC).");
  command.AddExample("nereid keys add ci --file keys.json --scope infer --model 'resnet*'",
                     "Makes keys.json with a key that may only use models whose names begin with "
                     "resnet.");
  command.AddExample("nereid keys revoke ci --file keys.json", "Makes the key invalid.");
  command.OnRun([&settings](Invocation& invocation) { return Keys(settings, invocation.output); });
}

}  // namespace nereid::cli
