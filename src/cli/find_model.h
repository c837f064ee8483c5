// SPDX-License-Identifier: Apache-2.0
// Arguments that name a model of a repository: by its name, or by the path of its folder.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "check/model_view.h"
#include "cli/command.h"

namespace nereid::cli {

// A model's name and the repositories in which to look for it.
struct ModelPlace {
  std::string name;
  std::vector<std::string> repositories;
};

// Adds the arguments from which PlaceOf makes a place: MODEL and --repository.
void AddModelPlace(Command& command, std::string& model, std::vector<std::string>& repositories);

// Without repositories, `model` is the path of a folder, or a model of the folder "models".
ModelPlace PlaceOf(const std::string& model, const std::vector<std::string>& repositories);

// Reads the model. NOT_FOUND if there is none of this name; `options.repositories` are replaced.
base::Result<check::ModelView> FindModel(const ModelPlace& place, check::CheckOptions options);

}  // namespace nereid::cli
