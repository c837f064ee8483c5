// SPDX-License-Identifier: Apache-2.0
#include "check/new_model.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "config/complete.h"
#include "config/paths.h"

namespace nereid::check {
namespace {

namespace fs = std::filesystem;

// The kind of a model file by its name, or by what is in the folder.
std::optional<config::FileFramework> FrameworkOf(const fs::path& path, bool is_folder) {
  const std::string name = path.filename().string();
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

}  // namespace

base::Result<NewModel> PlanNewModel(const std::string& file, const std::string& repository,
                                    std::string name) {
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
  if (name.empty()) name = NameOf(path, *framework);
  NEREID_RETURN_IF_ERROR(config::ValidateModelName(name));
  NewModel model{.file = file, .folder = config::JoinPath(repository, name)};
  model.config.name = name;
  config::VersionFolder version;
  (fs::is_directory(status) ? version.folders : version.files).insert(std::string(framework->file));
  NEREID_ASSIGN_OR_RETURN(model.config,
                          config::CompleteFromFiles(std::move(model.config), name, version));
  const fs::path folder = fs::path(model.folder) / "1";
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

base::Status CopyFiles(const NewModel& model, bool overwrites) {
  std::error_code error;
  const fs::path config = fs::path(model.folder) / "config.pbtxt";
  std::vector<fs::path> targets = {config};
  for (const auto& [from, to] : model.copies) targets.emplace_back(to);
  for (const fs::path& target : targets) {
    if (overwrites || !fs::exists(target, error)) continue;
    return base::AlreadyExistsError(
        fmt::format("'{}' is there already; --force overwrites it", target.string()));
  }
  fs::create_directories(fs::path(model.folder) / "1", error);
  if (error) return Failed("make", model.folder, error);
  for (const auto& [from, to] : model.copies) {
    if (fs::equivalent(from, to, error)) continue;
    fs::remove_all(to, error);
    error.clear();
    fs::copy(from, to, fs::copy_options::recursive, error);
    if (error) return Failed("write", to, error);
  }
  // The configuration is made from the files alone.
  if (overwrites) fs::remove(config, error);
  return base::OkStatus();
}

base::Status WriteConfig(const NewModel& model, const std::string& text) {
  const std::string path = config::JoinPath(model.folder, "config.pbtxt");
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file.good() ? base::OkStatus()
                     : base::InternalError(fmt::format("cannot write '{}'", path));
}

}  // namespace nereid::check
