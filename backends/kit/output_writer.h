// SPDX-License-Identifier: Apache-2.0
// Writes a part of a model's output where it belongs, for scatter.h: to the response of a request,
// which may be in a device's memory, or to the next value of a state.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "backend_kit/batch.h"
#include "backend_kit/bytes.h"
#include "backend_kit/ports.h"
#include "backend_kit/states.h"
#include "backend_kit/tensors.h"
#include "nereid/backend_outputs.h"

namespace nereid::backend {

// Copies an output that is in a device's memory to where a client wants it in such memory.
class DeviceOutput {
 public:
  virtual ~DeviceOutput() = default;
  // Copies `size` bytes from `offset` on to the address `to`, usually of the same device. The copy
  // must be complete when the response is sent.
  virtual Error Copy(uint64_t offset, uint64_t size, char* to) = 0;
  // The number of the device.
  virtual int64_t device() const = 0;
};

// An output of a model: fixed-size elements in `data`, or texts in `strings`. Everything is a view.
struct ModelOutput {
  std::span<const int64_t> shape;
  const char* data = nullptr;
  std::span<const std::string_view> strings;
  // What keeps `data` as it is; null if it may change after the execution. With it, a server that
  // can (nereid/backend_outputs.h) sends large outputs from where they are.
  std::shared_ptr<const void> keeper;
  // The output in a device's memory; null if it is in host memory only. With it, `data` may be null
  // unless NeedsHostData.
  DeviceOutput* device = nullptr;
};

// The elements of an output that go to one request, and their shape.
struct OutputPart {
  std::span<const int64_t> shape;
  uint64_t first = 0;
  uint64_t count = 0;
};

// Writes the parts of one output of one execution. Everything that it refers to outlives it.
class OutputWriter {
 public:
  // Smaller outputs are copied: keeping them costs more.
  static constexpr uint64_t kMinLentBytes = uint64_t{16} << 10;

  OutputWriter(Batch& batch, const OutputPort& port, const ModelOutput& output)
      : batch_(batch), port_(port), output_(output) {}

  // Whether the server will place the output in a device's memory (CUDA shared memory).
  static bool WantsDevice(TRITONBACKEND_Request* request, const OutputPort& port, int64_t device) {
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_GPU;
    int64_t memory_type_id = device;
    size_t byte_size = 0;
    Error error(TRITONBACKEND_RequestOutputBufferProperties(request, port.name.c_str(), &byte_size,
                                                            &memory_type, &memory_type_id));
    return error.ok() && memory_type == TRITONSERVER_MEMORY_GPU && memory_type_id == device;
  }

  // Adds the part to the response of request `r`.
  Error ToResponse(uint32_t r, const OutputPart& part) const { return Write(r, part, false); }
  // Makes the part the next value of the state of request `r`.
  Error ToState(uint32_t r, const OutputPart& part) const { return Write(r, part, true); }

 private:
  // Memory for a part, in a response or in a state.
  struct Place {
    char* buffer = nullptr;
    TRITONBACKEND_State* state = nullptr;
  };

  Error Write(uint32_t r, const OutputPart& part, bool to_state) const {
    if (port_.datatype == TRITONSERVER_TYPE_BYTES) {
      return WriteStrings(r, part, to_state);
    }
    const uint64_t element = ElementByteSize(port_.datatype);
    const uint64_t size = part.count * element;
    if (output_.device != nullptr && !to_state &&
        WantsDevice(batch_.request(r), port_, output_.device->device())) {
      return WriteOnDevice(r, part, part.first * element, size);
    }
    const char* const from = output_.data + part.first * element;
    if (!to_state && size >= kMinLentBytes && output_.keeper != nullptr &&
        NEREIDBACKEND_OutputLend != nullptr) {
      return Lend(r, part, from, size);
    }
    NEREID_KIT_ASSIGN(const Place place, MakePlace(r, part, size, to_state));
    if (size > 0) {
      std::memcpy(place.buffer, from, size);
    }
    return Finish(place);
  }

  Error WriteStrings(uint32_t r, const OutputPart& part, bool to_state) const {
    if (part.first + part.count > output_.strings.size()) {
      return Error::Internal(StrCat("output '", port_.name, "' has fewer strings than its shape"));
    }
    const auto strings = output_.strings.subspan(part.first, part.count);
    uint64_t size = 0;
    for (const std::string_view text : strings) {
      size += sizeof(uint32_t) + text.size();
    }
    NEREID_KIT_ASSIGN(const Place place, MakePlace(r, part, size, to_state));
    char* next = place.buffer;
    for (const std::string_view text : strings) {
      next = StoreString(next, text);
    }
    return Finish(place);
  }

  Error WriteOnDevice(uint32_t r, const OutputPart& part, uint64_t offset, uint64_t size) const {
    NEREID_KIT_ASSIGN(TRITONBACKEND_Output* const made, Declare(r, part));
    void* buffer = nullptr;
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_GPU;
    int64_t memory_type_id = 0;
    NEREID_KIT_TRY(TRITONBACKEND_OutputBuffer(made, &buffer, size, &memory_type, &memory_type_id));
    return size > 0 ? output_.device->Copy(offset, size, static_cast<char*>(buffer)) : Error();
  }

  Error Lend(uint32_t r, const OutputPart& part, const char* data, uint64_t size) const {
    NEREID_KIT_ASSIGN(TRITONBACKEND_Output* const made, Declare(r, part));
    auto held = std::make_unique<std::shared_ptr<const void>>(output_.keeper);
    return Error(NEREIDBACKEND_OutputLend(
        made, data, size,
        [](void* user) { delete static_cast<std::shared_ptr<const void>*>(user); },
        held.release()));
  }

  // Adds an output without memory to the response.
  Result<TRITONBACKEND_Output*> Declare(uint32_t r, const OutputPart& part) const {
    TRITONBACKEND_Output* made = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ResponseOutput(batch_.response(r), &made, port_.name.c_str(),
                                                port_.datatype, part.shape.data(),
                                                static_cast<uint32_t>(part.shape.size())));
    return made;
  }

  Result<Place> MakePlace(uint32_t r, const OutputPart& part, uint64_t byte_size,
                          bool to_state) const {
    Place place;
    if (to_state) {
      NEREID_KIT_ASSIGN(const NewState made, MakeState(batch_.request(r), port_.name.c_str(),
                                                       port_.datatype, part.shape, byte_size));
      place = {.buffer = made.buffer, .state = made.state};
    } else {
      NEREID_KIT_ASSIGN(place.buffer, AddOutput(batch_.response(r), port_.name.c_str(),
                                                port_.datatype, part.shape, byte_size));
    }
    return place;
  }

  static Error Finish(const Place& place) {
    return place.state == nullptr ? Error() : Error(TRITONBACKEND_StateUpdate(place.state));
  }

  Batch& batch_;
  const OutputPort& port_;
  const ModelOutput& output_;
};

}  // namespace nereid::backend
