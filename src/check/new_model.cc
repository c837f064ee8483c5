// SPDX-License-Identifier: Apache-2.0
#include "check/new_model.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "base/read_all.h"
#include "config/complete.h"
#include "config/paths.h"

namespace nereid::check {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.pbtxt";
constexpr const char* kVersion = "1";
// In the folder of a model, where servers ignore it.
constexpr const char* kStagingFolder = ".nereid-init";

// Endings count as they do for `nereid serve`, whatever their case.
std::string WithLowerEnding(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return path.stem().string() + ending;
}

// The kind of a model file by its name, or by what is in the folder.
std::optional<config::FileFramework> FrameworkOf(const fs::path& path, bool is_folder) {
  const std::string name = WithLowerEnding(path);
  std::error_code error;
  if (is_folder && (fs::exists(path / "saved_model.pb", error) ||
                    fs::exists(path / "saved_model.pbtxt", error))) {
    return config::FrameworkOfFile("model.savedmodel", true);
  }
  const auto framework = config::FrameworkOfFile(name, is_folder);
  // Any script has this ending, but a model's is called model.py.
  if (framework && framework->backend == "python" && is_folder) return std::nullopt;
  return framework;
}

// Returns files that the model needs beside it, by the habits of the frameworks.
std::vector<fs::path> Companions(const fs::path& file, std::string_view backend) {
  std::vector<fs::path> found;
  std::error_code error;
  const auto add = [&](const fs::path& path) {
    if (fs::is_regular_file(path, error)) found.push_back(path);
  };
  const std::string name = file.filename().string();
  const fs::path folder = file.parent_path();
  if (backend == "openvino") add(fs::path(file).replace_extension(".bin"));
  if (backend == "caffe2") add(folder / ("init_" + name));
  if (backend == "onnxruntime") {
    for (const std::string_view ending : {".data", "_data"})
      add(folder / (name + std::string(ending)));
    add(fs::path(file).replace_extension(".data"));
  }
  return found;
}

std::string NameOf(const fs::path& path, const config::FileFramework& framework) {
  const bool is_usual = path.filename() == framework.file;
  const fs::path parent = path.parent_path().filename();
  // In a folder with a number as its name, the file is a version of the model around it.
  const bool is_version =
      !parent.empty() &&
      std::ranges::all_of(parent.string(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!is_usual) return path.stem().string();
  const fs::path folder = is_version ? path.parent_path().parent_path().filename() : parent;
  return folder.empty() || folder == "." || folder == ".." ? path.stem().string() : folder.string();
}

base::Status Failed(std::string_view what, const fs::path& path, const std::error_code& error) {
  return base::InternalError(
      fmt::format("cannot {} '{}': {}", what, path.string(), error.message()));
}

// Refuses what is no model whatever the framework says.
base::Status CheckContents(const fs::path& path, const std::string& shown,
                           const config::FileFramework& framework) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return base::OkStatus();
  if (fs::file_size(path, error) == 0 && !error) {
    return base::InvalidArgumentError(fmt::format("'{}' is empty", shown));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return base::InvalidArgumentError(
        fmt::format("cannot read '{}': {}", shown, std::strerror(errno)));
  }
  if (framework.backend != "python") return base::OkStatus();
  if (base::ReadAll(file).find("TritonPythonModel") != std::string::npos) return base::OkStatus();
  return base::InvalidArgumentError(
      fmt::format("'{}' is not a model: it has no class TritonPythonModel", shown));
}

}  // namespace

base::Result<NewModel> PlanNewModel(const std::string& file, const std::string& repository,
                                    std::optional<std::string> name) {
  std::error_code error;
  fs::path path = fs::absolute(file, error).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return base::NotFoundError(fmt::format("there is no file or folder '{}'", file));
  }
  const auto framework = FrameworkOf(path, fs::is_directory(status));
  if (!framework) {
    return base::InvalidArgumentError(fmt::format(
        "'{}' is of no known kind: expected a file .onnx, .pt, .pt2, .xml, .plan, .graphdef, "
        ".netdef or model.py, or the folder of a SavedModel",
        file));
  }
  NEREID_RETURN_IF_ERROR(CheckContents(path, file, *framework));
  if (!name) name = NameOf(path, *framework);
  NEREID_RETURN_IF_ERROR(config::ValidateModelName(*name));
  NewModel model{.file = file, .folder = config::JoinPath(repository, *name)};
  model.config.name = *name;
  config::VersionFolder version;
  (fs::is_directory(status) ? version.folders : version.files).insert(std::string(framework->file));
  NEREID_ASSIGN_OR_RETURN(model.config,
                          config::CompleteFromFiles(std::move(model.config), *name, version));
  const fs::path folder = fs::path(model.folder) / kVersion;
  model.copies.emplace_back(path.string(), (folder / framework->file).string());
  for (const fs::path& other : Companions(path, framework->backend)) {
    // Weights of OpenVINO and Caffe2 are found by the model's name, those of ONNX by their own.
    std::string target = other.filename().string();
    if (framework->backend == "openvino") target = "model.bin";
    if (framework->backend == "caffe2") target = "init_model.netdef";
    model.copies.emplace_back(other.string(), (folder / target).string());
  }
  return model;
}

