// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/batch_probe.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "backend_kit/mutex.h"
#include "onnxruntime_backend/data_types.h"
#include "onnxruntime_backend/library.h"

namespace nereid::onnxruntime {

using backend::BatchVerdict;
using backend::Error;
using backend::HostTensor;
using backend::ModelTensor;
using backend::Result;
using backend::StrCat;

namespace {

using std::chrono::nanoseconds;

nanoseconds Read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// Stops the current run when the processor time of the thread that made this is used up, or the
// total time.
class Watchdog {
 public:
  // All runs use `options`, which outlive this.
  Watchdog(OrtRunOptions* options, const ProbeLimits& limits)
      : options_(options), wall_end_(Read(CLOCK_MONOTONIC) + limits.wall_time) {
    if (pthread_getcpuclockid(pthread_self(), &cpu_clock_) != 0) {
      cpu_clock_ = CLOCK_MONOTONIC;
    }
    cpu_end_ = Read(cpu_clock_) + limits.cpu_time;
    thread_ = std::thread([this] { Watch(); });
  }
  ~Watchdog() {
    {
      const backend::MutexLock lock(mutex_);
      is_done_ = true;
    }
    done_.NotifyOne();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  bool IsOver() const { return Left() <= nanoseconds(0); }

 private:
  // Time is not over for at least this long, because a thread uses at most one processor.
  nanoseconds Left() const {
    return std::min(wall_end_ - Read(CLOCK_MONOTONIC), cpu_end_ - Read(cpu_clock_));
  }

  void Watch() {
    constexpr nanoseconds kShortest = std::chrono::milliseconds(1);
    const backend::MutexLock lock(mutex_);
    while (!is_done_) {
      done_.WaitUntil(mutex_, backend::CondVar::Clock::now() + std::max(Left(), kShortest));
      if (!is_done_ && IsOver()) {
        FromOrt(Api().RunOptionsSetTerminate(options_)).Ignore();
        return;
      }
    }
  }

  OrtRunOptions* const options_;
  const nanoseconds wall_end_;
  clockid_t cpu_clock_ = CLOCK_MONOTONIC;
  nanoseconds cpu_end_{0};
  backend::Mutex mutex_;
  backend::CondVar done_;
  bool is_done_ NEREID_KIT_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last, because it uses the other members
};

// Measures how much memory a session's arena has allocated, if the library can tell.
class ArenaMeter {
 public:
  explicit ArenaMeter(const OrtSession* session, const OrtMemoryInfo* memory_info) {
    constexpr uint32_t kTells = 23;
    api_ = ORT_API_VERSION >= kTells ? ApiBase().GetApi(kTells) : nullptr;
    if (api_ != nullptr) {
      FromOrt(api_->CreateAllocator(session, memory_info, &allocator_)).Ignore();
    }
  }
  ~ArenaMeter() {
    if (allocator_ != nullptr) {
      api_->ReleaseAllocator(allocator_);
    }
  }
  ArenaMeter(const ArenaMeter&) = delete;
  ArenaMeter& operator=(const ArenaMeter&) = delete;

  uint64_t Bytes() const {
    OrtKeyValuePairs* pairs = nullptr;
    if (allocator_ == nullptr || !FromOrt(api_->AllocatorGetStats(allocator_, &pairs)).ok()) {
      return 0;
    }
    const char* const text = api_->GetKeyValue(pairs, "TotalAllocated");
    const uint64_t bytes = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
    api_->ReleaseKeyValuePairs(pairs);
    return bytes;
  }

 private:
  const OrtApi* api_ = nullptr;
  OrtAllocator* allocator_ = nullptr;
};

Result<Owned<OrtRunOptions>> MakeRunOptions() {
  OrtRunOptions* raw = nullptr;
  NEREID_ORT_TRY(Api().CreateRunOptions(&raw));
  Owned<OrtRunOptions> options(raw);
  // Failures on some rows are expected and must not be logged.
  NEREID_ORT_TRY(Api().RunOptionsSetRunLogSeverityLevel(raw, ORT_LOGGING_LEVEL_FATAL));
  return options;
}

// Runs a session within limits.
class SessionRunner final : public backend::RowRunner {
 public:
  SessionRunner(const Session& session, const ProbeLimits& limits, Owned<OrtMemoryInfo> memory_info,
                Owned<OrtRunOptions> options)
      : session_(session),
        limits_(limits),
        memory_info_(std::move(memory_info)),
        options_(std::move(options)),
        meter_(session.get(), memory_info_.get()),
        arena_before_(meter_.Bytes()),
        watchdog_(options_.get(), limits) {}

