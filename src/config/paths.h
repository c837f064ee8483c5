// SPDX-License-Identifier: Apache-2.0
// Names and paths that come from outside: a model name must be one path component, and what a
// configuration names must lie in the model's own folder.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

// Refuses empty and blank names, ".", "..", and anything with a slash or a NUL byte. The name
// itself stays untrimmed: " a" and "a" are different models.
base::Status ValidateModelName(std::string_view name);

// Whether `child`, with symbolic links and ".." resolved, is outside `parent`. `parent` must exist,
// `child` need not. "/m_evil" is outside "/m"; "/m" itself is inside.
base::Result<bool> PathEscapes(const std::string& child, const std::string& parent);

// `parent` + "/" + `child`, with one slash even where `child` is absolute.
std::string JoinPath(std::string_view parent, std::string_view child);

// Checks every path that `config` names (labels, model files, warm-up and initial state data, the
// batching library) against the model's folder. All faults at once; `file` as in validate.h. Model
// files may be symbolic links to anywhere, but may not be named by a path that leaves the folder.
base::Status ValidatePaths(const ModelConfig& config, const std::string& model_folder,
                           std::string_view file = {});

}  // namespace nereid::config
