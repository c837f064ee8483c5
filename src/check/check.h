// SPDX-License-Identifier: Apache-2.0
// Checks model repositories without a server: every mistake that would keep a model from being
// loaded, and what would be slow or without effect. The functions that decide are the server's own
// (config, repository, schedule), and what they refuse is always an error here.
#pragma once

#include "check/finding.h"
#include "check/model_view.h"

namespace nereid::check {

// Checks all models of local repositories. Opens no backend and runs no code of a model.
Report CheckRepositories(const CheckOptions& options);

}  // namespace nereid::check
