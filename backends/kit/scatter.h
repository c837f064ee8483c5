// SPDX-License-Identifier: Apache-2.0
// Deals the outputs of an execution out to the responses of its requests, and to their states.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_kit/bytes.h"
#include "backend_kit/gather.h"
#include "backend_kit/states.h"
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

// A member of the instance that each execution reuses. Confined to the thread that executes.
class Scattering {
 public:
  // Smaller outputs are copied: keeping them costs more.
  static constexpr uint64_t kMinLentBytes = uint64_t{16} << 10;

  // Both outlive this.
  Scattering(const Ports& ports, const Gathering& gathering)
      : ports_(ports), gathering_(gathering) {}

  // Adds each member's rows of output `o` (a position in the ports) to its response, if it requests
  // them. A member fails if that fails.
  void ToResponses(Batch& batch, size_t o, const ModelOutput& output) {
    const OutputPort& port = ports_.outputs[o];
    if (!port.is_declared) {
      return;
    }
    if (port.scatter) {
      ByInputShapes(batch, o, output);
    } else {
      ForEachMember(batch, o, output, false);
    }
  }

  // Whether a member wants output `o` elsewhere than in the memory of `device`, or it is a state.
  bool NeedsHostData(const Batch& batch, size_t o, int64_t device) const {
    const OutputPort& port = ports_.outputs[o];
    return port.is_state ||
           std::any_of(gathering_.members().begin(), gathering_.members().end(), [&](uint32_t r) {
             return gathering_.wants(r, o) && batch.live(r) &&
                    !WantsDevice(batch.request(r), port, device);
           });
  }

  // Makes each member's rows of output `o` the next value of its state. Called once all responses
  // are filled, because a failed request must leave its sequence unchanged.
  void ToStates(Batch& batch, size_t o, const ModelOutput& output) {
    if (ports_.outputs[o].is_state) {
      ForEachMember(batch, o, output, true);
    }
  }

 private:
  // Memory for a part of an output, in a response or in a state.
  struct Place {
    char* buffer = nullptr;
    TRITONBACKEND_State* state = nullptr;
  };

  // The elements of an output that go to one request.
  struct Part {
    uint64_t first = 0;
    uint64_t count = 0;
  };

  // Whether the server will place the output in a device's memory (CUDA shared memory).
  static bool WantsDevice(TRITONBACKEND_Request* request, const OutputPort& port, int64_t device) {
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_GPU;
    int64_t memory_type_id = device;
    size_t byte_size = 0;
    Error error(TRITONBACKEND_RequestOutputBufferProperties(request, port.name.c_str(), &byte_size,
                                                            &memory_type, &memory_type_id));
    return error.ok() && memory_type == TRITONSERVER_MEMORY_GPU && memory_type_id == device;
  }

