// SPDX-License-Identifier: Apache-2.0
// Input tensors of a request as views, copied to contiguous memory if necessary, and output buffers
// of a response. Everything is in host memory, also what a client has on a GPU, except where a
// function says otherwise. Host policies are ignored, because all buffers of a request are then in
// the same memory.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "backend_kit/error.h"
#include "backend_kit/shape.h"
#include "nereid/backend_memory.h"

namespace nereid::backend {

// An input tensor of one request. Its pointers are valid until the request is released.
struct InputView {
  TRITONBACKEND_Input* input = nullptr;
  const char* name = nullptr;
  TRITONSERVER_DataType datatype = TRITONSERVER_TYPE_INVALID;
  std::span<const int64_t> shape;
  uint64_t byte_size = 0;
  uint32_t buffer_count = 0;
};

inline Result<InputView> ReadInput(TRITONBACKEND_Input* input) {
  InputView view{.input = input};
  const int64_t* shape = nullptr;
  uint32_t dims = 0;
  NEREID_KIT_TRY(TRITONBACKEND_InputProperties(input, &view.name, &view.datatype, &shape, &dims,
                                               &view.byte_size, &view.buffer_count));
  view.shape = {shape, dims};
  return view;
}

// Returns the input at a position of the request.
inline Result<InputView> ReadInput(TRITONBACKEND_Request* request, uint32_t index) {
  TRITONBACKEND_Input* input = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_RequestInputByIndex(request, index, &input));
  return ReadInput(input);
}

// Returns the input called `name`. `index` is its position in most requests and is tried first.
inline Result<InputView> ReadInput(TRITONBACKEND_Request* request, uint32_t index,
                                   const char* name) {
  auto at_index = ReadInput(request, index);
  if (at_index.ok() && std::strcmp(at_index.value().name, name) == 0) {
    return at_index;
  }
  TRITONBACKEND_Input* input = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_RequestInput(request, name, &input));
  return ReadInput(input);
}

// A buffer of an input, wherever it is.
struct InputChunk {
  const char* data = nullptr;
  uint64_t size = 0;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
  int64_t id = 0;
};

inline Result<InputChunk> ReadChunk(const InputView& view, uint32_t index) {
  InputChunk chunk;
  const void* base = nullptr;
  NEREID_KIT_TRY(
      TRITONBACKEND_InputBuffer(view.input, index, &base, &chunk.size, &chunk.type, &chunk.id));
  chunk.data = static_cast<const char*>(base);
  return chunk;
}

// Returns one buffer of an input; fails for memory that the CPU cannot read.
inline Result<std::span<const char>> InputBuffer(const InputView& view, uint32_t index) {
  NEREID_KIT_ASSIGN(const InputChunk chunk, ReadChunk(view, index));
  if (chunk.type == TRITONSERVER_MEMORY_GPU) {
    return Error::Unsupported(
        StrCat("input '", view.name, "' is in GPU memory, which this instance cannot read"));
  }
  return std::span<const char>(chunk.data, chunk.size);
}

// Returns the whole input if it is in one piece in the memory of GPU `device`, and otherwise null.
inline Result<const char*> GpuInput(const InputView& view, int64_t device) {
  if (view.buffer_count != 1) {
    return static_cast<const char*>(nullptr);
  }
  NEREID_KIT_ASSIGN(const InputChunk chunk, ReadChunk(view, 0));
  const bool is_there =
      chunk.type == TRITONSERVER_MEMORY_GPU && chunk.id == device && chunk.size == view.byte_size;
  return is_there ? chunk.data : static_cast<const char*>(nullptr);
}

// Copies an input that is in the memory of GPUs, at least in part.
inline Error CopyGpuInput(const InputView& view, std::span<char> to) {
  if (NEREIDBACKEND_InputCopy == nullptr) {
    return Error::Unsupported(
        StrCat("input '", view.name, "' is in GPU memory, which this instance cannot read"));
  }
  return Error(NEREIDBACKEND_InputCopy(view.input, to.data(), to.size()));
}

// Copies the whole input to `to`, which must be exactly view.byte_size long. Fails if the buffers
// hold more or less.
inline Error CopyInput(const InputView& view, std::span<char> to) {
  size_t copied = 0;
  for (uint32_t b = 0; b < view.buffer_count; ++b) {
    NEREID_KIT_ASSIGN(const InputChunk from, ReadChunk(view, b));
    if (from.type == TRITONSERVER_MEMORY_GPU) [[unlikely]] {
      return CopyGpuInput(view, to);
    }
    if (from.size > to.size() - copied) {
      return Error::InvalidArgument(
          StrCat("buffer size for input '", view.name, "' exceeds batch byte size ", to.size()));
    }
    if (from.size != 0) {
      std::memcpy(to.data() + copied, from.data, from.size);
    }
    copied += from.size;
  }
  if (copied != to.size()) {
    return Error::InvalidArgument(StrCat("unexpected total byte size ", copied, " for input '",
                                         view.name, "', expecting ", to.size()));
  }
  return {};
}

