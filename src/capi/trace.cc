// SPDX-License-Identifier: Apache-2.0
// TRITONSERVER_InferenceTraceNew and related functions: traces that report to functions of the
// embedder. What all traces share is in abi_objects.
#include <atomic>
#include <memory>
#include <string>

#include "abi_objects/error.h"
#include "abi_objects/message.h"
#include "abi_objects/trace.h"
#include "observe/trace.h"

using nereid::abi_objects::FromHandle;
using nereid::abi_objects::RunApiCall;
using nereid::abi_objects::ToHandle;
using nereid::base::Status;
using nereid::observe::TensorView;
using nereid::observe::Trace;
using nereid::observe::TraceActivity;

namespace {

struct TraceFunctions {
  TRITONSERVER_InferenceTraceActivityFn_t activity = nullptr;
  TRITONSERVER_InferenceTraceTensorActivityFn_t tensor = nullptr;
  TRITONSERVER_InferenceTraceReleaseFn_t release = nullptr;
  void* userp = nullptr;
};

// The values are the same.
TRITONSERVER_InferenceTraceActivity ToActivity(TraceActivity activity) {
  return static_cast<TRITONSERVER_InferenceTraceActivity>(activity);
}

// Passes a trace and its children to their owner's functions as events happen, on any thread.
class FunctionRecorder final : public nereid::observe::TraceRecorder {
 public:
  FunctionRecorder(uint32_t levels, TraceFunctions functions)
      : levels_(levels), functions_(functions) {}

  uint32_t levels() const override { return levels_; }
  uint64_t NextId() override { return NewId(); }

  void Report(Trace& trace, TraceActivity activity, std::string_view name, uint64_t ns) override {
    if (activity == TraceActivity::kCustom) NoteName(trace, name, ns);
    if (functions_.activity != nullptr) {
      functions_.activity(ToHandle(&trace), ToActivity(activity), ns, functions_.userp);
    }
  }
  void ReportTensor(const Trace& trace, TraceActivity activity, const TensorView& tensor) override {
    if (functions_.tensor == nullptr) return;
    functions_.tensor(ToHandle(const_cast<Trace*>(&trace)), ToActivity(activity),
                      std::string(tensor.name).c_str(),
                      static_cast<TRITONSERVER_DataType>(tensor.type), tensor.bytes.data(),
                      tensor.bytes.size(), tensor.shape.data(), tensor.shape.size(),
                      static_cast<TRITONSERVER_MemoryType>(tensor.memory_type),
                      tensor.memory_type_id, functions_.userp);
  }
  void Release(std::unique_ptr<Trace> trace) override {
    if (functions_.release == nullptr) return;
    functions_.release(ToHandle(trace.release()), functions_.userp);
  }

  // Returns an id that is unique in the process, and never 0.
  static uint64_t NewId() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1) + 1;
  }

 private:
  // The function has no argument for the name of a backend's own activity: its receiver looks the
  // name up in the context, by the time.
  static void NoteName(Trace& trace, std::string_view name, uint64_t ns) {
    std::string context = trace.context();
    if (context.size() > 2 && context.back() == '}') {
      context.back() = ',';
    } else {
      context = "{";
    }
    context += nereid::abi_objects::QuoteJson(std::to_string(ns)) + ':' +
               nereid::abi_objects::QuoteJson(name) + '}';
    trace.SetContext(std::move(context));
  }

  const uint32_t levels_;
  const TraceFunctions functions_;
};

// The two oldest levels mean the same as TIMESTAMPS.
uint32_t ToLevels(TRITONSERVER_InferenceTraceLevel level) {
  const auto bits = static_cast<uint32_t>(level);
  constexpr uint32_t kOld = TRITONSERVER_TRACE_LEVEL_MIN | TRITONSERVER_TRACE_LEVEL_MAX;
  return (bits & ~kOld) | ((bits & kOld) != 0 ? nereid::observe::kTraceTimestamps : 0u);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

TRITONSERVER_Error* TRITONSERVER_InferenceTraceTensorNew(
    TRITONSERVER_InferenceTrace** trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void* trace_userp) {
  return RunApiCall([&]() -> Status {
    *trace = nullptr;
    auto recorder = std::make_shared<FunctionRecorder>(
        ToLevels(level), TraceFunctions{activity_fn, tensor_activity_fn, release_fn, trace_userp});
    const uint64_t id = FunctionRecorder::NewId();
    *trace = ToHandle(std::make_unique<Trace>(std::move(recorder), id, parent_id).release());
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceNew(
    TRITONSERVER_InferenceTrace** trace, TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void* trace_userp) {
  return TRITONSERVER_InferenceTraceTensorNew(trace, level, parent_id, activity_fn, nullptr,
                                              release_fn, trace_userp);
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceDelete(TRITONSERVER_InferenceTrace* trace) {
  return RunApiCall([&]() -> Status {
    const std::unique_ptr<Trace> deleted(FromHandle(trace));
    return {};
  });
}

TRITONSERVER_Error* TRITONSERVER_InferenceTraceSpawnChildTrace(
    TRITONSERVER_InferenceTrace* trace, TRITONSERVER_InferenceTrace** child_trace) {
  return RunApiCall([&]() -> Status {
    *child_trace = nullptr;
    if (trace != nullptr) *child_trace = ToHandle(FromHandle(trace)->SpawnChild().release());
    return {};
  });
}

}  // extern "C"
#pragma GCC visibility pop
