// SPDX-License-Identifier: Apache-2.0
// Spans of the backend's own inside a request's trace, for tests of tracing.
#pragma once

#include "backend_kit/error.h"
#include "identity_backend/settings.h"

namespace nereid::identity {

// Reports a span, a single activity and the configured nested spans, each span 100 ms long, to the
// trace of the request; does nothing for a request that is not traced or a server without traces.
backend::Error ReportSpans(TRITONBACKEND_Request* request, const Tracing& tracing);

}  // namespace nereid::identity