  Result<std::vector<HostTensor>> Run(std::span<const HostTensor> inputs) override {
    const auto rows = static_cast<uint64_t>(inputs[0].shape[0]);
    if (arena_per_row_ * rows > limits_.arena_bytes) {
      too_large_ =
          StrCat(rows, " rows take more than ", limits_.arena_bytes >> 20, " MiB of the arena");
    }
    if (Exhausted()) {
      return Error::Unavailable("the limits of the probe are reached");
    }
    NEREID_KIT_TRY(FillValues(inputs));
    std::vector<const char*> names;
    for (const TensorInfo& output : session_.signature().outputs) {
      names.push_back(output.name.c_str());
    }
    std::vector<OrtValue*> raw_outputs(names.size(), nullptr);
    Error error = RunOnce(inputs, names, raw_outputs);
    std::vector<Owned<OrtValue>> outputs;
    for (OrtValue* value : raw_outputs) {
      outputs.emplace_back(value);
    }
    values_.clear();
    NEREID_KIT_TRY(error.Release());
    NEREID_KIT_ASSIGN(std::vector<HostTensor> read, ReadAll(outputs));
    Learn(inputs, read);
    return read;
  }

  // Frees the arena's memory. ONNX Runtime does that at the end of a run, for memory that is not in
  // use, such as that of outputs, unless they are in our memory. So this run places one output in
  // our memory and requests no others.
  Error GiveBack() {
    if (first_inputs_.empty() || last_output_.bytes.empty() || Exhausted()) {
      return {};
    }
    NEREID_ORT_TRY(
        Api().AddRunConfigEntry(options_.get(), "memory.enable_memory_arena_shrinkage", "cpu:0"));
    NEREID_KIT_TRY(FillValues(first_inputs_));
    OrtValue* raw = nullptr;
    NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(
        memory_info_.get(), last_output_.bytes.data(), last_output_.bytes.size(),
        last_output_.shape.data(), last_output_.shape.size(), FromServerType(last_output_.type),
        &raw));
    const Owned<OrtValue> output(raw);
    std::vector<OrtValue*> outputs = {raw};
    Error error = RunOnce(first_inputs_, {last_output_.name.c_str()}, outputs);
    values_.clear();
    return error;
  }

  std::optional<BatchVerdict> Exhausted() const override {
    if (watchdog_.IsOver()) {
      return BatchVerdict::No(
          "too_slow", StrCat("trying it takes more than ", limits_.cpu_time.count(),
                             " ms of one processor, or ", limits_.wall_time.count(), " ms in all"));
    }
    if (!too_large_.empty()) {
      return BatchVerdict::No("too_large", too_large_);
    }
    return std::nullopt;
  }

 private:
  Error FillValues(std::span<const HostTensor> inputs) {
    values_.clear();
    for (const HostTensor& input : inputs) {
      OrtValue* raw = nullptr;
      if (!input.is_string()) {
        // ONNX Runtime takes a mutable pointer but does not write to inputs.
        NEREID_ORT_TRY(Api().CreateTensorWithDataAsOrtValue(
            memory_info_.get(), const_cast<char*>(input.bytes.data()), input.bytes.size(),
            input.shape.data(), input.shape.size(), FromServerType(input.type), &raw));
        values_.emplace_back(raw);
        continue;
      }
      OrtAllocator* allocator = nullptr;
      NEREID_ORT_TRY(Api().GetAllocatorWithDefaultOptions(&allocator));
      NEREID_ORT_TRY(Api().CreateTensorAsOrtValue(allocator, input.shape.data(), input.shape.size(),
                                                  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &raw));
      values_.emplace_back(raw);
      std::vector<const char*> texts;
      for (const std::string& text : input.strings) {
        texts.push_back(text.c_str());
      }
      NEREID_ORT_TRY(Api().FillStringTensor(raw, texts.data(), texts.size()));
    }
    return {};
  }

