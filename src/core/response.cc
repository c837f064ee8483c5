// SPDX-License-Identifier: Apache-2.0
#include "core/response.h"

#include <cstring>

#include "base/object_pool.h"
#include "core/model.h"
#include "memory/gpus.h"

namespace nereid::core {
namespace {

using ResponsePool = base::ObjectPool<Response>;

// Outputs up to this size are stored in the response's own memory.
constexpr size_t kArenaOutputBytes = 512;

// `output` lies where the sink said.
void Place(ResponseOutput& output, const OutputPlacement& placement) {
  output.data = placement.data;
  output.where = placement.where;
  output.is_placed = true;
  output.placement_owner = placement.owner;
  output.cuda_ipc_handle = placement.cuda_ipc_handle;
}

}  // namespace

ResponsePtr Response::Create(Request& request) {
  Response* response = ResponsePool::Take();
  response->request_ = RequestRef(request);
  request.sink().OnResponseCreated(request);
  return ResponsePtr(response);
}

void ResponseDeleter::operator()(Response* response) const {
  // The request is dropped last and outside the pool, because the sink and the model may be
  // destroyed with it.
  RequestRef request = std::move(response->request_);
  for (size_t i = 0; i < response->output_count_; ++i) {
    const ResponseOutput& output = *response->outputs_[i];
    if (output.release != nullptr) output.release(output.release_user);
    if (output.is_placed) {
      const bool is_staged = output.staged_for != nullptr;
      request->sink().ReleasePlacement(
          {is_staged ? output.staged_for : output.data,
           is_staged ? output.staged_where : output.where, output.placement_owner},
          output.byte_size);
    }
  }
  ResponsePool::Give(response);
}

void Response::Recycle() {
  request_.Reset();
  for (size_t i = 0; i < output_count_; ++i) {
    ResponseOutput& output = *outputs_[i];
    output.buffer.Reset();
    output.release = nullptr;
    output.shape.Clear();
  }
  output_count_ = 0;
  has_staged_outputs_ = false;
  parameters_.clear();
  if (!error_.ok()) error_ = base::OkStatus();
  arena_.Reset();
}

ResponseOutput* Response::AddOutput(std::string_view name, tensor::DataType type,
                                    std::span<const int64_t> shape) {
  if (output_count_ == kMaxOutputs) return nullptr;
  if (output_count_ == outputs_.size()) outputs_.push_back(std::make_unique<ResponseOutput>());
  ResponseOutput& output = *outputs_[output_count_];
  const int index = request_->model ? request_->model->FindOutput(name) : -1;
  if (index >= 0) {
    output.name = request_->model->outputs()[static_cast<size_t>(index)].name;
    output.model_index = static_cast<uint32_t>(index);
  } else {
    output.name = arena_.CopyTerminated(name);
    output.model_index = UINT32_MAX;
  }
  output.owner = this;
  output.type = type;
  output.shape.Assign(shape);
  output.data = nullptr;
  output.byte_size = 0;
  output.where = {};
  output.has_buffer = false;
  output.is_placed = false;
  output.placement_owner = nullptr;
  output.cuda_ipc_handle = nullptr;
  output.staged_for = nullptr;
  ++output_count_;
  return &output;
}

base::Status Response::AllocateBuffer(ResponseOutput& output, size_t byte_size,
                                      memory::Placement preferred, bool zero) {
  if (output.has_buffer) {
    return base::AlreadyExistsError("output '" + std::string(output.name) +
                                    "' already has a buffer");
  }
  NEREID_ASSIGN_OR_RETURN(const std::optional<OutputPlacement> placed,
                          request_->sink().PlaceOutput(*request_, output, byte_size, preferred));
  if (placed) {
    Place(output, *placed);
    const bool is_on_gpu = placed->where.type == memory::MemoryType::kGpu;
    if (is_on_gpu && preferred.type != memory::MemoryType::kGpu) {
      NEREID_RETURN_IF_ERROR(Stage(output, byte_size));
    }
  } else if (byte_size <= kArenaOutputBytes) {
    output.data = arena_.Allocate(byte_size, base::kBufferAlignment);
  } else if ((output.buffer = base::AcquireBuffer(byte_size))) {
    output.data = output.buffer.data();
  }
  if (output.data == nullptr && byte_size > 0) {
    return base::UnavailableError("unable to allocate " + std::to_string(byte_size) +
                                  " bytes for output '" + std::string(output.name) + "'");
  }
  output.byte_size = byte_size;
  output.has_buffer = true;
  if (zero && byte_size > 0 && output.where.type != memory::MemoryType::kGpu) {
    std::memset(output.data, 0, byte_size);
  }
  return base::OkStatus();
}

base::Status Response::Stage(ResponseOutput& output, size_t byte_size) {
  if (output.data == nullptr || byte_size == 0) return base::OkStatus();
  output.buffer = base::AcquireBuffer(byte_size);
  if (!output.buffer) {
    return base::UnavailableError("unable to allocate " + std::to_string(byte_size) +
                                  " bytes for output '" + std::string(output.name) + "'");
  }
  output.staged_for = output.data;
  output.staged_where = output.where;
  output.data = output.buffer.data();
  output.where = {};
  has_staged_outputs_ = true;
  return base::OkStatus();
}

base::Status Response::CopyTo(ResponseOutput& output, const std::byte* data,
                              const memory::Placement& where) const {
  if (output.byte_size == 0) return base::OkStatus();
  const bool is_gpu =
      output.where.type == memory::MemoryType::kGpu || where.type == memory::MemoryType::kGpu;
  if (!is_gpu) {
    std::memcpy(output.data, data, output.byte_size);
    return base::OkStatus();
  }
  const memory::Gpus* const gpus = request_->model ? request_->model->gpus() : nullptr;
  if (gpus == nullptr) {
    return base::UnsupportedError("output '" + std::string(output.name) + "' is in GPU memory");
  }
  base::Status status = gpus->Copy(output.data, output.where, data, where, output.byte_size);
  if (status.ok()) return status;
  return status.WithPrefix("output '" + std::string(output.name) + "' for GPU " +
                           std::to_string(output.where.id) + ": ");
}

base::Status Response::MoveOutputs() {
  for (size_t i = 0; i < output_count_; ++i) {
    ResponseOutput& output = *outputs_[i];
    if (output.staged_for == nullptr) continue;
    const base::BufferRef staged = std::move(output.buffer);
    output.data = std::exchange(output.staged_for, nullptr);
    output.where = output.staged_where;
    NEREID_RETURN_IF_ERROR(CopyTo(output, staged.data(), {}));
  }
  has_staged_outputs_ = false;
  return base::OkStatus();
}

base::Status Response::LendBuffer(ResponseOutput& output, const std::byte* data, size_t byte_size,
                                  void (*release)(void* user), void* user) {
  const auto take = [&]() -> base::Result<bool> {
    if (output.has_buffer) {
      return base::AlreadyExistsError("output '" + std::string(output.name) +
                                      "' already has a buffer");
    }
    NEREID_ASSIGN_OR_RETURN(const std::optional<OutputPlacement> placed,
                            request_->sink().PlaceOutput(*request_, output, byte_size, {}));
    output.byte_size = byte_size;
    output.has_buffer = true;
    if (!placed) {
      // Outputs are not written to once they have their data.
      output.data = const_cast<std::byte*>(data);
      return true;
    }
    Place(output, *placed);
    NEREID_RETURN_IF_ERROR(CopyTo(output, data, {}));
    return false;
  };
  const base::Result<bool> is_lent = take();
  if (is_lent.ok() && *is_lent) {
    output.release = release;
    output.release_user = user;
    return base::OkStatus();
  }
  release(user);
  return is_lent.status();
}

base::Status Response::ShareBuffer(ResponseOutput& output, const ResponseOutput& source) {
  if (source.buffer && !output.has_buffer) {
    NEREID_ASSIGN_OR_RETURN(
        const std::optional<OutputPlacement> placed,
        request_->sink().PlaceOutput(*request_, output, source.byte_size, source.where));
    output.byte_size = source.byte_size;
    output.has_buffer = true;
    if (!placed) {
      output.buffer = source.buffer;
      output.data = source.data;
      output.where = source.where;
      return base::OkStatus();
    }
    Place(output, *placed);
  } else {
    NEREID_RETURN_IF_ERROR(AllocateBuffer(output, source.byte_size, source.where, false));
  }
  NEREID_RETURN_IF_ERROR(CopyTo(output, source.data, source.where));
  return MoveStagedOutputs();
}

void Response::AddParameter(const Parameter& parameter) {
  Parameter& copy = parameters_.emplace_back(parameter);
  copy.name = arena_.CopyTerminated(parameter.name);
  if (const auto* text = std::get_if<std::string_view>(&parameter.value)) {
    copy.value = arena_.CopyTerminated(*text);
  }
}

}  // namespace nereid::core