  Error GiveOnDevice(TRITONBACKEND_Response* response, const OutputPort& port,
                     const ModelOutput& output, uint64_t offset, uint64_t size) {
    TRITONBACKEND_Output* made = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ResponseOutput(response, &made, port.name.c_str(), port.datatype,
                                                rows_shape_.data(),
                                                static_cast<uint32_t>(rows_shape_.size())));
    void* buffer = nullptr;
    TRITONSERVER_MemoryType memory_type = TRITONSERVER_MEMORY_GPU;
    int64_t memory_type_id = 0;
    NEREID_KIT_TRY(TRITONBACKEND_OutputBuffer(made, &buffer, size, &memory_type, &memory_type_id));
    return size > 0 ? output.device->Copy(offset, size, static_cast<char*>(buffer)) : Error();
  }

  void ForEachMember(Batch& batch, size_t o, const ModelOutput& output, bool to_state) {
    const OutputPort& port = ports_.outputs[o];
    const Error mismatch = MakeRowsShape(port, output.shape);
    uint64_t next = 0;
    for (const uint32_t r : gathering_.members()) {
      if (gathering_.is_batching() && !rows_shape_.empty()) {
        rows_shape_[0] = gathering_.batch_size(r);
      }
      auto elements = ElementCount(rows_shape_);
      const Part part{.first = next,
                      .count = elements.ok() ? static_cast<uint64_t>(elements.value()) : 0};
      next += part.count;
      if (!batch.live(r) || !(to_state || gathering_.wants(r, o))) {
        continue;
      }
      Error error = !mismatch.ok()
                        ? Error(mismatch.code(),
                                StrCat(RequestIdPrefix(batch.request(r)), mismatch.message()))
                    : !elements.ok() ? elements.TakeError()
                                     : Give(batch, r, port, output, part, to_state);
      if (!error.ok()) {
        batch.Fail(r, std::move(error));
      }
    }
  }

  // Sets rows_shape_ to the shape of one request's part, with any number of rows. Fails if the
  // output does not have one row for each row of the batch.
  Error MakeRowsShape(const OutputPort& port, std::span<const int64_t> shape) {
    rows_shape_.assign(shape.begin(), shape.end());
    if (shape.empty()) {
      return MakeScalarShape(port);
    }
    const int64_t expected = gathering_.total_batch_size();
    if (!gathering_.is_batching() || shape[0] == expected) {
      return {};
    }
    return Error::Unsupported(StrCat(
        "failed to split the output tensor '", port.name, "' in responses: expected batch size of ",
        shape[0] < expected ? "at least " : "", expected, " in model output, got ", shape[0]));
  }

  // A configuration cannot have no dimensions, so a scalar has as many of size one as it says.
  Error MakeScalarShape(const OutputPort& port) {
    rows_shape_.assign(std::max<size_t>(port.dims.size(), 1), 1);
    if (gathering_.is_batching()) {
      rows_shape_.push_back(1);
    }
    const bool is_single = std::all_of(port.dims.begin(), port.dims.end(),
                                       [](int64_t dim) { return dim == 1 || dim == -1; });
    if (is_single && (!gathering_.is_batching() || gathering_.total_batch_size() == 1)) {
      return {};
    }
    return Error::InvalidArgument(
        StrCat("output '", port.name, "' is a scalar which is not supported."));
  }

  Error Give(Batch& batch, uint32_t r, const OutputPort& port, const ModelOutput& output,
             const Part& part, bool to_state) {
    if (port.datatype == TRITONSERVER_TYPE_BYTES) {
      return GiveStrings(batch, r, port, output, part, to_state);
    }
    const uint64_t element = ElementByteSize(port.datatype);
    const uint64_t size = part.count * element;
    if (output.device != nullptr && !to_state &&
        WantsDevice(batch.request(r), port, output.device->device())) {
      return GiveOnDevice(batch.response(r), port, output, part.first * element, size);
    }
    const char* const from = output.data + part.first * element;
    if (!to_state && size >= kMinLentBytes && output.keeper != nullptr &&
        NEREIDBACKEND_OutputLend != nullptr) {
      return Lend(batch.response(r), port, from, size, output.keeper);
    }
    NEREID_KIT_ASSIGN(const Place place, MakePlace(batch, r, port, size, to_state));
    if (size > 0) {
      std::memcpy(place.buffer, from, size);
    }
    return Finish(place);
  }

  Error GiveStrings(Batch& batch, uint32_t r, const OutputPort& port, const ModelOutput& output,
                    const Part& part, bool to_state) {
    if (part.first + part.count > output.strings.size()) {
      return Error::Internal(StrCat("output '", port.name, "' has fewer strings than its shape"));
    }
    const auto strings = output.strings.subspan(part.first, part.count);
    uint64_t size = 0;
    for (const std::string_view text : strings) {
      size += sizeof(uint32_t) + text.size();
    }
    NEREID_KIT_ASSIGN(const Place place, MakePlace(batch, r, port, size, to_state));
    char* next = place.buffer;
    for (const std::string_view text : strings) {
      next = StoreString(next, text);
    }
    return Finish(place);
  }

  Error Lend(TRITONBACKEND_Response* response, const OutputPort& port, const char* data,
             uint64_t size, const std::shared_ptr<const void>& keeper) {
    TRITONBACKEND_Output* output = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ResponseOutput(response, &output, port.name.c_str(), port.datatype,
                                                rows_shape_.data(),
                                                static_cast<uint32_t>(rows_shape_.size())));
    auto held = std::make_unique<std::shared_ptr<const void>>(keeper);
    return Error(NEREIDBACKEND_OutputLend(
        output, data, size,
        [](void* user) { delete static_cast<std::shared_ptr<const void>*>(user); },
        held.release()));
  }

  Result<Place> MakePlace(Batch& batch, uint32_t r, const OutputPort& port, uint64_t byte_size,
                          bool to_state) {
    Place place;
    if (to_state) {
      NEREID_KIT_ASSIGN(const NewState made, MakeState(batch.request(r), port.name.c_str(),
                                                       port.datatype, rows_shape_, byte_size));
      place = {.buffer = made.buffer, .state = made.state};
    } else {
      NEREID_KIT_ASSIGN(place.buffer, AddOutput(batch.response(r), port.name.c_str(), port.datatype,
                                                rows_shape_, byte_size));
    }
    return place;
  }

  static Error Finish(const Place& place) {
    return place.state == nullptr ? Error() : Error(TRITONBACKEND_StateUpdate(place.state));
  }

  // Sets rows_shape_ to the shape that request r's part of the output has.
  Error TakeInputShape(const BatchOutput& scatter, uint32_t r) {
    NEREID_KIT_ASSIGN(const std::span<const int64_t> shape, gathering_.ShapeIn(scatter.source, r));
    rows_shape_ = scatter.shape;
    for (size_t d = 0; d < rows_shape_.size(); ++d) {
      if (rows_shape_[d] == -1 && d >= shape.size()) {
        return Error::Internal(StrCat("input '", scatter.source,
                                      "' has too few dimensions to give an output its shape"));
      }
      rows_shape_[d] = rows_shape_[d] == -1 ? shape[d] : rows_shape_[d];
    }
    return {};
  }

  Error CheckElements(const OutputPort& port, int64_t elements) {
    int64_t expected = 0;
    for (const uint32_t r : gathering_.members()) {
      NEREID_KIT_TRY(TakeInputShape(*port.scatter, r));
      NEREID_KIT_ASSIGN(const int64_t count, ElementCount(rows_shape_));
      if (__builtin_add_overflow(expected, count, &expected)) {
        return Error::InvalidArgument(
            "unexpected integer overflow while calculating element count.");
      }
    }
    if (expected == elements) {
      return {};
    }
    return Error::Unsupported(StrCat("failed to split the output tensor '", port.name,
                                     "' in responses: expected ", expected,
                                     " elements by the shapes of input '", port.scatter->source,
                                     "' in model output, got ", elements));
  }

  void ByInputShapes(Batch& batch, size_t o, const ModelOutput& output) {
    const OutputPort& port = ports_.outputs[o];
    auto elements = ElementCount(output.shape);
    const Error mismatch =
        elements.ok() ? CheckElements(port, elements.value()) : elements.TakeError();
    uint64_t next = 0;
    for (const uint32_t r : gathering_.members()) {
      const auto give = [&]() -> Error {
        if (!mismatch.ok()) {
          return Error(mismatch.code(),
                       StrCat(RequestIdPrefix(batch.request(r)), mismatch.message()));
        }
        NEREID_KIT_TRY(TakeInputShape(*port.scatter, r));
        NEREID_KIT_ASSIGN(const int64_t count, ElementCount(rows_shape_));
        const Part part{.first = next, .count = static_cast<uint64_t>(count)};
        next += part.count;
        return batch.live(r) && gathering_.wants(r, o) ? Give(batch, r, port, output, part, false)
                                                       : Error();
      };
      if (Error error = give(); !error.ok() && gathering_.wants(r, o)) {
        batch.Fail(r, std::move(error));
      }
    }
  }

  const Ports& ports_;
  const Gathering& gathering_;
  std::vector<int64_t> rows_shape_;
};

}  // namespace nereid::backend
