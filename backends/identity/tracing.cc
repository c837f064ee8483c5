// SPDX-License-Identifier: Apache-2.0
#include "identity_backend/tracing.h"

#include <string>
#include <thread>

#include "backend_kit/batch.h"

namespace nereid::identity {

using backend::Error;
using backend::StrCat;

namespace {

constexpr std::chrono::milliseconds kSpanLength{100};

Error Report(TRITONSERVER_InferenceTrace* trace, const std::string& activity) {
  return Error(
      TRITONSERVER_InferenceTraceReportActivity(trace, backend::NowNs(), activity.c_str()));
}

}  // namespace

Error ReportSpans(TRITONBACKEND_Request* request, const Tracing& tracing) {
  TRITONSERVER_InferenceTrace* trace = nullptr;
  Error no_trace(TRITONBACKEND_RequestTrace(request, &trace));
  if (!no_trace.ok() || trace == nullptr) {
    return {};
  }
  NEREID_KIT_TRY(Report(trace, "CUSTOM_ACTIVITY_START"));
  std::this_thread::sleep_for(kSpanLength);
  NEREID_KIT_TRY(Report(trace, "CUSTOM_ACTIVITY_END"));
  NEREID_KIT_TRY(Report(trace, "CUSTOM_SINGLE_ACTIVITY"));
  for (int i = 0; i < tracing.nested_span_count; ++i) {
    NEREID_KIT_TRY(Report(trace, StrCat("CUSTOM_ACTIVITY", i, "_START")));
    std::this_thread::sleep_for(kSpanLength);
    if (i % tracing.single_activity_frequency == 0) {
      NEREID_KIT_TRY(Report(trace, "CUSTOM_SINGLE_ACTIVITY"));
    }
  }
  for (int i = tracing.nested_span_count; i-- > 0;) {
    NEREID_KIT_TRY(Report(trace, StrCat("CUSTOM_ACTIVITY", i, "_END")));
  }
  return {};
}

}  // namespace nereid::identity
