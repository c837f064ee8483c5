// SPDX-License-Identifier: Apache-2.0
#include "buffer.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>
#include <vector>

#include "errors.h"

namespace py = pybind11;

namespace nereid::python {

Block* Block::Create(size_t size) {
  static_assert(sizeof(Block) <= kHeaderBytes);
  if (size > std::numeric_limits<size_t>::max() - 2 * kHeaderBytes) return nullptr;
  // aligned_alloc requires a multiple of the alignment.
  const size_t bytes = (kHeaderBytes + size + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
  void* const memory = std::aligned_alloc(kHeaderBytes, bytes);
  return memory == nullptr ? nullptr : new (memory) Block(size);
}

void Block::Unreference() {
  if (owners_.fetch_sub(1) != 1) return;
  this->~Block();
  std::free(this);
}

Buffer Buffer::OfSize(size_t size) {
  Block* const block = Block::Create(size);
  if (block == nullptr) throw std::bad_alloc();
  return Buffer(block);
}

Buffer Buffer::CopyOf(const void* data, size_t size) {
  Buffer copy = OfSize(size);
  if (size > 0) std::memcpy(copy.data(), data, size);
  return copy;
}

namespace {

// Returns the bytes of an element; `made` keeps objects that were created for them.
std::string_view BytesOf(py::handle item, std::vector<py::object>& made) {
  if (PyBytes_Check(item.ptr())) {
    return {PyBytes_AS_STRING(item.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(item.ptr()))};
  }
  if (PyByteArray_Check(item.ptr())) {
    return {PyByteArray_AS_STRING(item.ptr()),
            static_cast<size_t>(PyByteArray_GET_SIZE(item.ptr()))};
  }
  py::handle text = item;
  if (!PyUnicode_Check(item.ptr())) {
    made.push_back(py::str(item));
    text = made.back();
  }
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) throw py::error_already_set();
  return {bytes, static_cast<size_t>(size)};
}

}  // namespace

Buffer SerializeTexts(const py::list& items) {
  std::vector<py::object> made;
  std::vector<std::string_view> elements;
  elements.reserve(items.size());
  size_t total = 0;
  for (const py::handle item : items) {
    elements.push_back(BytesOf(item, made));
    if (elements.back().size() > std::numeric_limits<uint32_t>::max()) {
      ThrowInvalidArgument("an element of type BYTES must be shorter than 4 GiB");
    }
    total += sizeof(uint32_t) + elements.back().size();
  }
  Buffer buffer = Buffer::OfSize(total);
  char* to = buffer.data();
  for (const std::string_view element : elements) {
    const auto length = static_cast<uint32_t>(element.size());
    std::memcpy(to, &length, sizeof(length));
    std::memcpy(to + sizeof(length), element.data(), element.size());
    to += sizeof(length) + element.size();
  }
  return buffer;
}

py::list DeserializeTexts(uintptr_t data, size_t size) {
  py::list items;
  const char* at = reinterpret_cast<const char*>(data);
  const char* const end = at + size;
  while (at != end) {
    uint32_t length = 0;
    if (static_cast<size_t>(end - at) < sizeof(length)) {
      ThrowInvalidArgument("the tensor of type BYTES ends within the length of an element");
    }
    std::memcpy(&length, at, sizeof(length));
    at += sizeof(length);
    if (static_cast<size_t>(end - at) < length) {
      ThrowInvalidArgument("the tensor of type BYTES ends within an element");
    }
    items.append(py::bytes(at, length));
    at += length;
  }
  return items;
}

void RegisterBuffer(py::module_& module) {
  py::class_<Buffer>(module, "Buffer", py::buffer_protocol(),
                     "Memory that the server wrote an output to. Goes with its last user.")
      .def_buffer([](Buffer& self) {
        return py::buffer_info(reinterpret_cast<uint8_t*>(self.data()),
                               static_cast<py::ssize_t>(self.size()));
      })
      .def_property_readonly(
          "address", [](const Buffer& self) { return reinterpret_cast<uintptr_t>(self.data()); })
      .def("__len__", &Buffer::size);
  module.def("serialize_texts", &SerializeTexts);
  module.def("deserialize_texts", &DeserializeTexts);
  module.def("copy_memory", [](uintptr_t data, size_t size) {
    return Buffer::CopyOf(reinterpret_cast<const void*>(data), size);
  });
  module.def("copy_bytes", [](const py::bytes& bytes) {
    return Buffer::CopyOf(PyBytes_AS_STRING(bytes.ptr()),
                          static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr())));
  });
  // REQUIRES: the caller keeps the memory alive as long as the view.
  module.def("view_memory", [](uintptr_t data, size_t size) {
    return py::memoryview::from_memory(reinterpret_cast<void*>(data),
                                       static_cast<py::ssize_t>(size));
  });
}

}  // namespace nereid::python
