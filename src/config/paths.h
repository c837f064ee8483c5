// SPDX-License-Identifier: Apache-2.0
// Checks of names and paths from outside: a model name must be one path component, and the files
// that a configuration names must lie in the model's own folder.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "config/errors.h"
#include "config/model_config.h"

namespace nereid::config {

// Refuses empty and blank names, ".", "..", and anything with a slash or a NUL byte. Names are not
// trimmed: " a" and "a" are different models.
base::Status ValidateModelName(std::string_view name);

// Whether `child`, with symbolic links and ".." resolved, is outside `parent`. "/m_evil" is outside
// "/m"; "/m" itself is inside. REQUIRES: `parent` exists; `child` need not.
base::Result<bool> PathEscapes(const std::string& child, const std::string& parent);

// Returns `parent` + "/" + `child`, with one slash even if `child` is absolute.
std::string JoinPath(std::string_view parent, std::string_view child);

// Checks every path in `config` (labels, model files, warm-up and initial state data, the batching
// library) against the model's folder. Model files may be symbolic links to anywhere, but their
// written path may not leave the folder.
ErrorList PathErrors(const ModelConfig& config, const std::string& model_folder);
// Returns all of these errors as one status; `file` as in validate.h.
base::Status ValidatePaths(const ModelConfig& config, const std::string& model_folder,
                           std::string_view file = {});

}  // namespace nereid::config
