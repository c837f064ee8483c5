// SPDX-License-Identifier: Apache-2.0
#include "python_backend/decode.h"

#include "backend_kit/shape.h"
#include "backend_kit/tensors.h"
#include "nereid/backend_outputs.h"
#include "python_backend/json.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;
using backend::StrCat;

// Copying a smaller tensor costs less than keeping it.
constexpr size_t kFewestLent = size_t{64} << 10;
constexpr uint32_t kMaxName = 4096;

TRITONSERVER_Error_Code CodeOf(uint32_t code) {
  return code <= TRITONSERVER_ERROR_CANCELLED ? static_cast<TRITONSERVER_Error_Code>(code)
                                              : TRITONSERVER_ERROR_INTERNAL;
}

Error SetParameters(TRITONBACKEND_Response* response, const std::string& json) {
  return ForEachParameter(
      json, "the parameters of a response",
      [&](const char* name, const char* value) {
        return TRITONBACKEND_ResponseSetStringParameter(response, name, value);
      },
      [&](const char* name, int64_t value) {
        return TRITONBACKEND_ResponseSetIntParameter(response, name, value);
      },
      [&](const char* name, bool value) {
        return TRITONBACKEND_ResponseSetBoolParameter(response, name, value);
      },
      [&](const char* name, double value) {
        return TRITONBACKEND_ResponseSetDoubleParameter(response, name, value);
      });
}

// A model may make a tensor of any size, but the bytes that are sent must match its shape.
Error CheckSize(const Tensor& tensor) {
  const uint32_t element = backend::ElementByteSize(tensor.datatype);
  if (element == 0) return {};
  NEREID_KIT_ASSIGN(const int64_t count, backend::ElementCount(tensor.shape));
  uint64_t size = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(count), element, &size) ||
      size != tensor.data.size()) {
    return Error::Internal(StrCat("output '", tensor.name, "' has ", tensor.data.size(),
                                  " bytes, which its shape does not"));
  }
  return {};
}

// Returns false, without any effect, if the output has to be copied.
Result<bool> LendOutput(TRITONBACKEND_Response* response, const Tensor& tensor, Lender* lender) {
  // Texts are trusted once they have been checked, so the worker must not be able to change them.
  if (lender == nullptr || NEREIDBACKEND_OutputLend == nullptr ||
      tensor.data.size() < kFewestLent || tensor.datatype == TRITONSERVER_TYPE_BYTES) {
    return false;
  }
  std::shared_ptr<const void> kept = lender->Lend(tensor.data);
  if (kept == nullptr) return false;
  TRITONBACKEND_Output* output = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_ResponseOutput(response, &output, tensor.name.c_str(),
                                              tensor.datatype, tensor.shape.data(),
                                              static_cast<uint32_t>(tensor.shape.size())));
  auto held = std::make_unique<std::shared_ptr<const void>>(std::move(kept));
  NEREID_KIT_TRY(NEREIDBACKEND_OutputLend(
      output, tensor.data.data(), tensor.data.size(),
      [](void* user) { delete static_cast<std::shared_ptr<const void>*>(user); }, held.release()));
  return true;
}

}  // namespace

std::optional<Tensor> ReadTensor(Reader& reader, const Region& region) {
  const auto record = reader.Read<TensorRecord>();
  if (!reader.ok() || record.dims > kMaxDims || record.datatype > TRITONSERVER_TYPE_BF16) {
    return std::nullopt;
  }
  Tensor tensor;
  tensor.datatype = static_cast<TRITONSERVER_DataType>(record.datatype);
  for (uint32_t i = 0; i < record.dims; ++i) tensor.shape.push_back(reader.Read<int64_t>());
  if (record.name_size > kMaxName) return std::nullopt;
  tensor.name = reader.Text(record.name_size);
  if (!reader.ok()) return std::nullopt;
  if (record.byte_size != 0) {
    if (!region.Holds(record.data, record.byte_size)) return std::nullopt;
    tensor.data = {region.At(record.data), static_cast<size_t>(record.byte_size)};
  }
  return tensor;
}

std::optional<ModelResponse> ReadResponse(Reader& reader, const Region& region) {
  const auto record = reader.Read<ResponseRecord>();
  if (!reader.ok()) return std::nullopt;
  ModelResponse response;
  response.release_flags = record.release_flags;
  switch (static_cast<ResponseKind>(record.kind)) {
    case ResponseKind::kNone:
      return response;
    case ResponseKind::kTensors:
      if (record.tensors > kMaxTensors) return std::nullopt;
      for (uint32_t i = 0; i < record.tensors; ++i) {
        std::optional<Tensor> tensor = ReadTensor(reader, region);
        if (!tensor) return std::nullopt;
        response.tensors.push_back(*std::move(tensor));
      }
      break;
    case ResponseKind::kError:
      response.code = CodeOf(record.tensors);
      break;
    default:
      return std::nullopt;
  }
  response.kind = static_cast<ResponseKind>(record.kind);
  const std::string_view text = reader.Text(record.text_size);
  if (!reader.ok()) return std::nullopt;
  if (response.kind == ResponseKind::kError) {
    response.text = text.substr(0, kMaxMessage);
  } else if (text.size() <= kMaxText) {
    response.text = text;
  } else {
    response.Refuse(Error::Internal(
        StrCat("the parameters of a response are longer than ", kMaxText, " bytes")));
  }
  return response;
}

void ModelResponse::Refuse(const Error& error) {
  kind = ResponseKind::kError;
  tensors.clear();
  code = error.code();
  text = error.message();
}

Error FillResponse(TRITONBACKEND_Response* response, const ModelResponse& from, Lender* lender) {
  for (const Tensor& tensor : from.tensors) {
    NEREID_KIT_TRY(CheckSize(tensor).Release());
    NEREID_KIT_ASSIGN(const bool is_lent, LendOutput(response, tensor, lender));
    if (is_lent) continue;
    NEREID_KIT_ASSIGN(char* const to,
                      backend::AddOutput(response, tensor.name.c_str(), tensor.datatype,
                                         tensor.shape, tensor.data.size()));
    if (!tensor.data.empty()) std::memcpy(to, tensor.data.data(), tensor.data.size());
  }
  return SetParameters(response, from.text);
}

}  // namespace nereid::python
