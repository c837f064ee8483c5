// SPDX-License-Identifier: Apache-2.0
// One command of the program, as a tree of plain data: what it is for, its arguments, and the
// function that runs it. The parser, the help texts, the completions of shells and the reference in
// docs/commands.md are all made from this.
//
// A command is one file with one function, which commands.cc lists:
//
//   struct LoadSettings {
//     std::string model;
//     ServerOptions server;
//   };
//
//   void AddLoad(Command& command) {
//     auto& settings = command.Keep<LoadSettings>();
//     command.Positional("MODEL", settings.model, "The model to load.").Names(Hint::kModel);
//     AddServerOptions(command, settings.server);
//     command.AddExample("nereid load resnet", "Loads resnet, or loads it again.");
//     command.OnRun([&settings](Invocation& invocation) { return Load(settings, invocation); });
//   }
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cli/output.h"
#include "cli/values.h"

namespace nereid::cli {

struct Invocation;

// What a value names. Shells complete accordingly.
enum class Hint { kNothing, kFile, kFolder, kModel };

// An option, a flag or a positional argument.
struct Argument {
  std::vector<std::string> names;    // {"--url"}, {"--watch", "-w"}; of a positional {"MODEL"}
  std::string value;                 // what help calls the value; empty: a flag, which has none
  std::string help;                  // full sentences
  std::string default_text;          // shown by help, if not empty
  std::optional<std::string> bare;   // the value if the option is given without one
  std::vector<std::string> choices;  // all values, if there are only a few
  std::string variable;              // the environment variable that sets it as well
  std::string group;                 // the heading in help; empty: "Options"
  std::string excludes;              // the option that may not be given with this one
  Hint hint = Hint::kNothing;
  bool is_required = false;
  bool is_repeatable = false;
  // Takes over a value; the error says what was expected.
  std::function<base::Status(std::string_view)> set;

  bool is_positional() const { return !names.front().starts_with('-'); }

  // For use at the end of Command::Flag, Option and Positional.
  // What is always given has no default, whatever its variable contains.
  Argument& Required() { return is_required = true, default_text.clear(), *this; }
  Argument& Bare(std::string text) { return bare = std::move(text), *this; }
  Argument& OneOf(std::vector<std::string> all) { return choices = std::move(all), *this; }
  Argument& Variable(std::string name) { return variable = std::move(name), *this; }
  Argument& In(std::string heading) { return group = std::move(heading), *this; }
  // A value of the other option's environment variable is no conflict.
  Argument& Excludes(std::string name) { return excludes = std::move(name), *this; }
  Argument& Names(Hint what) { return hint = what, *this; }
};

// A command line that help shows, and what it does.
struct Example {
  std::string line;
  std::string text;
};

// Thread-compatible. The types of values are those of values.h. A vector collects the values of an
// option that may be repeated, or all remaining positional arguments; an optional tells whether
// there was a value. What a variable contains beforehand is the default, and help shows it.
class Command {
 public:
  using Run = std::function<ExitCode(Invocation&)>;

  // `summary` is one line for the list of commands, without a full stop.
  Command(std::string name, std::string summary);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Returns an object that lives as long as the command: the place for the values of its options.
  template <typename T>
  T& Keep() {
    auto kept = std::make_shared<T>();
    kept_.push_back(kept);
    return *kept;
  }

  // `names` is one name or several with commas between them: "--watch,-w".
  Argument& Flag(std::string_view names, bool& value, std::string help);

  template <typename T>
  Argument& Option(std::string_view names, const std::string& value_name, T& value,
                   const std::string& help) {
    return Add(SplitNames(names), value_name, value, help);
  }

  // An argument without dashes; required unless T is an optional or a vector. Only the last
  // positional may be either.
  template <typename T>
  Argument& Positional(const std::string& name, T& value, const std::string& help) {
    Argument& argument = Add({name}, name, value, help);
    argument.is_required = !kIsOptional<T> && !argument.is_repeatable;
    return argument;
  }

  // Arguments behind `--`, which are taken as they are: for flags of another program.
  void Rest(std::string value_name, std::vector<std::string>& values) {
    rest_name_ = std::move(value_name);
    rest_ = &values;
  }

  // More about the command than the summary, in full sentences; help shows it below the summary.
  void Describe(std::string text) { description_ = std::move(text); }
  void AddExample(std::string line, std::string text);
  void OnRun(Run run) { run_ = std::move(run); }

  const std::string& name() const { return name_; }
  const std::string& summary() const { return summary_; }
  const std::string& description() const { return description_; }
  // Positional arguments keep their order. The option --json, which every command has, is added by
  // the parser.
  const std::list<Argument>& arguments() const { return arguments_; }
  const std::vector<Example>& examples() const { return examples_; }
  const Run& run() const { return run_; }
  // Empty, and null, if the command takes nothing behind `--`.
  const std::string& rest_name() const { return rest_name_; }
  std::vector<std::string>* rest() const { return rest_; }

 private:
  static std::vector<std::string> SplitNames(std::string_view names);

  template <typename T>
  Argument& Add(const std::vector<std::string>& names, const std::string& value_name, T& value,
                const std::string& help) {
    arguments_.push_back(
        {.names = names,
         .value = value_name,
         .help = help,
         .default_text = FormatValue(value),
         .is_repeatable = std::is_same_v<T, std::vector<std::string>>,
         .set = [&value](std::string_view text) { return ReadValue(text, value); }});
    return arguments_.back();
  }

  const std::string name_;
  const std::string summary_;
  std::string description_;
  std::list<Argument> arguments_;  // a list, because callers keep references while they add
  std::vector<Example> examples_;
  std::string rest_name_;
  std::vector<std::string>* rest_ = nullptr;  // null: nothing is taken behind `--`
  std::vector<std::shared_ptr<void>> kept_;
  Run run_;
};

}  // namespace nereid::cli
