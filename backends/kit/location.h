// SPDX-License-Identifier: Apache-2.0
// The location of a model's files.
#pragma once

#include <cstdint>
#include <string>

#include "backend_kit/error.h"

namespace nereid::backend {

// The location of the files of a model version.
struct ModelLocation {
  std::string name;
  uint64_t version = 0;
  std::string folder;          // the model's, with its configuration and labels
  std::string version_folder;  // the version's own, with its data; may be missing
};

// Fails if the repository is not in the file system. Current servers copy other repositories there.
inline Result<ModelLocation> Locate(TRITONBACKEND_Model* model) {
  ModelLocation location;
  const char* name = nullptr;
  TRITONBACKEND_ArtifactType artifact = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* folder = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_ModelName(model, &name));
  NEREID_KIT_TRY(TRITONBACKEND_ModelVersion(model, &location.version));
  NEREID_KIT_TRY(TRITONBACKEND_ModelRepository(model, &artifact, &folder));
  if (artifact != TRITONBACKEND_ARTIFACT_FILESYSTEM) {
    return Error::Unsupported(
        StrCat("unsupported repository artifact type for model '", name, "'"));
  }
  location.name = name;
  location.folder = folder;
  location.version_folder = StrCat(folder, "/", location.version);
  return location;
}

}  // namespace nereid::backend
