// SPDX-License-Identifier: Apache-2.0
// PyTorch without a server: what a TorchScript model costs in a loop on one thread.
//
//   torch_loop --model=FILE --rows=8 --columns=256 [--seconds=2] [--pause-us=0]
//
// The model takes one FP32 tensor [rows, columns]. Prints what MeasureLoop does.
#include <ATen/Parallel.h>
#include <ATen/ops/rand.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstdio>
#include <exception>

#include "load/loop.h"
#include "load/options.h"

namespace nereid::bench {
namespace {

void Run(const Options& options) {
  at::set_num_threads(1);
  const c10::InferenceMode inference_mode;
  torch::jit::Module module = torch::jit::load(options.Text("model", ""), at::Device(at::kCPU));
  module.eval();
  const at::Tensor rows = at::rand({static_cast<int64_t>(options.Count("rows", 8)),
                                    static_cast<int64_t>(options.Count("columns", 256))});
  MeasureLoop(options, [&] { module.forward({rows}); });
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
