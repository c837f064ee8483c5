// SPDX-License-Identifier: Apache-2.0
// Reads one model of a repository, step by step as the server does, and keeps the result of each
// step.
#pragma once

#include "check/model_view.h"
#include "repository/model_source.h"

namespace nereid::check {

// Reads the model that a scan has found. The view tells how far this came.
ModelView ReadModel(const repository::ModelSource& source, const CheckOptions& options);

// Scans the repositories without loading, and without running agents.
repository::ScanResult ScanRepositories(const CheckOptions& options);

}  // namespace nereid::check
