// SPDX-License-Identifier: Apache-2.0
// The flags of traces, which are interpreted together.
#pragma once

#include <string_view>

#include "app/options.h"
#include "base/status.h"

namespace nereid::app {

// Functions for the table of flags.
base::Status AddTraceConfig(std::string_view value, Options& options);
base::Status SetTraceFile(std::string_view value, Options& options);
base::Status SetTraceLevel(std::string_view value, Options& options);
base::Status SetTraceRate(std::string_view value, Options& options);
base::Status SetTraceCount(std::string_view value, Options& options);
base::Status SetTraceLogFrequency(std::string_view value, Options& options);

// Called once all flags are known: computes engine.trace.
base::Status FinishTraceFlags(Options& options);

}  // namespace nereid::app
