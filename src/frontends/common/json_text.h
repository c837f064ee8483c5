// SPDX-License-Identifier: Apache-2.0
// The JSON output of all protocols: base/json_text.h under the names of this module.
#pragma once

#include "base/json_text.h"

namespace nereid::common {

using base::AppendJsonBool;
using base::AppendJsonDouble;
using base::AppendJsonInteger;
using base::AppendJsonString;
using base::JsonError;

}  // namespace nereid::common