StagedModel::StagedModel(NewModel model)
    : model_(std::move(model)),
      // Not beside the model's folder, where a server would take it for a model.
      staging_((fs::absolute(model_.folder).lexically_normal() / kStagingFolder).string()) {}

base::Result<std::unique_ptr<StagedModel>> StagedModel::Create(NewModel model, bool overwrites) {
  std::unique_ptr<StagedModel> staged(new StagedModel(std::move(model)));
  std::error_code error;
  std::vector<fs::path> targets = {fs::path(staged->model_.folder) / kConfigFile};
  for (const auto& [from, to] : staged->model_.copies) targets.emplace_back(to);
  for (const fs::path& target : targets) {
    if (overwrites || !fs::exists(target, error)) continue;
    return base::AlreadyExistsError(
        fmt::format("'{}' is there already; --force overwrites it", target.string()));
  }
  NEREID_RETURN_IF_ERROR(staged->Copy());
  return staged;
}

base::Status StagedModel::Copy() {
  std::error_code error;
  for (fs::path folder = fs::path(staging_).parent_path(); !fs::exists(folder, error);
       folder = folder.parent_path()) {
    made_.push_back(folder.string());
  }
  error.clear();
  fs::remove_all(staging_, error);  // of a command that was killed
  const fs::path version = StagedPath((fs::path(model_.folder) / kVersion).string());
  if (!error) fs::create_directories(version, error);
  if (error) return Failed("make a folder in", model_.folder, error);
  for (const auto& [from, to] : model_.copies) {
    fs::copy(from, StagedPath(to), fs::copy_options::recursive, error);
    if (error) return Failed(fmt::format("copy '{}' to", from), to, error);
  }
  return base::OkStatus();
}

StagedModel::~StagedModel() {
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
  if (is_installed_) return;
  // Only folders that are empty go.
  for (const std::string& folder : made_) fs::remove(folder, ignored);
}

std::string StagedModel::StagedPath(const std::string& target) const {
  return (fs::path(staging_) / model_.config.name /
          fs::path(target).lexically_relative(model_.folder))
      .string();
}

bool StagedModel::IsNamedIn(std::string_view error) const {
  return error.find(StagedPath(model_.copies.front().second)) != std::string_view::npos;
}

std::string StagedModel::WithOwnPaths(std::string text) const {
  for (const auto& [from, to] : model_.copies) {
    const std::string staged = StagedPath(to);
    for (size_t at = text.find(staged); at != std::string::npos;
         at = text.find(staged, at + from.size())) {
      text.replace(at, staged.size(), from);
    }
  }
  return text;
}

base::Status StagedModel::Install(const std::string& config) {
  const std::string config_path = config::JoinPath(model_.folder, kConfigFile);
  {
    std::ofstream file(StagedPath(config_path), std::ios::binary);
    file << config;
    file.close();
    if (!file.good()) return base::InternalError(fmt::format("cannot write '{}'", config_path));
  }
  std::error_code error;
  const fs::path version = fs::path(model_.folder) / kVersion;
  if (fs::create_directory(version, error)) made_.insert(made_.begin(), version.string());
  if (error) return Failed("make", version, error);
  // Each target with the place where its former content waits; empty if there was none.
  std::vector<std::pair<std::string, std::string>> moved;
  const auto put = [&](const std::string& target) {
    std::string old = fmt::format("{}/{}", staging_, moved.size());
    if (!fs::exists(fs::symlink_status(target, error))) old.clear();
    error.clear();
    if (!old.empty()) fs::rename(target, old, error);
    if (error) return false;
    moved.emplace_back(target, old);
    fs::rename(StagedPath(target), target, error);
    return !error;
  };
  std::vector<std::string> targets;
  for (const auto& [from, to] : model_.copies) targets.push_back(to);
  targets.push_back(config_path);
  for (const std::string& target : targets) {
    if (put(target)) continue;
    std::error_code ignored;
    for (const auto& [changed, old] : moved) {
      fs::remove_all(changed, ignored);
      if (!old.empty()) fs::rename(old, changed, ignored);
    }
    return Failed("write", target, error);
  }
  is_installed_ = true;
  return base::OkStatus();
}

}  // namespace nereid::check
