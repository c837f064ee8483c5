// SPDX-License-Identifier: Apache-2.0
// The file of a model, read as its settings say: which graph and signature of a SavedModel count,
// and what to do once it is loaded.
#pragma once

#include <string>

#include "tensorflow_backend/graph.h"
#include "tensorflow_backend/program.h"
#include "tensorflow_backend/settings.h"

namespace nereid::tensorflow {

// Where the files of a model are.
struct ModelPlace {
  const std::string& folder;  // with the configuration
  const std::string& version_folder;
};

// What the files say.
struct ModelFile {
  SessionSpec spec;
  Graph graph;
  Signature signature;  // of a SavedModel

  // Fails if there is no such file, if it is something else, and if it has no such graph or
  // signature. `model` is for error texts.
  static backend::Result<ModelFile> Read(const ModelPlace& place, const Settings& settings,
                                         const std::string& model);
};

// The error, as one about the model.
backend::Error FailedToLoad(const std::string& model, const backend::Error& error);

}  // namespace nereid::tensorflow
