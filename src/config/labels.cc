// SPDX-License-Identifier: Apache-2.0
#include "config/labels.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "config/paths.h"

namespace nereid::config {

base::Result<Labels> Labels::Load(const ModelConfig& config, const std::string& model_folder) {
  Labels labels;
  for (const ModelOutput& output : config.output) {
    if (output.label_filename.empty()) continue;
    const std::string path = JoinPath(model_folder, output.label_filename);
    NEREID_ASSIGN_OR_RETURN(const bool escapes, PathEscapes(path, model_folder));
    if (escapes) {
      return base::UnsupportedError(fmt::format(
          "label file path '{}' for output '{}' in model '{}' is outside model directory", path,
          output.name, config.name));
    }
    std::ifstream in(path, std::ios::binary);
    if (!in) {
      return base::InternalError(
          fmt::format("failed to open text file for read {}: {}", path, std::strerror(errno)));
    }
    const auto [entry, is_new] = labels.labels_.try_emplace(output.name);
    if (!is_new) {
      return base::InternalError(fmt::format("multiple label files for '{}'", output.name));
    }
    for (std::string line; std::getline(in, line);) entry->second.push_back(line);
    // Opening a folder succeeds; the first read fails.
    if (in.bad()) {
      return base::InternalError(fmt::format("failed to read text file {}", path));
    }
  }
  return labels;
}

const std::vector<std::string>& Labels::Of(std::string_view output) const {
  static const std::vector<std::string> none;
  const auto found = labels_.find(output);
  return found == labels_.end() ? none : found->second;
}

}  // namespace nereid::config
