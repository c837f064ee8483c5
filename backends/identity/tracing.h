// SPDX-License-Identifier: Apache-2.0
// The backend's own spans inside a request's trace, for tests of tracing.
#pragma once

#include "backend_kit/error.h"
#include "identity_backend/settings.h"

namespace nereid::identity {

// Reports a span, a single activity and the configured nested spans, each 100 ms long, to the trace
// of the request. Does nothing for a request that is not traced or on a server without traces.
backend::Error ReportSpans(TRITONBACKEND_Request* request, const Tracing& tracing);

}  // namespace nereid::identity
