// SPDX-License-Identifier: Apache-2.0
// OpenVINO without a server: what a model costs in a loop on one thread of the CPU.
//
//   openvino_loop --model=FILE --rows=8 --columns=256 [--seconds=2] [--pause-us=0]
//
// The model takes one FP32 tensor [rows, columns]. Prints what MeasureLoop does.
#include <cstdio>
#include <exception>
#include <openvino/openvino.hpp>
#include <vector>

#include "load/loop.h"
#include "load/options.h"

namespace nereid::bench {
namespace {

void Run(const Options& options) {
  ov::Core core;
  ov::CompiledModel compiled =
      core.compile_model(options.Text("model", ""), "CPU", ov::inference_num_threads(1),
                         ov::num_streams(1), ov::hint::inference_precision(ov::element::f32));
  ov::InferRequest request = compiled.create_infer_request();
  const ov::Shape shape = {options.Count("rows", 8), options.Count("columns", 256)};
  std::vector<float> rows(ov::shape_size(shape), 0.5F);
  request.set_input_tensor(ov::Tensor(ov::element::f32, shape, rows.data()));
  MeasureLoop(options, [&] { request.infer(); });
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
