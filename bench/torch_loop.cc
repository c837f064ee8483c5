// SPDX-License-Identifier: Apache-2.0
// PyTorch without a server: what a TorchScript model costs in a loop on one thread.
//
//   torch_loop --model=FILE --rows=8 --columns=256 [--seconds=2]
//
// The model takes one FP32 tensor [rows, columns]. Prints one JSON object.
#include <ATen/Parallel.h>
#include <ATen/ops/rand.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>

#include "load/options.h"

namespace nereid::bench {
namespace {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void Run(const Options& options) {
  at::set_num_threads(1);
  const c10::InferenceMode inference_mode;
  torch::jit::Module module = torch::jit::load(options.Text("model", ""), at::Device(at::kCPU));
  module.eval();
  const at::Tensor rows = at::rand({static_cast<int64_t>(options.Count("rows", 8)),
                                    static_cast<int64_t>(options.Count("columns", 256))});
  constexpr int kWarmUps = 200;
  for (int i = 0; i < kWarmUps; ++i) module.forward({rows});
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(options.Number("seconds", 2));
  const double start = CpuSeconds();
  int runs = 0;
  for (; Clock::now() < end; ++runs) module.forward({rows});
  std::printf("{\"runs\": %d, \"cpu_us\": %.2f}\n", runs, (CpuSeconds() - start) * 1e6 / runs);
}

}  // namespace
}  // namespace nereid::bench

int main(int argc, char** argv) {
  try {
    nereid::bench::Run(nereid::bench::Options(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