  Error RunOnce(std::span<const HostTensor> inputs, const std::vector<const char*>& output_names,
                std::vector<OrtValue*>& outputs) {
    std::vector<const char*> input_names;
    std::vector<const OrtValue*> values;
    for (size_t i = 0; i < inputs.size(); ++i) {
      input_names.push_back(inputs[i].name.c_str());
      values.push_back(values_[i].get());
    }
    return FromOrt(Api().Run(session_.get(), options_.get(), input_names.data(), values.data(),
                             values.size(), output_names.data(), output_names.size(),
                             outputs.data()));
  }

  // Remembers the first run, which shows the memory of a row and is repeated in GiveBack.
  void Learn(std::span<const HostTensor> inputs, const std::vector<HostTensor>& outputs) {
    if (!first_inputs_.empty()) {
      return;
    }
    const auto rows = static_cast<uint64_t>(inputs[0].shape[0]);
    const uint64_t bytes = meter_.Bytes();
    arena_per_row_ = bytes > arena_before_ ? (bytes - arena_before_) / rows : 0;
    first_inputs_.assign(inputs.begin(), inputs.end());
    const auto fixed = std::find_if(outputs.begin(), outputs.end(),
                                    [](const HostTensor& output) { return !output.is_string(); });
    if (fixed != outputs.end()) {
      last_output_ = *fixed;
    }
  }

