// SPDX-License-Identifier: Apache-2.0
// The HTTP status that tells SageMaker why a model that it loaded by name failed.
#pragma once

#include "base/status.h"

namespace nereid::cloud {

// Returns 507 if the message says that memory is exhausted, upon which the platform unloads other
// models; otherwise 400, for any error code.
int SagemakerErrorStatus(const base::Status& error);

}  // namespace nereid::cloud
