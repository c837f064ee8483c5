// SPDX-License-Identifier: Apache-2.0
#include "cloud/sagemaker_models.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/read_all.h"
#include "config/parse.h"
#include "config/print.h"

namespace nereid::cloud {
namespace {

namespace fs = std::filesystem;

constexpr char kConfigFile[] = "config.pbtxt";

// Matches the pattern [0-9A-Za-z._]+, except the names "." and "..".
bool IsPlainName(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '_';
  };
  return !text.empty() && std::ranges::all_of(text, is_plain) && text != "." && text != "..";
}

// Returns whether the name is that of one folder; the service reports the error for others.
bool CanBeFolder(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

// Returns nothing if there is no readable configuration file.
std::optional<config::ModelConfig> ReadConfig(const fs::path& folder) {
  std::ifstream file(folder / kConfigFile);
  if (!file) return std::nullopt;
  const std::string text = base::ReadAll(file);
  if (file.bad()) return std::nullopt;
  base::Result<config::ModelConfig> config =
      config::ParseModelConfigText(text, (folder / kConfigFile).string());
  if (!config.ok()) return std::nullopt;
  return *std::move(config);
}

}  // namespace

// The contents of an archive: one model, or an ensemble beside its parts.
struct SagemakerModels::Archive {
  std::string url;
  fs::path model;
  std::vector<fs::path> parts;
};

base::Result<SagemakerModels::Archive> SagemakerModels::Open(const std::string& url) const {
  // <archives>/<hash>/model[/<subdir>]
  const fs::path path = fs::path(url).lexically_normal();
  const fs::path inside = path.lexically_relative(options_.archives);
  std::vector<std::string> names;
  for (const fs::path& name : inside) {
    if (!name.empty()) names.push_back(name.string());  // a trailing slash makes an empty one
  }
  if (!path.is_absolute() || names.size() < 2 || names.size() > 3 ||
      !std::ranges::all_of(names, IsPlainName) || names[1] != "model") {
    return base::InvalidArgumentError("Invalid \"url\" '" + url +
                                      "': expected a path of the form " + options_.archives +
                                      "/<hash>/model[/<subdir>]");
  }
  fs::path folder(options_.archives);
  for (const std::string& name : names) folder /= name;
  std::error_code error;
  Archive archive;
  if (fs::exists(folder / kConfigFile, error)) {
    archive.url = (fs::path(options_.archives) / names[0]).string();
    archive.model = folder;
    return archive;
  }
  archive.url = folder.string();
  std::vector<fs::path> folders;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error)) folders.push_back(it->path());
  }
  if (folders.empty()) {
    return base::InvalidArgumentError("Invalid \"url\" '" + url + "': there is no model");
  }
  std::ranges::sort(folders);
  const auto ensemble = std::ranges::find_if(folders, [](const fs::path& candidate) {
    const std::optional<config::ModelConfig> config = ReadConfig(candidate);
    return config && config->platform == "ensemble";
  });
  const auto chosen = ensemble == folders.end() ? std::prev(folders.end()) : ensemble;
  archive.model = *chosen;
  folders.erase(chosen);
  archive.parts = std::move(folders);
  return archive;
}

base::Status SagemakerModels::Link(const std::string& folder, const std::string& name,
                                   Entry& entry) const {
  const fs::path link = fs::path(options_.links) / name;
  std::error_code error;
  fs::create_directory_symlink(folder, link, error);
  if (error == std::errc::file_exists) {
    return base::AlreadyExistsError("model '" + name + "' is already loaded");
  }
  if (error) {
    return base::InternalError("failed to register model '" + name + "': " + error.message());
  }
  entry.links.push_back(link.string());
  return base::OkStatus();
}

void SagemakerModels::RemoveLinks(const Entry& entry) const {
  std::error_code ignored;
  for (const std::string& link : entry.links) fs::remove(link, ignored);
}

base::Status SagemakerModels::LoadArchive(const Archive& archive, Entry& entry) {
  const std::string& target = entry.model.target;
  service::LoadOptions options;
  // Without a folder of links the service reports why it loads nothing.
  if (!options_.links.empty() && CanBeFolder(target)) {
    NEREID_RETURN_IF_ERROR(Link(archive.model.string(), target, entry));
    for (const fs::path& part : archive.parts) {
      NEREID_RETURN_IF_ERROR(Link(part.string(), part.filename().string(), entry));
    }
    // Archives name their models freely; the server uses the platform's name.
    std::optional<config::ModelConfig> config = ReadConfig(archive.model);
    if (config && !config->name.empty() && config->name != target) {
      config->name = target;
      NEREID_ASSIGN_OR_RETURN(options.config, config::ToJson(*config));
    }
  }
  return service_.LoadModel(target, options);
}

base::Status SagemakerModels::Load(const std::string& name, const std::string& url,
                                   const std::string& target) {
  NEREID_ASSIGN_OR_RETURN(const Archive archive, Open(url));
  {
    base::MutexLock lock(mutex_);
    if (!entries_.try_emplace(name).second) {
      return base::AlreadyExistsError("model '" + name + "' is already loaded");
    }
  }
  Entry entry;
  entry.model = {name, target, archive.url};
  entry.is_settled = true;
  base::Status status = LoadArchive(archive, entry);
  if (!status.ok()) RemoveLinks(entry);
  base::MutexLock lock(mutex_);
  if (status.ok()) {
    entries_[name] = std::move(entry);
  } else {
    entries_.erase(name);
  }
  return status;
}

std::optional<base::Status> SagemakerModels::Unload(const std::string& name) {
  Entry entry;
  {
    base::MutexLock lock(mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end() || !found->second.is_settled) return std::nullopt;
    found->second.is_settled = false;
    entry = found->second;
  }
  base::Status status = service_.UnloadModel(entry.model.target, true);
  if (status.ok()) RemoveLinks(entry);
  base::MutexLock lock(mutex_);
  if (status.ok()) {
    entries_.erase(name);
  } else {
    entries_[name].is_settled = true;
  }
  return status;
}

std::optional<SagemakerModels::Model> SagemakerModels::Find(const std::string& name) const {
  base::MutexLock lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end() || !found->second.is_settled) return std::nullopt;
  return found->second.model;
}

std::vector<SagemakerModels::Model> SagemakerModels::List() const {
  std::vector<Model> models;
  {
    base::MutexLock lock(mutex_);
    for (const auto& [name, entry] : entries_) {
      if (entry.is_settled) models.push_back(entry.model);
    }
  }
  std::erase_if(models, [this](const Model& model) {
    const base::Result<bool> ready = service_.IsModelReady(model.target, "");
    return !ready.ok() || !*ready;
  });
  return models;
}

}  // namespace nereid::cloud