  Result<std::vector<HostTensor>> ReadAll(const std::vector<Owned<OrtValue>>& values) {
    std::vector<HostTensor> tensors;
    for (size_t o = 0; o < values.size(); ++o) {
      NEREID_KIT_ASSIGN(HostTensor tensor,
                        ReadOne(session_.signature().outputs[o], values[o].get()));
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  Result<HostTensor> ReadOne(const TensorInfo& info, const OrtValue* value) {
    HostTensor tensor{.name = info.name,
                      .type = ToServerType(info.type),
                      .shape = {},
                      .bytes = {},
                      .strings = {}};
    OrtTensorTypeAndShapeInfo* raw_shape = nullptr;
    NEREID_ORT_TRY(Api().GetTensorTypeAndShape(value, &raw_shape));
    const Owned<OrtTensorTypeAndShapeInfo> shape(raw_shape);
    size_t rank = 0;
    NEREID_ORT_TRY(Api().GetDimensionsCount(raw_shape, &rank));
    tensor.shape.resize(rank);
    NEREID_ORT_TRY(Api().GetDimensions(raw_shape, tensor.shape.data(), rank));
    NEREID_KIT_ASSIGN(const int64_t elements, backend::ElementCount(tensor.shape));
    const uint64_t bytes = static_cast<uint64_t>(elements) *
                           std::max<uint64_t>(backend::ElementByteSize(tensor.type), 1);
    if (bytes > limits_.output_bytes) {
      too_large_ =
          StrCat("output '", info.name, "' takes more than ", limits_.output_bytes >> 20, " MiB");
      return Error::Unavailable(too_large_);
    }
    if (tensor.is_string()) {
      NEREID_KIT_TRY(ReadStrings(value, static_cast<size_t>(elements), tensor));
      return tensor;
    }
    const void* data = nullptr;
    NEREID_ORT_TRY(Api().GetTensorData(value, &data));
    const auto* const begin = static_cast<const char*>(data);
    tensor.bytes.assign(begin, begin + bytes);
    return tensor;
  }

  static Error ReadStrings(const OrtValue* value, size_t elements, HostTensor& tensor) {
    for (size_t e = 0; e < elements; ++e) {
      size_t length = 0;
      NEREID_ORT_TRY(Api().GetStringTensorElementLength(value, e, &length));
      std::string text(length, '\0');
      NEREID_ORT_TRY(Api().GetStringTensorElement(value, length, e, text.data()));
      tensor.strings.push_back(std::move(text));
    }
    return {};
  }

  const Session& session_;
  const ProbeLimits& limits_;
  const Owned<OrtMemoryInfo> memory_info_;
  const Owned<OrtRunOptions> options_;
  const ArenaMeter meter_;
  const uint64_t arena_before_;
  uint64_t arena_per_row_ = 0;
  std::vector<HostTensor> first_inputs_;
  HostTensor last_output_;               // of the first run; empty if all its outputs are strings
  std::string too_large_;                // empty while memory suffices
  std::vector<Owned<OrtValue>> values_;  // of the inputs of a run
  Watchdog watchdog_;
};

// The functions that describe a list of a session's tensors.
struct DescribingFunctions {
  OrtStatus*(ORT_API_CALL* count)(const OrtSession*, size_t*);
  OrtStatus*(ORT_API_CALL* name)(const OrtSession*, size_t, OrtAllocator*, char**);
  OrtStatus*(ORT_API_CALL* type)(const OrtSession*, size_t, OrtTypeInfo**);
};

// Reads the names of the dimensions of tensor `index`, which has `rank`.
Result<std::vector<std::string>> ReadSymbols(const OrtSession* session, size_t index, size_t rank,
                                             const DescribingFunctions& list) {
  OrtTypeInfo* raw = nullptr;
  NEREID_ORT_TRY(list.type(session, index, &raw));
  const Owned<OrtTypeInfo> type(raw);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  NEREID_ORT_TRY(Api().CastTypeInfoToTensorInfo(raw, &tensor));
  std::vector<const char*> names(rank, nullptr);
  if (tensor != nullptr && rank > 0) {
    NEREID_ORT_TRY(Api().GetSymbolicDimensions(tensor, names.data(), rank));
  }
  std::vector<std::string> symbols;
  for (const char* name : names) {
    symbols.emplace_back(name == nullptr ? "" : name);
  }
  return symbols;
}

// Adds the session's descriptions of the tensors in the signature.
Error Describe(const OrtSession* session, const std::vector<TensorInfo>& infos, bool is_output,
               const DescribingFunctions& list, std::vector<ModelTensor>& to) {
  OrtAllocator* allocator = nullptr;
  NEREID_ORT_TRY(Api().GetAllocatorWithDefaultOptions(&allocator));
  size_t count = 0;
  NEREID_ORT_TRY(list.count(session, &count));
  for (size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    NEREID_ORT_TRY(list.name(session, i, allocator, &name));
    const TensorInfo* const info = FindTensor(infos, name);
    NEREID_ORT_TRY(Api().AllocatorFree(allocator, name));
    if (info == nullptr) {
      continue;
    }
    NEREID_KIT_ASSIGN(std::vector<std::string> symbols,
                      ReadSymbols(session, i, info->dims.size(), list));
    to.push_back({.name = info->name,
                  .type = ToServerType(info->type),
                  .dims = info->dims,
                  .symbols = std::move(symbols),
                  .is_output = is_output});
  }
  return {};
}

Result<BatchVerdict> Decide(const Session& session, int max_rows, const ProbeLimits& limits) {
  const OrtApi& api = Api();
  std::vector<ModelTensor> tensors;
  NEREID_KIT_TRY(Describe(
      session.get(), session.signature().inputs, false,
      {api.SessionGetInputCount, api.SessionGetInputName, api.SessionGetInputTypeInfo}, tensors));
  const size_t inputs = tensors.size();
  NEREID_KIT_TRY(
      Describe(session.get(), session.signature().outputs, true,
               {api.SessionGetOutputCount, api.SessionGetOutputName, api.SessionGetOutputTypeInfo},
               tensors));
  if (auto refusal = backend::RefuseByDescription(tensors)) {
    return *std::move(refusal);
  }
  OrtMemoryInfo* raw_info = nullptr;
  NEREID_ORT_TRY(api.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &raw_info));
  Owned<OrtMemoryInfo> memory_info(raw_info);
  NEREID_KIT_ASSIGN(Owned<OrtRunOptions> options, MakeRunOptions());
  SessionRunner runner(session, limits, std::move(memory_info), std::move(options));
  BatchVerdict verdict =
      backend::ProbeBatching(std::span(tensors).first(inputs), {.max_rows = max_rows}, runner);
  runner.GiveBack().Ignore();  // a session without an arena has nothing to free
  return verdict;
}

}  // namespace

BatchVerdict DecideBatching(const Session& session, int max_rows, const ProbeLimits& limits) {
  try {
    auto verdict = Decide(session, max_rows, limits);
    if (verdict.ok()) {
      return std::move(verdict).value();
    }
    return BatchVerdict::No("does_not_run", verdict.TakeError().message());
  } catch (const std::exception& e) {
    return BatchVerdict::No("does_not_run", e.what());
  }
}

}  // namespace nereid::onnxruntime
