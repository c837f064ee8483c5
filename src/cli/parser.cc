// SPDX-License-Identifier: Apache-2.0
#include "cli/parser.h"

#include <algorithm>
#include <cstdlib>
#include <list>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "base/nearest_name.h"

namespace nereid::cli {
namespace {

// What the command line said about an argument.
struct Given {
  const Argument* argument;
  std::vector<std::string> values;  // a flag has an empty one
  bool is_given = false;
};

std::vector<std::string_view> Views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

const Argument* FindOption(const Command& command, std::string_view name) {
  for (const Argument& argument : command.arguments()) {
    if (argument.is_positional()) continue;
    if (std::ranges::find(argument.names, name) != argument.names.end()) return &argument;
  }
  return nullptr;
}

bool Accepts(const Argument& argument, const std::string& value) {
  if (!argument.choices.empty()) {
    return std::ranges::find(argument.choices, value) != argument.choices.end();
  }
  // Trying a value sets it, but every option that was given is set again later.
  return argument.set(value).ok();
}

// The library has other ideas than people about these: it takes the next argument for the value of
// `--name=`, and it cannot know whether a value belongs to an option that may go without one. The
// former becomes an error, the latter `--name=value` if the next argument is no valid value.
base::Status Prepare(const Command& command, std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    const Argument* const option = FindOption(command, name);
    if (option == nullptr) continue;
    if (equals != std::string::npos) {
      if (option->value.empty()) {
        return base::InvalidArgumentError(fmt::format("option '{}' takes no value", name));
      }
      if (equals + 1 == arguments[i].size()) {
        return base::InvalidArgumentError(fmt::format("option '{}' needs a value after '='", name));
      }
    } else if (option->bare) {
      if (i + 1 < arguments.size() && Accepts(*option, arguments[i + 1])) {
        ++i;
      } else {
        arguments[i] = fmt::format("{}={}", option->names.front(), *option->bare);
      }
    } else if (!option->value.empty()) {
      ++i;
    }
  }
  return base::OkStatus();
}

base::Status Refused(std::string_view name, std::string_view value, std::string_view why) {
  return base::InvalidArgumentError(fmt::format("{} '{}': {}", name, value, why));
}

// Hands a value to the command. `name` is what the user called the argument.
base::Status Take(const Argument& argument, std::string_view name, const std::string& value) {
  if (!argument.choices.empty() &&
      std::ranges::find(argument.choices, value) == argument.choices.end()) {
    const std::vector<std::string_view> choices = Views(argument.choices);
    return Refused(name, value,
                   fmt::format("expected one of {}{}", base::QuotedList(choices),
                               base::DidYouMean(value, choices)));
  }
  const base::Status status = argument.set(value);
  return status.ok() ? status : Refused(name, value, status.message());
}

// Declares the arguments to the library, which collects their values in `given`. The last
// positional argument of a command takes all that is left if it is repeatable; the library would
// take values in brackets for lists there.
void Declare(CLI::App& app, std::list<Given>& given) {
  app.set_help_flag("-h,--help");
  app.allow_extras();
  for (Given& one : given) {
    const Argument& argument = *one.argument;
    if (argument.is_positional() && argument.is_repeatable) continue;
    if (argument.value.empty()) {
      app.add_flag_function(fmt::format("{}", fmt::join(argument.names, ",")),
                            [&one](int64_t) { one.is_given = true, one.values = {""}; });
      continue;
    }
    CLI::Option* const option =
        app.add_option(argument.is_positional() ? std::string("positional") + argument.names.front()
                                                : fmt::format("{}", fmt::join(argument.names, ",")),
                       [&one](const CLI::results_t& results) {
                         one.is_given = true;
                         one.values = results;
                         return true;
                       });
    option->expected(1)->allow_extra_args(false)->multi_option_policy(
        argument.is_repeatable ? CLI::MultiOptionPolicy::TakeAll
                               : CLI::MultiOptionPolicy::TakeLast);
  }
}

// Gives what the library could not assign to the repeatable positional argument.
base::Status TakeRest(const Command& command, const std::vector<std::string>& rest,
                      std::list<Given>& given) {
  Given* list = nullptr;
  std::vector<std::string_view> names = {"help"};  // without the dashes, which all have
  for (Given& one : given) {
    if (!one.argument->is_positional()) {
      for (const std::string_view name : one.argument->names) {
        if (name.starts_with("--")) names.push_back(name.substr(2));
      }
    } else if (one.argument->is_repeatable) {
      list = &one;
    }
  }
  for (const std::string& text : rest) {
    if (text.size() > 1 && text.starts_with('-')) {
      const std::string name = text.substr(0, text.find('='));
      const std::string_view meant =
          base::NearestName(std::string_view(name).substr(name.starts_with("--") ? 2 : 1), names);
      return base::InvalidArgumentError(
          fmt::format("unknown option '{}'{}", name,
                      meant.empty() ? "" : fmt::format("; did you mean '--{}'?", meant)));
    }
    if (list == nullptr) {
      return base::InvalidArgumentError(
          fmt::format("'{}' is one argument too many for 'nereid {}'", text, command.name()));
    }
    list->is_given = true;
    list->values.push_back(text);
  }
  return base::OkStatus();
}

base::Status SetValues(const std::list<Given>& given) {
  for (const Given& one : given) {
    const Argument& argument = *one.argument;
    const char* const variable =
        argument.variable.empty() ? nullptr : std::getenv(argument.variable.c_str());
    if (!one.is_given && variable != nullptr && *variable != '\0') {
      NEREID_RETURN_IF_ERROR(Take(argument, argument.variable, variable));
      continue;
    }
    for (const std::string& value : one.values) {
      NEREID_RETURN_IF_ERROR(Take(argument, argument.names.front(), value));
    }
    if (argument.is_required && !one.is_given) {
      return base::InvalidArgumentError(
          fmt::format("{} is missing", argument.is_positional()
                                           ? argument.names.front()
                                           : fmt::format("option '{}'", argument.names.front())));
    }
  }
  return base::OkStatus();
}

// Refuses options that exclude each other. What an environment variable says gives way to options.
base::Status CheckExclusions(const std::list<Given>& given) {
  for (const Given& one : given) {
    const std::string& excluded = one.argument->excludes;
    if (!one.is_given || excluded.empty()) continue;
    for (const Given& other : given) {
      if (other.is_given && std::ranges::count(other.argument->names, excluded) > 0) {
        return base::InvalidArgumentError(
            fmt::format("options '{}' and '{}' exclude each other; give one of them",
                        one.argument->names.front(), excluded));
      }
    }
  }
  return base::OkStatus();
}

}  // namespace

base::Result<ParsedArguments> Parse(const Command& command, std::vector<std::string> arguments) {
  std::list<Given> given;
  for (const Argument& argument : command.arguments()) given.push_back({.argument = &argument});
  if (command.rest() != nullptr) {
    const auto dashes = std::ranges::find(arguments, "--");
    if (dashes != arguments.end()) command.rest()->assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
  }
  NEREID_RETURN_IF_ERROR(Prepare(command, arguments));
  CLI::App app;
  try {
    Declare(app, given);
    std::ranges::reverse(arguments);  // as the library wants it
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return ParsedArguments{.wants_help = true};
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string_view text = error.what();
    return base::InvalidArgumentError(
        fmt::format("option '{}' needs a value", text.substr(0, text.find(':'))));
  } catch (const CLI::Error& error) {
    return base::InvalidArgumentError(error.what());
  }
  NEREID_RETURN_IF_ERROR(TakeRest(command, app.remaining(), given));
  NEREID_RETURN_IF_ERROR(CheckExclusions(given));
  NEREID_RETURN_IF_ERROR(SetValues(given));
  return ParsedArguments{};
}

}  // namespace nereid::cli
