// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/outputs.h"

#include <algorithm>
#include <cstring>

#include "backend_kit/shape.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::OutputPort;

namespace {

// An output that responses want in the device's memory.
class OnDeviceOutput : public backend::DeviceOutput {
 public:
  OnDeviceOutput(Execution& execution, size_t tensor, int device)
      : execution_(execution), tensor_(tensor), device_(device) {}

  Error Copy(uint64_t offset, uint64_t size, char* to) override {
    is_used_ = true;
    return execution_.CopyOnDevice(tensor_, offset, size, reinterpret_cast<DeviceAddress>(to));
  }
  int64_t device() const override { return device_; }
  bool is_used() const { return is_used_; }

 private:
  Execution& execution_;
  const size_t tensor_;
  const int device_;
  bool is_used_ = false;
};

}  // namespace

Error Outputs::Fetch() {
  for (size_t o = 0; o < parts_.ports.outputs.size(); ++o) {
    computed_[o].host.reset();
    computed_[o].is_wanted = parts_.gathering.is_wanted(o);
    if (computed_[o].is_wanted && !parts_.execution.is_data_dependent(parts_.binding.outputs[o])) {
      NEREID_KIT_TRY(FetchOne(o));
    }
  }
  return {};
}

Error Outputs::FetchComputedShapes() {
  bool waits = false;
  for (size_t o = 0; o < parts_.ports.outputs.size(); ++o) {
    if (computed_[o].is_wanted && parts_.execution.is_data_dependent(parts_.binding.outputs[o])) {
      waits = true;
      NEREID_KIT_TRY(FetchOne(o));
    }
  }
  return waits ? parts_.execution.Wait() : Error();
}

Error Outputs::FetchOne(size_t o) {
  const size_t tensor = parts_.binding.outputs[o];
  Computed& computed = computed_[o];
  const Dims dims = parts_.execution.ShapeOf(tensor);
  const auto sizes = dims.span();
  computed.shape.assign(sizes.begin(), sizes.end());
  const OutputPort& port = parts_.ports.outputs[o];
  if (port.is_shape_tensor || !parts_.scattering.NeedsHostData(parts_.batch, o, parts_.device)) {
    return {};
  }
  NEREID_KIT_ASSIGN(const uint64_t size, backend::TensorByteSize(port.datatype, computed.shape));
  NEREID_KIT_ASSIGN(computed.host, parts_.execution.Fetch(tensor, size));
  return {};
}

void Outputs::DealOut(bool to_states) {
  bool waits = false;
  for (size_t o = 0; o < parts_.ports.outputs.size(); ++o) {
    Computed& computed = computed_[o];
    if (!computed.is_wanted || (to_states && !parts_.ports.outputs[o].is_state)) {
      continue;
    }
    if (parts_.ports.outputs[o].is_shape_tensor) {
      DealOutShapeTensor(o, computed);
      continue;
    }
    // A graph for a larger batch has computed rows that no request has.
    if (parts_.gathering.is_batching() && !parts_.ports.outputs[o].scatter &&
        !computed.shape.empty()) {
      computed.shape[0] = std::min(computed.shape[0], parts_.gathering.total_batch_size());
    }
    OnDeviceOutput device(parts_.execution, parts_.binding.outputs[o], parts_.device);
    const backend::ModelOutput dealt{.shape = computed.shape,
                                     .data = computed.host.get(),
                                     .strings = {},
                                     .keeper = computed.host,
                                     .device = &device};
    if (to_states) {
      parts_.scattering.ToStates(parts_.batch, o, dealt);
    } else {
      parts_.scattering.ToResponses(parts_.batch, o, dealt);
    }
    waits = waits || device.is_used();
  }
  if (!waits) {
    return;
  }
  if (const Error error = parts_.execution.Wait(); !error.ok()) {
    for (const uint32_t r : parts_.gathering.members()) {
      parts_.batch.Fail(r, Error(error.code(), error.message()));
    }
  }
}

void Outputs::DealOutShapeTensor(size_t o, const Computed& computed) {
  const OutputPort& port = parts_.ports.outputs[o];
  const size_t element = backend::ElementByteSize(port.datatype);
  const auto count = static_cast<size_t>(computed.shape.empty() ? 1 : computed.shape[0]);
  // With batching the first value is the batch size, and each row gets the others.
  const size_t skipped = parts_.gathering.is_batching() ? 1 : 0;
  const char* const values =
      parts_.execution.ShapeValues(parts_.binding.outputs[o]) + skipped * element;
  const size_t size = (count - std::min(count, skipped)) * element;
  for (const uint32_t r : parts_.gathering.members()) {
    if (!parts_.batch.live(r) || !parts_.gathering.wants(r, o)) {
      continue;
    }
    const auto give = [&]() -> Error {
      std::vector<int64_t> shape(computed.shape.begin(), computed.shape.end());
      int64_t rows = 1;
      if (parts_.gathering.is_batching()) {
        rows = parts_.gathering.batch_size(r);
        shape = {rows, static_cast<int64_t>(size / element)};
      }
      NEREID_KIT_ASSIGN(char* const to, backend::AddOutput(parts_.batch.response(r),
                                                           port.name.c_str(), port.datatype, shape,
                                                           size * static_cast<uint64_t>(rows)));
      for (int64_t row = 0; row < rows; ++row) {
        std::memcpy(to + static_cast<size_t>(row) * size, values, size);
      }
      return {};
    };
    if (Error error = give(); !error.ok()) {
      parts_.batch.Fail(r, std::move(error));
    }
  }
}

}  // namespace nereid::tensorrt
