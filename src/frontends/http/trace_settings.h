// SPDX-License-Identifier: Apache-2.0
// The trace extension over HTTP.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "observe/trace.h"

namespace nereid::http {

std::string TraceSettingsJson(const observe::TraceView& view);

// Applies all changes of `body`, a JSON object, or none if there is an error. An empty `model`
// means the whole server. Clients cannot change the file.
base::Status UpdateTraceSettings(observe::Tracing& tracing, const std::string& model,
                                 std::string_view body);

}  // namespace nereid::http
