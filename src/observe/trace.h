// SPDX-License-Identifier: Apache-2.0
// Traces of single requests: when which step of a sampled request happened and, if enabled, its
// tensors. Traces go to a file in Triton's JSON or, as spans, to an OpenTelemetry collector.
//
//   if (tracing.is_on()) [[unlikely]] trace = tracing.Start("model", {});   // null: not sampled
//   if (trace) trace->Report(TraceActivity::kRequestStart, ns);
//
// A trace is handed to its output when the last reference to it is dropped. Files and collectors
// have threads of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "observe/otlp_options.h"
#include "tensor/data_type.h"

namespace nereid::observe {

// The values are those of TRITONSERVER_InferenceTraceLevel.
enum TraceLevel : uint32_t { kTraceOff = 0, kTraceTimestamps = 4, kTraceTensors = 8 };

// The order is that of TRITONSERVER_InferenceTraceActivity.
enum class TraceActivity : uint8_t {
  kRequestStart = 0,
  kQueueStart = 1,
  kComputeStart = 2,
  kComputeInputEnd = 3,
  kComputeOutputStart = 4,
  kComputeEnd = 5,
  kRequestEnd = 6,
  kTensorQueueInput = 7,
  kTensorBackendInput = 8,
  kTensorBackendOutput = 9,
  kCustom = 10,
};
// Returns "REQUEST_START", ...
const char* TraceActivityName(TraceActivity activity);

// The output of traces: Triton's files, or an OpenTelemetry collector.
enum class TraceMode : uint8_t { kTriton, kOpenTelemetry };

// The settings that determine which requests are traced and what is recorded. Clients can change
// them at run time, for the server or for one model.
struct TraceSettings {
  uint32_t levels = kTraceOff;
  uint32_t rate = 1000;        // one request in this many is traced
  int32_t count = -1;          // how many more requests may be traced; -1: any number
  uint32_t log_frequency = 0;  // traces in one file; 0: one file for all
};

// The settings at start-up, and those that cannot change while the server runs.
struct TraceOptions {
  TraceSettings settings;
  TraceMode mode = TraceMode::kTriton;
  std::string file;
  OtlpOptions otlp;
  // The mode's options that TraceView shows, as the user gave them.
  std::vector<std::pair<std::string, std::string>> shown;
};

// A change of settings. A field that is neither set nor cleared stays as it is. A cleared field of
// a model takes the server's value, and one of the server takes its value at start.
template <typename T>
struct TraceField {
  std::optional<T> value;
  bool is_cleared = false;
};
// A change of several settings at once, as a client requests it.
struct TraceChange {
  TraceField<uint32_t> levels;
  TraceField<uint32_t> rate;
  TraceField<int32_t> count;
  TraceField<uint32_t> log_frequency;
};

// The current settings, for the server or for one model, as clients see them.
struct TraceView {
  TraceSettings settings;
  TraceMode mode = TraceMode::kTriton;
  std::string file;
  std::vector<std::pair<std::string, std::string>> shown;
};

// A W3C trace context as the client sent it; empty if it sent none.
struct TraceContext {
  std::string_view traceparent;
  std::string_view tracestate;
};

// A tensor to be reported, valid during the report.
struct TensorView {
  std::string_view name;
  tensor::DataType type = tensor::DataType::kInvalid;
  std::span<const int64_t> shape;
  std::string_view bytes;
  // The memory type of `bytes` as TRITONSERVER_MemoryType numbers it. They are readable by the CPU
  // unless that is kGpu.
  int memory_type = 0;
  int64_t memory_type_id = 0;

  static constexpr int kGpu = 2;
};

class Trace;

// Receives the reports of a request's traces: for the server's own files and collectors, or for
// functions of an embedder. Thread-safe.
class TraceRecorder {
 public:
  virtual ~TraceRecorder() = default;