// Growing memory for contiguous copies, aligned for vector instructions. Contents are lost on
// growth; nothing is zeroed.
class ScratchBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  // Returns at least `size` bytes (never null), valid until the next call. Throws std::bad_alloc.
  char* Ensure(size_t size) {
    if (size > capacity_ || memory_ == nullptr) {
      const size_t rounded = (size + kAlignment) / kAlignment * kAlignment;
      memory_.reset();
      capacity_ = 0;
      memory_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, rounded)));
      if (memory_ == nullptr) {
        throw std::bad_alloc();
      }
      capacity_ = rounded;
    }
    return memory_.get();
  }
  // Frees memory beyond `keep` bytes, for use after an exceptionally large batch.
  void Trim(size_t keep) {
    if (capacity_ > keep) {
      memory_.reset();
      capacity_ = 0;
    }
  }

 private:
  // Calls std::free.
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> memory_;
  size_t capacity_ = 0;
};

// Returns the input's bytes in one piece: in place if they are contiguous and aligned for elements
// of `element_size` bytes, otherwise copied into `scratch`.
inline Result<std::span<const char>> ContiguousInput(const InputView& view, uint32_t element_size,
                                                     ScratchBuffer& scratch) {
  if (view.buffer_count == 1) {
    NEREID_KIT_ASSIGN(const InputChunk chunk, ReadChunk(view, 0));
    const bool aligned =
        element_size == 0 || reinterpret_cast<uintptr_t>(chunk.data) % element_size == 0;
    if (chunk.size == view.byte_size && aligned && chunk.data != nullptr &&
        chunk.type != TRITONSERVER_MEMORY_GPU) {
      return std::span<const char>(chunk.data, chunk.size);
    }
  }
  const std::span<char> copy(scratch.Ensure(view.byte_size), view.byte_size);
  NEREID_KIT_TRY(CopyInput(view, copy));
  return std::span<const char>(copy);
}

// Memory for an output.
struct OutputPlace {
  char* data = nullptr;
  bool is_on_gpu = false;
};

// Adds an output to a response and returns its buffer of `byte_size` bytes: on GPU `device` if the
// client wants it there, and otherwise in host memory.
inline Result<OutputPlace> AddOutputOnGpu(TRITONBACKEND_Response* response, const char* name,
                                          TRITONSERVER_DataType datatype,
                                          std::span<const int64_t> shape, uint64_t byte_size,
                                          int64_t device) {
  TRITONBACKEND_Output* output = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_ResponseOutput(response, &output, name, datatype, shape.data(),
                                              static_cast<uint32_t>(shape.size())));
  void* buffer = nullptr;
  TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
  int64_t id = device;
  NEREID_KIT_TRY(TRITONBACKEND_OutputBuffer(output, &buffer, byte_size, &type, &id));
  const bool is_on_gpu = type == TRITONSERVER_MEMORY_GPU;
  if (is_on_gpu && id != device) {
    return Error::Unsupported(StrCat("output '", name, "' is wanted on GPU ", id,
                                     ", but this instance runs on GPU ", device));
  }
  return OutputPlace{.data = static_cast<char*>(buffer), .is_on_gpu = is_on_gpu};
}

// Adds an output to a response and returns its buffer of `byte_size` bytes in CPU memory.
inline Result<char*> AddOutput(TRITONBACKEND_Response* response, const char* name,
                               TRITONSERVER_DataType datatype, std::span<const int64_t> shape,
                               uint64_t byte_size) {
  TRITONBACKEND_Output* output = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_ResponseOutput(response, &output, name, datatype, shape.data(),
                                              static_cast<uint32_t>(shape.size())));
  void* buffer = nullptr;
  TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_CPU;
  int64_t memory_type_id = 0;
  NEREID_KIT_TRY(
      TRITONBACKEND_OutputBuffer(output, &buffer, byte_size, &memory_type, &memory_type_id));
  if (memory_type == TRITONSERVER_MEMORY_GPU) {
    return Error::Unsupported(StrCat("failed to create CPU output buffer for '", name, "'"));
  }
  return static_cast<char*>(buffer);
}

// Returns "[request id: ID] ", or "[request id: <id_unknown>] " if the client gave none: the prefix
// of errors about one request.
inline std::string RequestIdPrefix(TRITONBACKEND_Request* request) {
  const char* id = nullptr;
  Error error(TRITONBACKEND_RequestId(request, &id));
  const bool known = error.ok() && id != nullptr && *id != '\0';
  return StrCat("[request id: ", known ? id : "<id_unknown>", "] ");
}

}  // namespace nereid::backend
