// SPDX-License-Identifier: Apache-2.0
// DLPack, the protocol by which tensor libraries share memory: its structures as specified, in both
// versions that are in use.
#pragma once

#include <cstdint>

#include <pybind11/pybind11.h>

namespace nereid::python {

// DLPack's DLDevice.
struct DlDevice {
  int32_t type;
  int32_t id;
};

// DLPack's DLDataType.
struct DlDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

// DLPack's DLTensor.
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null when compact and row-major
  uint64_t byte_offset;
};

// DLPack's DLManagedTensor.
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged* self);
};

// DLPack's DLManagedTensorVersioned.
struct DlManagedVersioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(DlManagedVersioned* self);
  uint64_t flags;
  DlTensor tensor;
};

// Adds _core.DlpackView, which imports a capsule, and _core.export_dlpack, which makes one.
void RegisterDlpack(pybind11::module_& module);

}  // namespace nereid::python
