// SPDX-License-Identifier: Apache-2.0
#include "repository/advice.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "base/nearest_name.h"
#include "config/complete.h"
#include "config/paths.h"
#include "config/versions.h"

namespace nereid::repository {
namespace {

using config::JoinPath;

constexpr std::string_view kConfigFile = "config.pbtxt";

std::string Quoted(const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return base::QuotedList(views);
}

std::vector<std::string> Names(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}

const Entry* FindModelFile(const std::vector<Entry>& entries) {
  const auto found = std::ranges::find_if(entries, [](const Entry& entry) {
    return config::FrameworkOfFile(entry.name, entry.is_folder).has_value();
  });
  return found == entries.end() ? nullptr : &*found;
}

// Recognises extensions of text editors, names in other servers and libraries, and misspellings.
bool LooksLikeConfig(std::string_view name) {
  constexpr std::array<std::string_view, 6> kOthers = {
      "config.json", "config.txt", "config.prototxt", "config.proto", "config.yaml", "config.yml"};
  if (name.ends_with(".pbtxt") || std::ranges::find(kOthers, name) != kOthers.end()) return true;
  return !base::NearestName(name, std::array{kConfigFile}).empty();
}

}  // namespace

std::string WithAdvice(std::string_view text, std::string_view advice) {
  if (advice.empty()) return std::string(text);
  return fmt::format("{}{}{}", text, text.ends_with('.') ? " " : ". ", advice);
}

std::string NoVersionAdvice(const std::string& folder, const std::vector<Entry>& entries,
                            const config::ModelConfig& config) {
  if (const Entry* const file = FindModelFile(entries)) {
    const auto framework = config::FrameworkOfFile(file->name, file->is_folder);
    const std::string target = JoinPath(folder, "1");
    return fmt::format(
        "There is no version folder in '{}': move '{}' to '{}'.", folder, file->name,
        JoinPath(target, config.default_model_filename.empty() ? framework->file
                                                               : config.default_model_filename));
  }
  std::vector<std::string> others;  // folders that are probably meant as versions
  for (const Entry& entry : entries) {
    const config::VersionName name = config::ParseVersionName(entry.name);
    if (name.version && !entry.is_folder) {
      return fmt::format("'{}' is a file, expected the folder of a version.",
                         JoinPath(folder, entry.name));
    }
    if (entry.is_folder && !name.warning.empty()) others.push_back(entry.name);
  }
  if (others.empty()) {
    return fmt::format(
        "There is no version folder in '{}', expected at least one, such as '{}'{}.", folder,
        JoinPath(folder, "1"),
        config.ensemble_scheduling() == nullptr
            ? ""
            : "; that of an ensemble may be empty, but git does not keep empty folders");
  }
  return fmt::format(
      "Found the folder{} {} in '{}', expected the folder of a version: its name is a number "
      "without "
      "leading zeros, such as '1'.",
      others.size() == 1 ? "" : "s", Quoted(others), folder);
}

std::string PolicyAdvice(const std::string& folder, const config::VersionPolicy& policy,
                         const std::set<int64_t>& versions) {
  std::vector<std::string> wanted;
  if (const auto* specific = std::get_if<config::VersionPolicy::Specific>(&policy.choice)) {
    for (const int64_t version : specific->versions) wanted.push_back(std::to_string(version));
  }
  std::vector<std::string> found;
  for (const int64_t version : versions) found.push_back(std::to_string(version));
  const std::string asked = wanted.empty()       ? "no version"
                            : wanted.size() == 1 ? "version " + Quoted(wanted)
                                                 : "versions " + Quoted(wanted);
  return fmt::format("The policy asks for {}, and '{}' has {}.", asked, folder, Quoted(found));
}

std::string NoBackendAdvice(const std::string& folder, const std::string& version,
                            const std::vector<Entry>& contents) {
  const std::string place = JoinPath(folder, version);
  const std::string config_path = JoinPath(folder, kConfigFile);
  if (contents.empty()) {
    return fmt::format("'{}' is empty, expected a model file such as 'model.onnx' or 'model.py'.",
                       place);
  }
  if (const Entry* const file = FindModelFile(contents)) {
    const auto framework = config::FrameworkOfFile(file->name, file->is_folder);
    return fmt::format(
        "Found '{0}' in '{1}', expected '{2}': rename it, or write backend: \"{3}\" and "
        "default_model_filename: \"{0}\" into '{4}'.",
        file->name, place, framework->file, framework->backend, config_path);
  }
  return fmt::format(
      "Found {} in '{}', expected a model file such as 'model.onnx' or 'model.py', or the name of "
      "a "
      "backend in '{}'.",
      Quoted(Names(contents)), place, config_path);
}

std::string MisplacedConfigAdvice(const std::string& folder, const std::vector<Entry>& entries,
                                  const std::string& version, const std::vector<Entry>& contents) {
  const auto advice = [&](const std::string& found) {
    return fmt::format("'{}' is not read, expected the configuration in '{}'.", found,
                       JoinPath(folder, kConfigFile));
  };
  for (const Entry& entry : entries) {
    if (!entry.is_folder && LooksLikeConfig(entry.name))
      return advice(JoinPath(folder, entry.name));
  }
  // In the version folder only config.pbtxt counts, because models have other configuration files
  // of their own.
  for (const Entry& entry : contents) {
    if (entry.is_folder || entry.name != kConfigFile) continue;
    return advice(JoinPath(JoinPath(folder, version), entry.name));
  }
  return {};
}

}  // namespace nereid::repository
