// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_InferenceTrace*: how a backend queries and extends the trace of a request.
#include "abi_objects/trace.h"

#include "abi_objects/error.h"

using nereid::abi_objects::FromHandle;
using nereid::abi_objects::RunApiCall;
using nereid::base::Status;
using nereid::observe::TraceActivity;

#pragma GCC visibility push(default)
extern "C" {

const char* TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_InferenceTraceLevel level) {
  switch (level) {
    case TRITONSERVER_TRACE_LEVEL_DISABLED:
      return "DISABLED";
    case TRITONSERVER_TRACE_LEVEL_MIN:
      return "MIN";
    case TRITONSERVER_TRACE_LEVEL_MAX:
      return "MAX";
    case TRITONSERVER_TRACE_LEVEL_TIMESTAMPS:
      return "TIMESTAMPS";
    case TRITONSERVER_TRACE_LEVEL_TENSORS:
      return "TENSORS";
  }
  return "<unknown>";
}

const char* TRITONSERVER_InferenceTraceActivityString(
    TRITONSERVER_InferenceTraceActivity activity) {
  return TraceActivityName(static_cast<TraceActivity>(activity));
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceReportActivity(TRITONSERVER_InferenceTrace* trace,
                                                              uint64_t timestamp,
                                                              const char* activity_name) {
  return RunApiCall([&]() -> Status {
    if (trace != nullptr) FromHandle(trace)->ReportCustom(activity_name, timestamp);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceId(TRITONSERVER_InferenceTrace* trace,
                                                  uint64_t* id) {
  *id = FromHandle(trace)->id();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceParentId(TRITONSERVER_InferenceTrace* trace,
                                                        uint64_t* parent_id) {
  *parent_id = FromHandle(trace)->parent_id();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceModelName(TRITONSERVER_InferenceTrace* trace,
                                                         const char** model_name) {
  *model_name = FromHandle(trace)->model().c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceModelVersion(TRITONSERVER_InferenceTrace* trace,
                                                            int64_t* model_version) {
  *model_version = FromHandle(trace)->version();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceRequestId(TRITONSERVER_InferenceTrace* trace,
                                                         const char** request_id) {
  *request_id = FromHandle(trace)->request_id().c_str();
  return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceSetContext(TRITONSERVER_InferenceTrace* trace,
                                                          const char* trace_context) {
  return RunApiCall([&]() -> Status {
    FromHandle(trace)->SetContext(trace_context);
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace* trace,
                                                       const char** trace_context) {
  return RunApiCall([&]() -> Status {
    *trace_context = FromHandle(trace)->context();
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
