// SPDX-License-Identifier: Apache-2.0
#include "dlpack.h"

#include <memory>
#include <vector>

#include <pybind11/stl.h>

#include "errors.h"

namespace py = pybind11;

namespace nereid::python {
namespace {

constexpr const char* kName = "dltensor";
constexpr const char* kUsedName = "used_dltensor";
constexpr const char* kVersionedName = "dltensor_versioned";
constexpr const char* kUsedVersionedName = "used_dltensor_versioned";
constexpr uint64_t kReadOnly = 1;
constexpr int kMaxDimensions = 64;

// A tensor of another library, held as long as this exists. Confined to threads with the GIL.
class DlpackView {
 public:
  explicit DlpackView(const py::object& capsule) {
    PyObject* const object = capsule.ptr();
    if (PyCapsule_IsValid(object, kVersionedName)) {
      versioned_ = static_cast<DlManagedVersioned*>(PyCapsule_GetPointer(object, kVersionedName));
      // The renamed capsule means that this object deletes the tensor.
      PyCapsule_SetName(object, kUsedVersionedName);
    } else if (PyCapsule_IsValid(object, kName)) {
      managed_ = static_cast<DlManaged*>(PyCapsule_GetPointer(object, kName));
      PyCapsule_SetName(object, kUsedName);
    } else {
      ThrowInvalidArgument("__dlpack__ did not return an unused DLPack capsule");
    }
    try {
      Judge();
    } catch (...) {
      Delete();
      throw;
    }
  }
  DlpackView(const DlpackView&) = delete;
  DlpackView& operator=(const DlpackView&) = delete;
  ~DlpackView() { Delete(); }

  const DlTensor& tensor() const {
    return versioned_ == nullptr ? managed_->tensor : versioned_->tensor;
  }
  bool is_read_only() const {
    return versioned_ != nullptr && (versioned_->flags & kReadOnly) != 0;
  }
  uintptr_t address() const {
    return reinterpret_cast<uintptr_t>(tensor().data) +
           static_cast<uintptr_t>(tensor().byte_offset);
  }
  uint64_t byte_size() const { return byte_size_; }

 private:
  // Throws unless a pointer and a shape describe the tensor completely.
  void Judge() {
    if (versioned_ != nullptr && versioned_->major != 1) {
      ThrowInvalidArgument("version " + std::to_string(versioned_->major) +
                           " of DLPack is not known");
    }
    const DlTensor& tensor = this->tensor();
    if (tensor.ndim < 0 || tensor.ndim > kMaxDimensions) {
      ThrowInvalidArgument("a tensor of " + std::to_string(tensor.ndim) + " dimensions");
    }
    if (tensor.dtype.lanes != 1 || tensor.dtype.bits % 8 != 0) {
      ThrowInvalidArgument("elements must be whole bytes and single values");
    }
    uint64_t bytes = tensor.dtype.bits / 8;
    for (int i = 0; i < tensor.ndim; ++i) {
      if (tensor.shape[i] < 0 ||
          __builtin_mul_overflow(bytes, static_cast<uint64_t>(tensor.shape[i]), &bytes)) {
        ThrowInvalidArgument("the shape of the tensor is not valid");
      }
    }
    byte_size_ = bytes;
    if (bytes == 0 || tensor.strides == nullptr) return;
    int64_t expected = 1;
    for (int i = tensor.ndim - 1; i >= 0; --i) {
      // The stride of a dimension with one element is irrelevant.
      if (tensor.shape[i] != 1 && tensor.strides[i] != expected) {
        ThrowInvalidArgument("Only contiguous memory is supported");
      }
      expected *= tensor.shape[i];
    }
  }

  void Delete() {
    if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
    if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
  }

  DlManaged* managed_ = nullptr;
  DlManagedVersioned* versioned_ = nullptr;
  uint64_t byte_size_ = 0;
};

// The data behind an exported tensor.
template <typename Managed>
struct Lent {
  Managed managed{};
  std::vector<int64_t> shape;
  PyObject* owner = nullptr;

  // Consumers may call this on any thread.
  static void Delete(Managed* managed) {
    auto* const self = static_cast<Lent*>(managed->context);
    if (Py_IsInitialized()) {
      const PyGILState_STATE state = PyGILState_Ensure();
      Py_DECREF(self->owner);
      PyGILState_Release(state);
    }
    delete self;
  }
};

template <typename Managed>
void DeleteCapsule(PyObject* capsule, const char* unused_name) {
  if (!PyCapsule_IsValid(capsule, unused_name)) return;  // a consumer has taken it over
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, unused_name));
  managed->deleter(managed);
}

template <typename Managed>
py::object Lend(std::unique_ptr<Lent<Managed>> lent, const DlTensor& tensor,
                const py::object& owner, const char* name, PyCapsule_Destructor destructor) {
  lent->managed.tensor = tensor;
  lent->managed.tensor.ndim = static_cast<int32_t>(lent->shape.size());
  lent->managed.tensor.shape = lent->shape.data();
  lent->managed.context = lent.get();
  lent->managed.deleter = &Lent<Managed>::Delete;
  PyObject* const capsule = PyCapsule_New(&lent->managed, name, destructor);
  if (capsule == nullptr) throw py::error_already_set();
  lent->owner = owner.inc_ref().ptr();
  static_cast<void>(lent.release());
  return py::reinterpret_steal<py::object>(capsule);
}

py::object ExportDlpack(const py::object& owner, uintptr_t address, std::vector<int64_t> shape,
                        std::pair<int, int> type, std::pair<int, int> device, bool is_versioned,
                        bool is_read_only) {
  DlTensor tensor{};
  tensor.data = reinterpret_cast<void*>(address);
  tensor.device = {device.first, device.second};
  tensor.dtype = {static_cast<uint8_t>(type.first), static_cast<uint8_t>(type.second), 1};
  if (is_versioned) {
    auto lent = std::make_unique<Lent<DlManagedVersioned>>();
    lent->shape = std::move(shape);
    lent->managed.major = 1;
    lent->managed.flags = is_read_only ? kReadOnly : 0;
    return Lend(std::move(lent), tensor, owner, kVersionedName, [](PyObject* capsule) {
      DeleteCapsule<DlManagedVersioned>(capsule, kVersionedName);
    });
  }
  auto lent = std::make_unique<Lent<DlManaged>>();
  lent->shape = std::move(shape);
  return Lend(std::move(lent), tensor, owner, kName,
              [](PyObject* capsule) { DeleteCapsule<DlManaged>(capsule, kName); });
}

}  // namespace

void RegisterDlpack(py::module_& module) {
  py::class_<DlpackView>(module, "DlpackView", "A tensor of another library, held until this goes.")
      .def(py::init<const py::object&>())
      .def_property_readonly("address", &DlpackView::address)
      .def_property_readonly("byte_size", &DlpackView::byte_size)
      .def_property_readonly("is_read_only", &DlpackView::is_read_only)
      .def_property_readonly("type",
                             [](const DlpackView& self) {
                               return py::make_tuple(static_cast<int>(self.tensor().dtype.code),
                                                     static_cast<int>(self.tensor().dtype.bits));
                             })
      .def_property_readonly("device",
                             [](const DlpackView& self) {
                               return py::make_tuple(self.tensor().device.type,
                                                     self.tensor().device.id);
                             })
      .def_property_readonly("shape", [](const DlpackView& self) {
        py::tuple shape(self.tensor().ndim);
        for (int i = 0; i < self.tensor().ndim; ++i) shape[i] = self.tensor().shape[i];
        return shape;
      });
  module.def("export_dlpack", &ExportDlpack);
}

}  // namespace nereid::python
