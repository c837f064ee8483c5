// SPDX-License-Identifier: Apache-2.0
#include "config/paths.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/trim.h"
#include "base/utf8.h"
#include "config/errors.h"

namespace nereid::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBlanks = " \t\n\v\f\r";

bool HasParentComponent(std::string_view path) {
  for (const fs::path& component : fs::path(path)) {
    if (component == "..") return true;
  }
  return false;
}

// Collects the errors about paths in one configuration.
class PathCheck {
 public:
  PathCheck(const ModelConfig& config, const std::string& model_folder)
      : config_(config), model_folder_(model_folder) {}

  ErrorList Run() {
    for (size_t i = 0; i < config_.output.size(); ++i) Label(i);
    if (!config_.default_model_filename.empty()) {
      ModelFile("default_model_filename", config_.default_model_filename);
    }
    for (const auto& [capability, name] : config_.cc_model_filenames) {
      ModelFile(fmt::format("cc_model_filenames['{}']", capability), name);
    }
    for (size_t i = 0; i < config_.model_warmup.size(); ++i) Warmup(i);
    if (config_.sequence_batching() != nullptr) InitialStates();
    BatchingLibrary();
    return std::move(errors_);
  }

 private:
  void Add(base::StatusCode code, std::string text, std::string field, const std::string& found) {
    errors_.Add({code, std::move(text), std::move(field), "'" + found + "'",
                 "a path inside the model's folder", "path-outside"});
  }

  // A path that cannot be resolved counts as outside, so it is never opened.
  bool Escapes(const std::string& path) const {
    const auto escapes = PathEscapes(path, model_folder_);
    return !escapes.ok() || *escapes;
  }

  void Label(size_t i) {
    const ModelOutput& output = config_.output[i];
    if (output.label_filename.empty()) return;
    const std::string path = JoinPath(model_folder_, output.label_filename);
    if (!Escapes(path)) return;
    Add(base::StatusCode::kUnsupported,
        fmt::format("label file path '{}' for output '{}' in model '{}' is outside model directory",
                    path, output.name, config_.name),
        fmt::format("output[{}].label_filename", i), output.label_filename);
  }

  // Model files are often links into a shared store, so only the written path is checked. A path
  // with ".." depends on the links in it, so the resolved path is checked instead; any version
  // folder will do, because all are one level deep.
  void ModelFile(std::string field, const std::string& name) {
    const bool outside =
        name.find('\0') != std::string::npos ||
        (HasParentComponent(name) && Escapes(JoinPath(JoinPath(model_folder_, "1"), name)));
    if (!outside) return;
    Add(base::StatusCode::kInvalidArgument,
        fmt::format("model file path '{}' of model '{}' is outside model directory", name,
                    config_.name),
        std::move(field), name);
  }

  void DataFile(std::string field, std::string_view what, std::string_view folder,
                const std::string& name) {
    const std::string path = JoinPath(JoinPath(model_folder_, folder), name);
    if (!Escapes(path)) return;
    Add(base::StatusCode::kInvalidArgument,
        fmt::format("{} data file path '{}' in model '{}' is outside model directory", what, path,
                    config_.name),
        std::move(field), name);
  }

  void Warmup(size_t i) {
    for (const auto& [name, input] : config_.model_warmup[i].inputs) {
      if (const auto* file = std::get_if<ModelWarmup::DataFile>(&input.input_data_type)) {
        DataFile(fmt::format("model_warmup[{}].inputs['{}'].input_data_file", i, name), "warmup",
                 "warmup", file->path);
      }
    }
  }

  void InitialStates() {
    const auto& states = config_.sequence_batching()->state;
    for (size_t i = 0; i < states.size(); ++i) {
      for (size_t j = 0; j < states[i].initial_state.size(); ++j) {
        const auto& data = states[i].initial_state[j].state_data;
        if (const auto* file = std::get_if<SequenceBatching::DataFile>(&data)) {
          DataFile(fmt::format("sequence_batching.state[{}].initial_state[{}].data_file", i, j),
                   "initial state", "initial_state", file->path);
        }
      }
    }
  }

  void BatchingLibrary() {
    const auto found = config_.parameters.find("TRITON_BATCH_STRATEGY_PATH");
    if (found == config_.parameters.end()) return;
    const std::string field = "parameters['TRITON_BATCH_STRATEGY_PATH']";
    if (config_.sequence_batching() != nullptr) {
      errors_.Add({base::StatusCode::kInvalidArgument,
                   "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, using "
                   "default batching strategy",
                   field, "'" + found->second + "'", "no such parameter",
                   "batch-strategy-sequence"});
    } else if (Escapes(found->second)) {
      Add(base::StatusCode::kInvalidArgument, "Batching library path escapes model repository.",
          field, found->second);
    }
  }

  const ModelConfig& config_;
  const std::string& model_folder_;
  ErrorList errors_;
};

}  // namespace

base::Status ValidateModelName(std::string_view name) {
  const std::string_view trimmed = base::Trim(name, kBlanks);
  if (trimmed.empty()) {
    return base::InvalidArgumentError(
        "Model name cannot be empty. Please enter a valid name to deploy.");
  }
  if (trimmed == "." || trimmed == ".." ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string_view::npos) {
    return base::InvalidArgumentError(fmt::format(
        "invalid model name '{}', model name must not contain path traversal characters", name));
  }
  if (!base::IsValidUtf8(name)) {
    return base::InvalidArgumentError("invalid model name, model name must be UTF-8");
  }
  return base::OkStatus();
}

base::Result<bool> PathEscapes(const std::string& child, const std::string& parent) {
  if (child.empty() || parent.empty()) {
    return base::InvalidArgumentError("Parent path and child path must be non-empty");
  }
  if (child.find('\0') != std::string::npos) {
    return base::InvalidArgumentError("Failed to canonicalize child path: it has a NUL byte");
  }
  std::error_code error;
  const fs::path inner = fs::weakly_canonical(child, error);
  if (error) {
    return base::InvalidArgumentError(
        fmt::format("Failed to canonicalize child path '{}': {}", child, error.message()));
  }
  const fs::path outer = fs::canonical(parent, error);
  if (error) {
    return base::InvalidArgumentError(
        fmt::format("Failed to canonicalize parent path '{}': {}", parent, error.message()));
  }
  // Compares by component, so that "/m_evil" does not count as inside "/m".
  auto it = inner.begin();
  for (const fs::path& component : outer) {
    if (component.empty()) continue;
    if (it == inner.end() || *it != component) return true;
    ++it;
  }
  return false;
}

std::string JoinPath(std::string_view parent, std::string_view child) {
  std::string path(parent);
  const bool ends = !path.empty() && path.back() == '/';
  const bool starts = !child.empty() && child.front() == '/';
  if (ends && starts) path.pop_back();
  if (!ends && !starts && !path.empty()) path += '/';
  path += child;
  return path;
}

ErrorList PathErrors(const ModelConfig& config, const std::string& model_folder) {
  return PathCheck(config, model_folder).Run();
}

base::Status ValidatePaths(const ModelConfig& config, const std::string& model_folder,
                           std::string_view file) {
  return PathErrors(config, model_folder).ToStatus(file);
}

}  // namespace nereid::config