  virtual uint32_t levels() const = 0;  // constant
  virtual uint64_t NextId() = 0;
  virtual void Report(Trace& trace, TraceActivity activity, std::string_view name, uint64_t ns) = 0;
  // Reports an activity of the request's protocol. There are none for the C API.
  virtual void ReportFrontend(std::string_view /*name*/, uint64_t /*ns*/) {}
  virtual void ReportTensor(const Trace& trace, TraceActivity activity,
                            const TensorView& tensor) = 0;
  // Called after the last report of `trace`.
  virtual void Release(std::unique_ptr<Trace> /*trace*/) {}
};

// The trace of one request in one model. Its children are the steps of an ensemble and the requests
// that a backend sends to other models. Thread-safe.
class Trace {
 public:
  Trace(std::shared_ptr<TraceRecorder> recorder, uint64_t id, uint64_t parent_id);

  // Shares a trace of a request. When the last copy is dropped, the recorder gets the trace back.
  static std::shared_ptr<Trace> Share(std::unique_ptr<Trace> trace);

  uint64_t id() const { return id_; }
  uint64_t parent_id() const { return parent_id_; }
  bool wants_timestamps() const { return (levels_ & kTraceTimestamps) != 0; }
  bool wants_tensors() const { return (levels_ & kTraceTensors) != 0; }

  // Sets the request's properties. REQUIRES: nothing has been reported yet.
  void Describe(std::string_view model, int64_t version, std::string_view request_id);
  const std::string& model() const { return model_; }
  int64_t version() const { return version_; }
  const std::string& request_id() const { return request_id_; }

  void Report(TraceActivity activity, uint64_t ns);
  // ReportCustom reports an activity of the backend, ReportFrontend one of the request's protocol.
  void ReportCustom(std::string_view name, uint64_t ns);
  void ReportFrontend(std::string_view name, uint64_t ns);
  void ReportTensor(TraceActivity activity, const TensorView& tensor);

  std::unique_ptr<Trace> SpawnChild() const;

  // Returns {"traceparent": ...}, for backends that trace on their own, or empty if there is no
  // context. Valid as long as the trace, even after another context is set.
  const char* context() const;
  void SetContext(std::string context);

 private:
  const std::shared_ptr<TraceRecorder> recorder_;
  const uint32_t levels_;
  const uint64_t id_;
  const uint64_t parent_id_;
  std::string model_;
  int64_t version_ = 0;
  std::string request_id_;
  mutable base::Mutex mutex_;
  std::deque<std::string> contexts_ NEREID_GUARDED_BY(mutex_);  // the last one is current
};

class RecentTraces;
class TraceSampler;
class TraceOutput;

// The trace settings and the sampling. Thread-safe.
class Tracing {
 public:
  explicit Tracing(TraceOptions options);
  // Writes the remaining traces; those of unfinished requests are lost.
  ~Tracing();

  // Whether any request may be traced.
  bool is_on() const { return is_on_.load(); }

  // Returns null if this request is not sampled.
  std::shared_ptr<Trace> Start(std::string_view model, const TraceContext& context);

  // Changes the settings of `model` or, if empty, of the server and of every model that has not set
  // its own. InvalidArgument if the result is invalid; then nothing is changed.
  base::Status Change(const std::string& model, const TraceChange& change);
  TraceView Read(const std::string& model) const;
  // The last traces, which are kept once it is started.
  RecentTraces& recent();

 private:
  struct Entry;

  // Returns the settings that `change` makes of `current`, which may be null. Those that are not
  // set explicitly are `fallback`.
  base::Result<std::unique_ptr<Entry>> MakeChanged(const Entry* current, const TraceChange& change,
                                                   const TraceSettings& fallback) const;
  base::Status ChangeServer(const TraceChange& change) NEREID_REQUIRES(mutex_);
  base::Status ChangeModel(const std::string& model, const TraceChange& change)
      NEREID_REQUIRES(mutex_);
  void UpdateSwitch() NEREID_REQUIRES(mutex_);

  const TraceOptions options_;
  const std::shared_ptr<TraceOutput> output_;
  std::atomic<bool> is_on_{false};
  mutable base::Mutex mutex_;
  std::unique_ptr<Entry> server_ NEREID_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> models_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::observe
