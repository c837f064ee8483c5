// SPDX-License-Identifier: Apache-2.0
// Which HTTP status tells SageMaker why a model that it loaded by name failed.
#pragma once

#include "base/status.h"

namespace nereid::cloud {

// 507 when the message says that memory ran out, upon which the platform unloads other models;
// otherwise 400, whatever the code of the error is.
int SagemakerErrorStatus(const base::Status& error);

}  // namespace nereid::cloud
