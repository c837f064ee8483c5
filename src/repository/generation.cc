// SPDX-License-Identifier: Apache-2.0
#include "repository/generation.h"

#include <charconv>

#include <fmt/format.h>

#include "config/paths.h"

namespace nereid::repository {
namespace {

// Each attempt but the last was overtaken by another writer, so even many of them get their turn.
constexpr int kAttempts = 100;

std::string PathIn(const std::string& repository) {
  return config::JoinPath(repository, kGenerationFile);
}

base::Status NoGeneration(std::string_view why) {
  return base::InternalError(fmt::format("{}: {}", kGenerationFile, why));
}

// Takes the text up to `end` from the front, without `end`; nothing if `end` is not in it.
std::optional<std::string_view> TakeUpTo(char end, std::string_view& text) {
  const size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

// A number of a generation: from 1, with room to count on.
std::optional<uint64_t> ToNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number == 0 || number > INT64_MAX) return std::nullopt;
  return number;
}

// A name that can be that of a model, and stands on one line.
bool IsName(std::string_view name) {
  return config::ValidateModelName(name).ok() && name.find('\n') == std::string_view::npos;
}

// Reads the line of a model.
base::Status AddWish(std::string_view line, Generation& generation) {
  const auto verb = TakeUpTo(' ', line);
  const auto number = ToNumber(TakeUpTo(' ', line).value_or(""));
  if ((verb != "load" && verb != "unload") || !number || !IsName(line)) {
    return NoGeneration("a line is not 'load NUMBER MODEL' or 'unload NUMBER MODEL'");
  }
  const Wish wish{.is_loaded = verb == "load", .generation = *number};
  if (!generation.wishes.emplace(line, wish).second) {
    return NoGeneration("two lines are for one model");
  }
  return base::OkStatus();
}

base::Result<Generation> ParseFile(const std::optional<SmallFile>& file) {
  return file ? ParseGeneration(file->text) : Generation();
}

}  // namespace

base::Result<Generation> ParseGeneration(std::string_view text) {
  Generation generation;
  const std::string_view first = TakeUpTo('\n', text).value_or("");
  constexpr std::string_view kFirst = "generation ";
  const auto number =
      first.starts_with(kFirst) ? ToNumber(first.substr(kFirst.size())) : std::nullopt;
  if (!number) return NoGeneration("the first line is not 'generation NUMBER'");
  generation.number = *number;
  while (const auto line = TakeUpTo('\n', text)) {
    if (*line == "end" && text.empty()) return generation;
    NEREID_RETURN_IF_ERROR(AddWish(*line, generation));
  }
  return NoGeneration("the last line is not 'end'");
}

std::string PrintGeneration(const Generation& generation) {
  std::string text = fmt::format("generation {}\n", generation.number);
  for (const auto& [name, wish] : generation.wishes) {
    text += fmt::format("{} {} {}\n", wish.is_loaded ? "load" : "unload", wish.generation, name);
  }
  return text + "end\n";
}

base::Result<Generation> ReadGeneration(const Store& store, const std::string& repository,
                                        const std::stop_token& stop) {
  NEREID_ASSIGN_OR_RETURN(const auto file,
                          store.ReadNow(PathIn(repository), kMaxGenerationBytes, stop));
  return ParseFile(file);
}

base::Result<Generation> Ask(const Store& store, const std::string& repository,
                             const std::string& model, bool is_loaded) {
  NEREID_RETURN_IF_ERROR(config::ValidateModelName(model));
  if (!IsName(model)) return base::InvalidArgumentError("the name of the model has two lines");
  NEREID_RETURN_IF_ERROR(store.CheckRepository(repository));
  const bool is_there = store.IsFolder(config::JoinPath(repository, model));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    NEREID_ASSIGN_OR_RETURN(const auto before,
                            store.ReadNow(PathIn(repository), kMaxGenerationBytes, {}));
    NEREID_ASSIGN_OR_RETURN(Generation generation, ParseFile(before));
    if (!is_there && (is_loaded || !generation.wishes.contains(model))) {
      return base::NotFoundError(
          fmt::format("there is no model '{}' in the repository '{}'", model, repository));
    }
    generation.wishes[model] = {.is_loaded = is_loaded, .generation = ++generation.number};
    const std::string text = PrintGeneration(generation);
    if (text.size() > kMaxGenerationBytes) return NoGeneration("it names too many models");
    NEREID_ASSIGN_OR_RETURN(const bool is_written, store.Replace(PathIn(repository), text, before));
    if (is_written) return generation;
  }
  return base::UnavailableError(
      fmt::format("{}: others change it all the time", PathIn(repository)));
}

}  // namespace nereid::repository
