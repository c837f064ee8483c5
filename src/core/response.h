// SPDX-License-Identifier: Apache-2.0
// One response to a request: outputs with their data, or an error. Pooled.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/parameter.h"
#include "core/request.h"
#include "core/response_sink.h"

namespace nereid::core {

class Response;

// An output of a response: its description and the location of its data.
struct ResponseOutput {
  std::string_view name;
  tensor::DataType type = tensor::DataType::kInvalid;
  tensor::Shape shape;
  uint32_t model_index = 0;
  std::byte* data = nullptr;
  size_t byte_size = 0;
  memory::Placement where;
  bool has_buffer = false;
  base::BufferRef buffer;  // owns `data` unless that is in the arena or was placed by the sink
  bool is_placed = false;  // by the sink
  void* placement_owner = nullptr;
  void* cuda_ipc_handle = nullptr;
  // Where on a GPU the sink wants the data that the model writes to `buffer`.
  std::byte* staged_for = nullptr;
  memory::Placement staged_where;
  void (*release)(void* user) = nullptr;  // for lent data
  void* release_user = nullptr;
  Response* owner = nullptr;
};

// A response. Thread-compatible. Outputs keep their address until the response is destroyed.
class Response {
 public:
  // The limit of outputs: more than any model has, and few enough to reserve.
  static constexpr size_t kMaxOutputs = 4096;

  // Makes a response to `request`, whose memory it keeps.
  static ResponsePtr Create(Request& request);

  // Returns null when memory is exhausted or there are too many outputs. `name` is copied unless it
  // is one of the model's; in both cases a zero byte follows it.
  ResponseOutput* AddOutput(std::string_view name, tensor::DataType type,
                            std::span<const int64_t> shape);
  // Gives `output` a buffer of `byte_size` bytes: where the sink places it, or else from the pool
  // (64-byte aligned CPU memory). `zero` clears it first. A second call for one output is an error.
  // The buffer is in the memory of a GPU only if that is preferred: not every model can write
  // there.
  base::Status AllocateBuffer(ResponseOutput& output, size_t byte_size, memory::Placement preferred,
                              bool zero);
  // Gives `output` CPU memory that the caller lends and must not change until release(user). That
  // is called once, on any thread, also if this fails, and at once if the sink places the data
  // elsewhere.
  base::Status LendBuffer(ResponseOutput& output, const std::byte* data, size_t byte_size,
                          void (*release)(void* user), void* user);
  // Gives `output` the data of `source`, an output of another response. The data is shared if it is
  // in the pool and the sink does not place it elsewhere, and copied otherwise.
  base::Status ShareBuffer(ResponseOutput& output, const ResponseOutput& source);
  // Copies outputs that were written to host memory to the GPUs where they are wanted. Code that
  // writes to the memory of AllocateBuffer calls this before it sends the response.
  base::Status MoveStagedOutputs() {
    return has_staged_outputs_ ? MoveOutputs() : base::OkStatus();
  }
  // Adds a copy of the parameter. Its name and text value are each followed by a zero byte.
  void AddParameter(const Parameter& parameter);

  Request& request() const { return *request_; }
  // Memory for small data that lives as long as the response.
  memory::Arena& arena() { return arena_; }
  size_t output_count() const { return output_count_; }
  ResponseOutput& output(size_t i) { return *outputs_[i]; }
  const ResponseOutput& output(size_t i) const { return *outputs_[i]; }
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const base::Status& error() const { return error_; }
  void SetError(base::Status error) { error_ = std::move(error); }

  // Called by ObjectPool.
  void Recycle();

 private:
  friend struct ResponseDeleter;

  // Gives `output`, which is wanted on a GPU, host memory for the time until it is sent.
  base::Status Stage(ResponseOutput& output, size_t byte_size);
  // Copies data that are there already to where `output` was placed; drops them if it was not
  // placed.
  base::Status CopyTo(ResponseOutput& output, const std::byte* data,
                      const memory::Placement& where) const;
  base::Status MoveOutputs();

  RequestRef request_;
  // Never shrinks: later responses reuse the elements and their capacity.
  std::vector<std::unique_ptr<ResponseOutput>> outputs_;
  size_t output_count_ = 0;
  std::vector<Parameter> parameters_;
  base::Status error_;
  bool has_staged_outputs_ = false;
  memory::InlineArena<1536> arena_;  // also holds small tensors
};

}  // namespace nereid::core
