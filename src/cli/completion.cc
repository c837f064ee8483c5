// SPDX-License-Identifier: Apache-2.0
// nereid completion
#include "cli/completion.h"

#include "cli/commands.h"
#include "cli/json.h"

namespace nereid::cli {
namespace {

struct CompletionSettings {
  std::string shell;
};

ExitCode PrintCompletion(const CompletionSettings& settings, Invocation& invocation) {
  CompletionInput input{.commands = {}, .flags = invocation.server.flags()};
  for (const CommandEntry& entry : AllCommands()) {
    input.commands.push_back(BuildCommand(entry).command);
  }
  const std::string script = settings.shell == "bash"  ? BashCompletion(input)
                             : settings.shell == "zsh" ? ZshCompletion(input)
                                                       : FishCompletion(input);
  if (!invocation.output.wants_json()) {
    invocation.output.PrintText(script);
    return ExitCode::kSuccess;
  }
  rapidjson::Document document;
  document.SetObject();
  AddMember(document, document, "shell", TextValue(settings.shell, document));
  AddMember(document, document, "script", TextValue(script, document));
  invocation.output.PrintJson(document);
  return ExitCode::kSuccess;
}

}  // namespace

void Replace(std::string& text, std::string_view mark, std::string_view by) {
  text.replace(text.find(mark), mark.size(), by);
}

std::string FirstSentence(std::string_view help) {
  std::string_view sentence = help.substr(0, help.find(". "));
  if (sentence.ends_with('.')) sentence.remove_suffix(1);
  return std::string(sentence);
}

void AddCompletion(Command& command) {
  auto& settings = command.Keep<CompletionSettings>();
  command.Describe(
      "Commands, options, their values, files, the flags of the server and, where a server runs, "
      "the "
      "names of its models are completed.");
  command.Positional("SHELL", settings.shell, "The shell.").OneOf({"bash", "zsh", "fish"});
  command.AddExample("source <(nereid completion bash)", "For this bash; in ~/.bashrc, for each.");
  command.AddExample("nereid completion zsh > \"${fpath[1]}/_nereid\"", "For every new zsh.");
  command.AddExample("nereid completion fish > ~/.config/fish/completions/nereid.fish",
                     "For every new fish.");
  command.OnRun(
      [&settings](Invocation& invocation) { return PrintCompletion(settings, invocation); });
}

}  // namespace nereid::cli
