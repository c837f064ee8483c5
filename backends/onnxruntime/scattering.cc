// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/scattering.h"

#include <cstring>

#include "backend_kit/bytes.h"

namespace nereid::onnxruntime {

using backend::Batch;
using backend::Error;
using backend::Result;
using backend::StrCat;

template <typename Answer>
void Scattering::ForEachMember(Batch& batch, const Port& port, size_t o,
                               std::span<const int64_t> shape, Answer&& answer) {
  const std::span<const int64_t> visible = ResponseShape(port, shape);
  rows_shape_.assign(visible.begin(), visible.end());
  const bool has_rows = batching_ && !rows_shape_.empty();
  const int64_t rows = has_rows ? rows_shape_[0] : 1;
  int64_t next_row = 0;
  int64_t next_element = 0;
  for (const uint32_t r : gathering_.members()) {
    const int64_t end = next_row + (has_rows ? gathering_.batch_size(r) : 1);
    if (has_rows) {
      rows_shape_[0] = gathering_.batch_size(r);
    }
    auto elements = backend::ElementCount(rows_shape_);
    if (batch.live(r) && gathering_.wants(r, o)) {
      Error error;
      if (end > rows) {
        error = Error::Unsupported(StrCat(
            backend::RequestIdPrefix(batch.request(r)), "failed to split the output tensor '",
            port.info.name, "' in responses: expected batch size of at least ", end,
            " in model output, got ", rows));
      } else if (!elements.ok()) {
        error = elements.TakeError();
      } else {
        error = answer(r, next_element, elements.value());
      }
      if (!error.ok()) {
        batch.Fail(r, std::move(error));
      }
    }
    next_row = end;
    next_element += elements.ok() ? elements.value() : 0;
  }
}

void Scattering::Fixed(Batch& batch, size_t o, std::span<const int64_t> shape, const char* data) {
  const Port& port = ports_.outputs[o];
  ForEachMember(batch, port, o, shape, [&](uint32_t r, int64_t first, int64_t elements) -> Error {
    const uint64_t byte_size = static_cast<uint64_t>(elements) * port.element_size;
    NEREID_KIT_ASSIGN(char* const to,
                      backend::AddOutput(batch.response(r), port.info.name.c_str(), port.datatype,
                                         rows_shape_, byte_size));
    if (byte_size > 0) {
      std::memcpy(to, data + static_cast<uint64_t>(first) * port.element_size, byte_size);
    }
    return {};
  });
}

Error Scattering::Strings(Batch& batch, size_t o, std::span<const int64_t> shape,
                          const OrtValue* value) {
  NEREID_KIT_ASSIGN(const int64_t count, backend::ElementCount(shape));
  size_t length = 0;
  NEREID_ORT_TRY(Api().GetStringTensorDataLength(value, &length));
  text_.resize(length + 1);
  offsets_.resize(static_cast<size_t>(count) + 1);
  if (count > 0) {
    NEREID_ORT_TRY(Api().GetStringTensorContent(value, text_.data(), length, offsets_.data(),
                                                static_cast<size_t>(count)));
  }
  offsets_.back() = length;
  const Port& port = ports_.outputs[o];
  ForEachMember(batch, port, o, shape, [&](uint32_t r, int64_t first, int64_t elements) -> Error {
    const auto begin = static_cast<size_t>(first);
    const auto end = static_cast<size_t>(first + elements);
    const uint64_t byte_size =
        offsets_[end] - offsets_[begin] + sizeof(uint32_t) * static_cast<uint64_t>(elements);
    NEREID_KIT_ASSIGN(char* to,
                      backend::AddOutput(batch.response(r), port.info.name.c_str(),
                                         TRITONSERVER_TYPE_BYTES, rows_shape_, byte_size));
    for (size_t e = begin; e < end; ++e) {
      to = backend::StoreString(to, {text_.data() + offsets_[e], offsets_[e + 1] - offsets_[e]});
    }
    return {};
  });
  return {};
}

}  // namespace nereid::onnxruntime
