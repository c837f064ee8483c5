// SPDX-License-Identifier: Apache-2.0
// The trace extension over HTTP.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "observe/trace.h"

namespace nereid::http {

std::string TraceSettingsJson(const observe::TraceView& view);

// Takes over what `body`, a JSON object, wants changed: all of it or, with an error, nothing.
// `model` empty: for the server. The file cannot be changed by clients.
base::Status UpdateTraceSettings(observe::Tracing& tracing, const std::string& model,
                                 std::string_view body);

}  // namespace nereid::http
