// SPDX-License-Identifier: Apache-2.0
// The classes of an output with the largest values: indices, values and the model's labels.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "errors.h"
#include "response.h"

namespace py = pybind11;

namespace nereid::python {
namespace {

template <typename T>
py::object ValueAt(const char* row, uint32_t index) {
  T value;
  std::memcpy(&value, row + index * sizeof(T), sizeof(T));
  return py::cast(value);
}

// Returns the `count` largest elements of a row, the largest first and equal ones in order.
template <typename T>
std::vector<uint32_t> Largest(const char* row, size_t elements, size_t count) {
  std::vector<uint32_t> order(elements);
  std::iota(order.begin(), order.end(), 0u);
  const auto is_better = [row](uint32_t left, uint32_t right) {
    T a;
    T b;
    std::memcpy(&a, row + left * sizeof(T), sizeof(T));
    std::memcpy(&b, row + right * sizeof(T), sizeof(T));
    // NaN is ordered after everything else, because sorting needs a total order.
    const bool a_is_number = a == a;
    const bool b_is_number = b == b;
    if (a_is_number != b_is_number) return a_is_number;
    if (a_is_number && a != b) return b < a;
    return left < right;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    is_better);
  order.resize(count);
  return order;
}

// The functions for elements of one type.
struct ElementType {
  size_t size;
  std::vector<uint32_t> (*largest)(const char*, size_t, size_t);
  py::object (*value_at)(const char*, uint32_t);
};

template <typename T>
constexpr ElementType kElement = {sizeof(T), &Largest<T>, &ValueAt<T>};

const ElementType* FindElementType(int type) {
  switch (type) {
    case TRITONSERVER_TYPE_UINT8:
      return &kElement<uint8_t>;
    case TRITONSERVER_TYPE_UINT16:
      return &kElement<uint16_t>;
    case TRITONSERVER_TYPE_UINT32:
      return &kElement<uint32_t>;
    case TRITONSERVER_TYPE_UINT64:
      return &kElement<uint64_t>;
    case TRITONSERVER_TYPE_INT8:
      return &kElement<int8_t>;
    case TRITONSERVER_TYPE_INT16:
      return &kElement<int16_t>;
    case TRITONSERVER_TYPE_INT32:
      return &kElement<int32_t>;
    case TRITONSERVER_TYPE_INT64:
      return &kElement<int64_t>;
    case TRITONSERVER_TYPE_FP32:
      return &kElement<float>;
    case TRITONSERVER_TYPE_FP64:
      return &kElement<double>;
    default:
      return nullptr;
  }
}

}  // namespace

py::object Response::ClassesToPython() const {
  py::dict result;
  if (kept_ == nullptr) return result;
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    const auto wanted = classification_->classes.find(outputs_[i].name);
    if (wanted != classification_->classes.end()) {
      result[ToText(outputs_[i].name)] = BestClasses(i, wanted->second);
    }
  }
  return result;
}

py::list Response::BestClasses(uint32_t index, uint32_t count) const {
  const Output& output = outputs_[index];
  const ElementType* const type = FindElementType(output.type);
  if (type == nullptr) {
    throw ApiError(TRITONSERVER_ERROR_UNSUPPORTED,
                   "output '" + output.name + "' is of a type that has no classes");
  }
  const bool has_rows = classification_->has_batches && !output.shape.empty();
  const size_t rows = has_rows ? static_cast<size_t>(output.shape[0]) : 1;
  const size_t elements = rows == 0 ? 0 : output.size / type->size / rows;
  py::list result;
  for (size_t row = 0; row < rows; ++row) {
    const char* const at = static_cast<const char*>(output.data) + row * elements * type->size;
    py::list classes;
    for (const uint32_t best : type->largest(at, elements, std::min<size_t>(count, elements))) {
      const char* label = nullptr;
      Check(TRITONSERVER_InferenceResponseOutputClassificationLabel(kept_.get(), index, best,
                                                                    &label));
      classes.append(py::make_tuple(type->value_at(at, best), best,
                                    ToText(label == nullptr ? std::string() : std::string(label))));
    }
    result.append(std::move(classes));
  }
  return result;
}

}  // namespace nereid::python
