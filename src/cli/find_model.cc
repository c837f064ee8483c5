// SPDX-License-Identifier: Apache-2.0
#include "cli/find_model.h"

#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/nearest_name.h"
#include "check/read_model.h"

namespace nereid::cli {

namespace fs = std::filesystem;

void AddModelPlace(Command& command, std::string& model, std::vector<std::string>& repositories) {
  command
      .Positional("MODEL", model,
                  "The name of a model, or the path of its folder if no repository is given.")
      .Names(Hint::kFolder);
  command
      .Option("--repository,-r", "FOLDER", repositories,
              "A repository. By default the folder models.")
      .Names(Hint::kFolder);
}

ModelPlace PlaceOf(const std::string& model, const std::vector<std::string>& repositories) {
  ModelPlace place{model, repositories};
  std::error_code error;
  if (repositories.empty() && fs::is_directory(model, error)) {
    fs::path folder = fs::absolute(model, error).lexically_normal();
    if (folder.filename().empty()) folder = folder.parent_path();
    place.name = folder.filename().string();
    place.repositories = {folder.parent_path().string()};
  }
  if (place.repositories.empty()) place.repositories = {"models"};
  return place;
}

base::Result<check::ModelView> FindModel(const ModelPlace& place, check::CheckOptions options) {
  options.repositories = place.repositories;
  const repository::ScanResult found = check::ScanRepositories(options);
  std::vector<std::string_view> names;
  for (const auto& [id, source] : found.models) {
    names.push_back(id.name);
    if (id.name == place.name && !source.model_folder.empty()) {
      return check::ReadModel(source, options);
    }
  }
  return base::NotFoundError(fmt::format("there is no model '{}' in {}{}", place.name,
                                         fmt::join(options.repositories, ", "),
                                         base::DidYouMean(place.name, names)));
}

}  // namespace nereid::cli
