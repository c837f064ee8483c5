// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/scattering.h"

#include <cstring>

#include "backend_kit/bytes.h"
#include "backend_kit/states.h"

namespace nereid::onnxruntime {

using backend::Batch;
using backend::Error;
using backend::Result;
using backend::StrCat;

Error Scattering::CheckRows(const Port& port, int64_t rows) const {
  const int64_t expected = gathering_.total_batch_size();
  if (rows == expected) {
    return {};
  }
  return Error::Unsupported(StrCat("failed to split the output tensor '", port.info.name,
                                   "' in responses: expected batch size of ",
                                   rows < expected ? "at least " : "", expected,
                                   " in model output, got ", rows));
}

template <typename Answer>
void Scattering::ForEachMember(Batch& batch, To to, size_t o, std::span<const int64_t> shape,
                               Answer&& answer) {
  const Port& port = ports_.outputs[o];
  const std::span<const int64_t> visible = ResponseShape(port, shape);
  rows_shape_.assign(visible.begin(), visible.end());
  const bool has_rows = batching_ && !rows_shape_.empty();
  const Error mismatch = has_rows ? CheckRows(port, rows_shape_[0]) : Error();
  int64_t next_element = 0;
  for (const uint32_t r : gathering_.members()) {
    if (has_rows) {
      rows_shape_[0] = gathering_.batch_size(r);
    }
    auto elements = backend::ElementCount(rows_shape_);
    if (batch.live(r) && (to == To::kState || gathering_.wants(r, o))) {
      Error error;
      if (!mismatch.ok()) {
        error = Error(mismatch.code(),
                      StrCat(backend::RequestIdPrefix(batch.request(r)), mismatch.message()));
      } else if (!elements.ok()) {
        error = elements.TakeError();
      } else {
        error = answer(r, next_element, elements.value());
      }
      if (!error.ok()) {
        batch.Fail(r, std::move(error));
      }
    }
    next_element += elements.ok() ? elements.value() : 0;
  }
}

Result<Scattering::Place> Scattering::MakePlace(Batch& batch, To to, size_t o, uint32_t r,
                                                uint64_t byte_size) {
  const Port& port = ports_.outputs[o];
  Place place;
  if (to == To::kState) {
    NEREID_KIT_ASSIGN(const backend::NewState made,
                      backend::MakeState(batch.request(r), port.info.name.c_str(), port.datatype,
                                         rows_shape_, byte_size));
    place = {.buffer = made.buffer, .state = made.state};
  } else {
    NEREID_KIT_ASSIGN(place.buffer, backend::AddOutput(batch.response(r), port.info.name.c_str(),
                                                       port.datatype, rows_shape_, byte_size));
  }
  return place;
}

Error Scattering::Finish(const Place& place) {
  return place.state == nullptr ? Error() : Error(TRITONBACKEND_StateUpdate(place.state));
}

void Scattering::Fixed(Batch& batch, size_t o, std::span<const int64_t> shape, const char* data) {
  DealFixed(batch, To::kResponse, o, shape, data);
}

void Scattering::FixedStates(Batch& batch, size_t o, std::span<const int64_t> shape,
                             const char* data) {
  DealFixed(batch, To::kState, o, shape, data);
}

void Scattering::DealFixed(Batch& batch, To to, size_t o, std::span<const int64_t> shape,
                           const char* data) {
  const Port& port = ports_.outputs[o];
  ForEachMember(batch, to, o, shape, [&](uint32_t r, int64_t first, int64_t elements) -> Error {
    const uint64_t byte_size = static_cast<uint64_t>(elements) * port.element_size;
    NEREID_KIT_ASSIGN(const Place place, MakePlace(batch, to, o, r, byte_size));
    if (byte_size > 0) {
      std::memcpy(place.buffer, data + static_cast<uint64_t>(first) * port.element_size, byte_size);
    }
    return Finish(place);
  });
}

Error Scattering::TakeInputShape(const backend::BatchOutput& scatter, uint32_t r) {
  const int source = Ports::Find(ports_.inputs, 0, scatter.source);
  NEREID_KIT_ASSIGN(const std::span<const int64_t> shape,
                    gathering_.ShapeOf(source < 0 ? SIZE_MAX : static_cast<size_t>(source), r));
  rows_shape_ = scatter.shape;
  for (size_t d = 0; d < rows_shape_.size(); ++d) {
    if (rows_shape_[d] != -1) {
      continue;
    }
    if (d >= shape.size()) {
      return Error::Internal(StrCat("input '", scatter.source,
                                    "' has too few dimensions to give an "
                                    "output its shape"));
    }
    rows_shape_[d] = shape[d];
  }
  return {};
}

Error Scattering::CheckElements(const Port& port, uint64_t elements) {
  uint64_t expected = 0;
  for (const uint32_t r : gathering_.members()) {
    NEREID_KIT_TRY(TakeInputShape(*port.scatter, r));
    NEREID_KIT_ASSIGN(const int64_t count, backend::ElementCount(rows_shape_));
    if (__builtin_add_overflow(expected, static_cast<uint64_t>(count), &expected)) {
      return Error::InvalidArgument("unexpected integer overflow while calculating element count.");
    }
  }
  if (expected == elements) {
    return {};
  }
  return Error::Unsupported(StrCat("failed to split the output tensor '", port.info.name,
                                   "' in responses: expected ", expected,
                                   " elements by the shapes of input '", port.scatter->source,
                                   "' in model output, got ", elements));
}

void Scattering::ByInputShapes(Batch& batch, size_t o, uint64_t elements, const char* data) {
  const Port& port = ports_.outputs[o];
  const Error mismatch = CheckElements(port, elements);
  uint64_t next = 0;
  for (const uint32_t r : gathering_.members()) {
    const auto deal = [&]() -> Error {
      if (!mismatch.ok()) {
        return gathering_.wants(r, o)
                   ? Error(mismatch.code(),
                           StrCat(backend::RequestIdPrefix(batch.request(r)), mismatch.message()))
                   : Error();
      }
      NEREID_KIT_TRY(TakeInputShape(*port.scatter, r));
      NEREID_KIT_ASSIGN(const int64_t count, backend::ElementCount(rows_shape_));
      const uint64_t first = next;
      next += static_cast<uint64_t>(count);
      if (!batch.live(r) || !gathering_.wants(r, o)) {
        return {};
      }
      const uint64_t byte_size = static_cast<uint64_t>(count) * port.element_size;
      NEREID_KIT_ASSIGN(const Place place, MakePlace(batch, To::kResponse, o, r, byte_size));
      if (byte_size > 0) {
        std::memcpy(place.buffer, data + first * port.element_size, byte_size);
      }
      return {};
    };
    if (Error error = deal(); !error.ok()) {
      batch.Fail(r, std::move(error));
    }
  }
}

Error Scattering::Strings(Batch& batch, size_t o, std::span<const int64_t> shape,
                          const OrtValue* value) {
  return DealStrings(batch, To::kResponse, o, shape, value);
}

Error Scattering::StringStates(Batch& batch, size_t o, std::span<const int64_t> shape,
                               const OrtValue* value) {
  return DealStrings(batch, To::kState, o, shape, value);
}

Error Scattering::DealStrings(Batch& batch, To to, size_t o, std::span<const int64_t> shape,
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
  ForEachMember(batch, to, o, shape, [&](uint32_t r, int64_t first, int64_t elements) -> Error {
    const auto begin = static_cast<size_t>(first);
    const auto end = static_cast<size_t>(first + elements);
    const uint64_t byte_size =
        offsets_[end] - offsets_[begin] + sizeof(uint32_t) * static_cast<uint64_t>(elements);
    NEREID_KIT_ASSIGN(const Place place, MakePlace(batch, to, o, r, byte_size));
    char* next = place.buffer;
    for (size_t e = begin; e < end; ++e) {
      next =
          backend::StoreString(next, {text_.data() + offsets_[e], offsets_[e + 1] - offsets_[e]});
    }
    return Finish(place);
  });
  return {};
}

}  // namespace nereid::onnxruntime
