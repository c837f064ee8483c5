// SPDX-License-Identifier: Apache-2.0
// The table of options in the start-up log, with Triton's names.
#pragma once

#include "app/options.h"
#include "base/text_table.h"
#include "service/service.h"

namespace nereid::app {

base::TextTable OptionTable(const Options& options, const service::ServerMetadata& metadata);

}  // namespace nereid::app
