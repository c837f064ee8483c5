// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime without a server: what a model costs at a batch size, and how long models take to
// load.
//
//   ort_loop --model=FILE --batch=64 [--seconds=2]    runs it in a loop on one thread
//   ort_loop --model=FILE --rows=8 [--seconds=2]      the same; prints what MeasureLoop does
//   ort_loop --model=FILE --load=64 --threads=2       makes this many sessions; ready_ms counts
//   from
//                                                     --since=NS of the monotonic clock, if given
//
// The model has one input and one output, of floats except for the output, [n, k]. Prints one JSON
// object.

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "load/loop.h"
#include "load/options.h"

namespace nereid::bench {
namespace {

using Clock = std::chrono::steady_clock;

const OrtApi& Api() {
  static const OrtApi& api = *OrtGetApiBase()->GetApi(ORT_API_VERSION);
  return api;
}

void Check(OrtStatus* status) {
  if (status != nullptr) Die(Api().GetErrorMessage(status));
}

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

OrtSession* Load(OrtEnv* env, const std::string& file) {
  OrtSessionOptions* options = nullptr;
  Check(Api().CreateSessionOptions(&options));
  Check(Api().SetIntraOpNumThreads(options, 1));
  Check(Api().SetInterOpNumThreads(options, 1));
  OrtSession* session = nullptr;
  Check(Api().CreateSession(env, file.c_str(), options, &session));
  Api().ReleaseSessionOptions(options);
  return session;
}

int64_t InputColumns(OrtSession* session) {
  OrtTypeInfo* type = nullptr;
  Check(Api().SessionGetInputTypeInfo(session, 0, &type));
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  Check(Api().CastTypeInfoToTensorInfo(type, &tensor));
  int64_t dims[2] = {};
  Check(Api().GetDimensions(tensor, dims, 2));
  Api().ReleaseTypeInfo(type);
  return dims[1];
}

void Run(OrtEnv* env, const Options& options) {
  OrtSession* session = Load(env, options.Text("model", ""));
  const auto batch = static_cast<int64_t>(options.Count(options.Has("rows") ? "rows" : "batch", 1));
  const int64_t shape[] = {batch, InputColumns(session)};
  std::vector<float> input(static_cast<size_t>(shape[0] * shape[1]), 0.5F);
  OrtMemoryInfo* memory = nullptr;
  Check(Api().CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  OrtValue* value = nullptr;
  Check(Api().CreateTensorWithDataAsOrtValue(memory, input.data(), input.size() * sizeof(float),
                                             shape, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                             &value));
  OrtAllocator* allocator = nullptr;
  Check(Api().GetAllocatorWithDefaultOptions(&allocator));
  char* input_name = nullptr;
  char* output_name = nullptr;
  Check(Api().SessionGetInputName(session, 0, allocator, &input_name));
  Check(Api().SessionGetOutputName(session, 0, allocator, &output_name));
  const double seconds = options.Number("seconds", 2);
  const auto run = [&] {
    OrtValue* output = nullptr;
    Check(Api().Run(session, nullptr, &input_name, &value, 1, &output_name, 1, &output));
    Api().ReleaseValue(output);
  };
  if (options.Has("rows")) return MeasureLoop(options, run);
  std::vector<double> times_us;
  const auto start = Clock::now();
  while (SecondsSince(start) < seconds) {
    const auto run_start = Clock::now();
    run();
    times_us.push_back(SecondsSince(run_start) * 1e6);
  }
  const double took = SecondsSince(start);
  std::sort(times_us.begin(), times_us.end());
  const double items = static_cast<double>(times_us.size()) * static_cast<double>(batch);
  std::printf("{\"per_second\":%.1f,\"cpu_us\":%.3f,\"p50_us\":%.2f,\"batch\":%lld}\n",
              items / took, took * 1e6 / items, times_us[times_us.size() / 2],
              static_cast<long long>(batch));
}

void LoadMany(OrtEnv* env, const Options& options) {
  const std::string file = options.Text("model", "");
  const size_t count = options.Count("load", 64);
  const size_t thread_count = options.Count("threads", 1);
  // The caller passes the time before it started this process, so that the start counts, as it does
  // for a server.
  const auto since = std::chrono::nanoseconds(static_cast<int64_t>(options.Number("since", 0)));
  const auto start = options.Has("since") ? Clock::time_point(since) : Clock::now();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      for (size_t k = i; k < count; k += thread_count) Load(env, file);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("{\"ready_ms\":%.2f}\n", SecondsSince(start) * 1e3);
}

}  // namespace
}  // namespace nereid::bench

int main(int argc, char** argv) {
  using namespace nereid::bench;
  const Options options(argc, argv);
  OrtEnv* env = nullptr;
  setenv("ORT_DISABLE_TELEMETRY", "1", /*overwrite=*/1);  // before the first use of the library
  Check(Api().CreateEnv(ORT_LOGGING_LEVEL_WARNING, "bench", &env));
  options.Has("load") ? LoadMany(env, options) : Run(env, options);
}
