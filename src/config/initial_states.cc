// SPDX-License-Identifier: Apache-2.0
#include "config/initial_states.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "base/read_all.h"
#include "config/paths.h"

namespace nereid::config {
namespace {

base::Result<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return base::InternalError(
        fmt::format("failed to open text file for read {}: {}", path, std::strerror(errno)));
  }
  std::string content = base::ReadAll(in);
  if (in.bad()) return base::InternalError(fmt::format("failed to read file {}", path));
  return content;
}

}  // namespace

base::Result<std::map<std::string, std::string, std::less<>>> ReadInitialStates(
    const ModelConfig& config, const std::string& model_folder) {
  std::map<std::string, std::string, std::less<>> files;
  const SequenceBatching* const batching = config.sequence_batching();
  if (batching == nullptr) return files;
  const std::string folder = JoinPath(model_folder, "initial_state");
  for (const SequenceBatching::State& state : batching->state) {
    for (const SequenceBatching::InitialState& initial : state.initial_state) {
      const auto* const file = std::get_if<SequenceBatching::DataFile>(&initial.state_data);
      if (file == nullptr || files.contains(file->path)) continue;
      const std::string path = JoinPath(folder, file->path);
      NEREID_ASSIGN_OR_RETURN(const bool escapes, PathEscapes(path, model_folder));
      if (escapes) {
        return base::InvalidArgumentError(fmt::format(
            "initial state file '{}' of state '{}' in model '{}' is outside model directory", path,
            state.input_name, config.name));
      }
      NEREID_ASSIGN_OR_RETURN(files[file->path], ReadFile(path));
    }
  }
  return files;
}

}  // namespace nereid::config
