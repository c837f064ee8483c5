// SPDX-License-Identifier: Apache-2.0
#include "core/trace_tensors.h"

#include <string>

namespace nereid::core {
namespace {

std::string_view ToView(const std::byte* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

void Report(observe::Trace& trace, observe::TraceActivity activity, observe::TensorView tensor,
            memory::Placement where) {
  tensor.memory_type = static_cast<int>(where.type);
  tensor.memory_type_id = where.id;
  trace.ReportTensor(activity, tensor);
}

}  // namespace

void TraceInputs(const Request& request) {
  for (const RequestInput& input : request.inputs) {
    if (input.model_index == kServerInput) continue;
    observe::TensorView tensor{
        .name = input.name, .type = input.type, .shape = input.shape.dims(), .bytes = {}};
    std::string joined;
    if (input.more.empty()) {
      tensor.bytes = ToView(input.first.data, input.first.size);
    } else {
      bool is_readable = true;
      for (size_t i = 0; i < input.chunk_count(); ++i) {
        const DataChunk& chunk = input.chunk(i);
        is_readable = is_readable && chunk.where.type != memory::MemoryType::kGpu;
        if (is_readable) joined += ToView(chunk.data, chunk.size);
      }
      if (!is_readable) continue;
      tensor.bytes = joined;
    }
    Report(*request.trace, observe::TraceActivity::kTensorQueueInput, tensor, input.first.where);
  }
}

void TraceOutputs(observe::Trace& trace, const Response& response) {
  for (size_t i = 0; i < response.output_count(); ++i) {
    const ResponseOutput& output = response.output(i);
    if (!output.has_buffer) continue;
    Report(trace, observe::TraceActivity::kTensorBackendOutput,
           {.name = output.name,
            .type = output.type,
            .shape = output.shape.dims(),
            .bytes = ToView(output.data, output.byte_size)},
           output.where);
  }
}

}  // namespace nereid::core
