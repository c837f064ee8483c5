// SPDX-License-Identifier: Apache-2.0
// What the server was started with, for the log: the table that Triton prints, with its names.
#pragma once

#include "app/options.h"
#include "base/text_table.h"
#include "service/service.h"

namespace nereid::app {

base::TextTable OptionTable(const Options& options, const service::ServerMetadata& metadata);

}  // namespace nereid::app
