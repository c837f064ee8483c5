// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/tensor_memory.h"

#include <cstring>

#include "tensorrt_backend/shape_values.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::Result;
using backend::StrCat;

Error TensorMemory::AllocateValues(std::span<const int64_t> values) {
  NEREID_KIT_ASSIGN(host_, HostMemory::Allocate(device_, values.size() * sizeof(int64_t), true));
  Store(values);
  return {};
}

Error TensorMemory::Allocate(const Settings& settings, StreamHandle stream,
                             const std::string& owner) {
  if (!info_.is_input) {
    pool_ = std::make_shared<HostPool>(device_, settings.pins_outputs);
  }
  if (growing_ != nullptr) {
    return {};
  }
  if (const Error error = AllocateFixed(settings.pins_inputs); !error.ok()) {
    return Error::Internal(StrCat("unable to allocate memory for ",
                                  info_.is_input ? "input" : "output", " '", info_.name, "' for ",
                                  owner, ": ", error.message()));
  }
  if (device_memory_ == nullptr || capacity_ == 0) {
    return {};
  }
  // What a graph reads beyond the inputs of an execution is defined.
  return driver().Check(driver().functions().fill(device_memory_->address(), 0, capacity_, stream),
                        "cuMemsetD8Async");
}

Error TensorMemory::AllocateFixed(bool pins_inputs) {
  if (info_.is_shape) {
    NEREID_KIT_ASSIGN(host_, HostMemory::Allocate(device_, capacity_, true));
    return {};
  }
  NEREID_KIT_ASSIGN(device_memory_, DeviceMemory::Allocate(device_, capacity_));
  if (info_.is_input && pins_inputs) {
    NEREID_KIT_ASSIGN(staging_, HostMemory::Allocate(device_, capacity_, true));
  }
  return {};
}

bool TensorMemory::SetAddress(Context& context) const {
  const char* const name = info_.name.c_str();
  return growing_ != nullptr ? context.SetOutputAllocator(name, growing_.get())
         : host_ != nullptr  ? context.SetAddress(name, host_->data())
                             : context.SetAddress(name, device_memory_->pointer());
}

void TensorMemory::Store(std::span<const int64_t> values) {
  StoreValues(values, info_.datatype, host_->data());
}

Error TensorMemory::Put(uint64_t offset, const backend::InputChunk& chunk, StreamHandle stream) {
  if (chunk.size == 0) {
    return {};
  }
  if (offset > capacity_ || chunk.size > capacity_ - offset) {
    return Error::Internal(StrCat("input '", info_.name, "' is larger than the largest shape"));
  }
  const DriverFunctions& f = driver().functions();
  const DeviceAddress to = device_memory_->address() + offset;
  if (chunk.type == TRITONSERVER_MEMORY_CPU && staging_ != nullptr) {
    if (staged_to_ != offset) {
      NEREID_KIT_TRY(Flush(stream));
      staged_from_ = offset;
    }
    std::memcpy(staging_->data() + offset, chunk.data, chunk.size);
    staged_to_ = offset + chunk.size;
    return {};
  }
  if (chunk.type == TRITONSERVER_MEMORY_GPU) {
    return driver().Check(
        f.copy(to, reinterpret_cast<DeviceAddress>(chunk.data), chunk.size, stream),
        "cuMemcpyAsync");
  }
  return driver().Check(f.copy_to_device(to, chunk.data, chunk.size, stream), "cuMemcpyHtoDAsync");
}

Error TensorMemory::Flush(StreamHandle stream) {
  const uint64_t size = staged_to_ - staged_from_;
  if (staging_ == nullptr || size == 0) {
    return {};
  }
  const uint64_t from = staged_from_;
  staged_from_ = staged_to_;
  return driver().Check(driver().functions().copy_to_device(device_memory_->address() + from,
                                                            staging_->data() + from, size, stream),
                        "cuMemcpyHtoDAsync");
}

Result<std::shared_ptr<char>> TensorMemory::Fetch(uint64_t size, StreamHandle stream) {
  if (growing_ == nullptr && size > capacity_) {
    return Error::Internal(StrCat("unexpected size for output '", info_.name, "', byte-size ",
                                  capacity_, " is less than ", size));
  }
  NEREID_KIT_ASSIGN(std::shared_ptr<char> block, pool_->Take(std::max(size, capacity_)));
  if (size > 0) {
    NEREID_KIT_TRY(
        driver().Check(driver().functions().copy_to_host(block.get(), address(), size, stream),
                       "cuMemcpyDtoHAsync"));
  }
  return block;
}

Error TensorMemory::CopyTo(DeviceAddress to, uint64_t offset, uint64_t size,
                           StreamHandle stream) const {
  return driver().Check(driver().functions().copy(to, address() + offset, size, stream),
                        "cuMemcpyAsync");
}

}  // namespace nereid::tensorrt
