// SPDX-License-Identifier: Apache-2.0
// nereid help
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/json.h"

namespace nereid::cli {
namespace {

struct HelpSettings {
  std::optional<std::string> command;
};

constexpr std::string_view kBegin =
    "Nereid serves models over HTTP and gRPC.\n\n"
    "Usage: nereid COMMAND [arguments]\n"
    "       nereid --model-repository FOLDER [flags]   the server, with the flags of Triton\n\n";
constexpr std::string_view kEnd =
    "\n'nereid help COMMAND' explains a command, 'nereid --help' lists the flags of the server.\n";

template <typename List>
rapidjson::Value TextList(const List& texts, rapidjson::Document& document) {
  rapidjson::Value list(rapidjson::kArrayType);
  for (const std::string& text : texts) {
    list.PushBack(TextValue(text, document), document.GetAllocator());
  }
  return list;
}

rapidjson::Value ArgumentJson(const Argument& argument, rapidjson::Document& document) {
  rapidjson::Value value(rapidjson::kObjectType);
  AddMember(document, value, "names", TextList(argument.names, document));
  AddMember(document, value, "title", TextValue(ArgumentTitle(argument), document));
  AddMember(document, value, "value", TextValue(argument.value, document));
  AddMember(document, value, "help", TextValue(ArgumentHelp(argument), document));
  AddMember(document, value, "group", TextValue(argument.group, document));
  AddMember(document, value, "choices", TextList(argument.choices, document));
  AddMember(document, value, "default", TextValue(argument.default_text, document));
  AddMember(document, value, "variable", TextValue(argument.variable, document));
  AddMember(document, value, "required", rapidjson::Value(argument.is_required));
  AddMember(document, value, "repeatable", rapidjson::Value(argument.is_repeatable));
  return value;
}

rapidjson::Value CommandJson(const CommandEntry& entry, rapidjson::Document& document) {
  const BuiltCommand built = BuildCommand(entry);
  const Command& command = *built.command;
  rapidjson::Value value(rapidjson::kObjectType);
  AddMember(document, value, "name", TextValue(command.name(), document));
  AddMember(document, value, "group", TextValue(entry.group, document));
  AddMember(document, value, "summary", TextValue(command.summary(), document));
  AddMember(document, value, "description", TextValue(command.description(), document));
  AddMember(document, value, "usage", TextValue(UsageLine(command), document));
  rapidjson::Value arguments(rapidjson::kArrayType);
  for (const Argument& argument : command.arguments()) {
    arguments.PushBack(ArgumentJson(argument, document), document.GetAllocator());
  }
  AddMember(document, value, "arguments", std::move(arguments));
  rapidjson::Value examples(rapidjson::kArrayType);
  for (const Example& example : command.examples()) {
    rapidjson::Value one(rapidjson::kObjectType);
    AddMember(document, one, "line", TextValue(example.line, document));
    AddMember(document, one, "text", TextValue(example.text, document));
    examples.PushBack(one, document.GetAllocator());
  }
  AddMember(document, value, "examples", std::move(examples));
  return value;
}

ExitCode Help(const HelpSettings& settings, Invocation& invocation) {
  Output& output = invocation.output;
  const CommandEntry* const entry = settings.command ? FindCommand(*settings.command) : nullptr;
  if (output.wants_json()) {
    rapidjson::Document document;
    if (entry != nullptr) {
      rapidjson::Value value = CommandJson(*entry, document);
      static_cast<rapidjson::Value&>(document).Swap(value);
    } else {
      document.SetArray();
      for (const CommandEntry& one : AllCommands()) {
        document.PushBack(CommandJson(one, document), document.GetAllocator());
      }
    }
    output.PrintJson(document);
  } else if (entry != nullptr) {
    output.PrintText(CommandHelp(*BuildCommand(*entry).command, HelpWidth(output)));
  } else {
    output.PrintText(fmt::format("{}{}{}", kBegin, CommandList(), kEnd));
  }
  return ExitCode::kSuccess;
}

}  // namespace

void AddHelp(Command& command) {
  auto& settings = command.Keep<HelpSettings>();
  std::vector<std::string> names;
  for (const CommandEntry& entry : AllCommands()) names.emplace_back(entry.name);
  command.Describe("With --json, all that is known about commands and options, for programs.");
  command.Positional("COMMAND", settings.command, "The command to explain.").OneOf(names);
  command.OnRun([&settings](Invocation& invocation) { return Help(settings, invocation); });
}

}  // namespace nereid::cli
