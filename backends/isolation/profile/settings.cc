// SPDX-License-Identifier: Apache-2.0
#include "isolation_profile/settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "isolation_profile/confinement_text.h"

namespace nereid::isolation {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

constexpr const char* kTimeout = "isolation_timeout_secs";
constexpr const char* kMemory = "isolation_memory_mb";
constexpr const char* kNetwork = "isolation_network";
constexpr const char* kFiles = "isolation_files";
constexpr const char* kStrict = "isolation_strict";
constexpr const char* kReadPaths = "isolation_read_paths";
constexpr const char* kWritePaths = "isolation_write_paths";

// The limit on memory holds for what is in use, which is looked at often. The kernel's own limit
// counts what is only reserved, too, and is for a process that grows faster than that.
constexpr uint64_t kReserve = uint64_t{1} << 30;

// Returns a positive number; nothing if there is no such parameter.
Result<std::optional<double>> Number(const backend::ModelConfig& config, const char* key) {
  const std::optional<std::string> text = config.Parameter(key);
  if (!text) return std::optional<double>();
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  if (end == text->c_str() || *end != '\0' || !(value > 0) || value > 1e9) {
    return Error::InvalidArgument(
        StrCat("parameter '", key, "' must be a number above 0, not '", *text, "'"));
  }
  return std::optional(value);
}

Result<bool> Flag(const backend::ModelConfig& config, const char* key) {
  const std::optional<std::string> text = config.Parameter(key);
  if (!text) return false;
  auto flag = backend::ParseBool(*text);
  if (flag.ok()) return flag.value();
  flag.TakeError().Ignore();
  return Error::InvalidArgument(
      StrCat("parameter '", key, "' must be true or false, not '", *text, "'"));
}

// Returns the absolute paths in a list that is separated by colons.
Result<std::vector<std::string>> Paths(const backend::ModelConfig& config, const char* key) {
  std::vector<std::string> paths;
  const std::string text = config.Parameter(key).value_or("");
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string path(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (path.empty()) continue;
    if (path[0] != '/' || path.find(kSeparator) != std::string::npos) {
      return Error::InvalidArgument(
          StrCat("parameter '", key, "' must list absolute paths, not '", path, "'"));
    }
    paths.push_back(path);
  }
  return paths;
}

Result<bool> AllFiles(const backend::ModelConfig& config) {
  const std::string text = config.Parameter(kFiles).value_or("model");
  if (text == "model") return false;
  if (text == "all") return true;
  return Error::InvalidArgument(
      StrCat("parameter '", kFiles, "' must be 'model' or 'all', not '", text, "'"));
}

}  // namespace

Result<Settings> Settings::Parse(const backend::ModelConfig& config) {
  Settings settings;
  NEREID_KIT_ASSIGN(const std::optional<double> timeout, Number(config, kTimeout));
  if (timeout) {
    settings.timeout = std::chrono::milliseconds(std::max(1L, std::lround(*timeout * 1000)));
  }
  NEREID_KIT_ASSIGN(const std::optional<double> megabytes, Number(config, kMemory));
  if (megabytes) settings.memory_bytes = static_cast<uint64_t>(*megabytes * (1 << 20));
  NEREID_KIT_ASSIGN(settings.may_use_network, Flag(config, kNetwork));
  NEREID_KIT_ASSIGN(settings.is_strict, Flag(config, kStrict));
  NEREID_KIT_ASSIGN(settings.may_use_all_files, AllFiles(config));
  NEREID_KIT_ASSIGN(settings.readable, Paths(config, kReadPaths));
  NEREID_KIT_ASSIGN(settings.writable, Paths(config, kWritePaths));
  return settings;
}

std::string Settings::ConfinementFor(const ModelPlaces& places) const {
  TextList text(kSeparator);
  if (!places.model.empty()) text.Add(confine::kModel, places.model);
  for (const auto& paths : {places.readable, readable}) {
    for (const std::string& path : paths) {
      if (!path.empty()) text.Add(confine::kReadable, path);
    }
  }
  for (const std::string& path : writable) text.Add(confine::kWritable, path);
  if (!places.temporary.empty()) text.Add(confine::kWritable, places.temporary);
  for (const std::string& path : places.libraries) text.Add(confine::kLibrary, path);
  if (may_use_network) text.Add(confine::kNetwork, "1");
  if (may_use_all_files) text.Add(confine::kFiles, "1");
  if (is_strict) text.Add(confine::kStrict, "1");
  if (memory_bytes != 0) {
    text.Add(confine::kMemory, std::to_string(2 * memory_bytes + kReserve));
  }
  return text.text();
}

}  // namespace nereid::isolation
