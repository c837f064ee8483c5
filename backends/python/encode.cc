// SPDX-License-Identifier: Apache-2.0
#include "python_backend/encode.h"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstring>

#include "backend_kit/bytes.h"
#include "backend_kit/shape.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::InputView;
using backend::Result;
using backend::StrCat;

uint64_t Aligned(uint64_t size) { return (size + kAlignment - 1) & ~(kAlignment - 1); }

// BYTES tensors contain lengths, which a model will trust.
Error CheckStrings(const InputView& view, std::span<const char> bytes) {
  NEREID_KIT_ASSIGN(const int64_t count, backend::ElementCount(view.shape));
  return backend::ForEachString(bytes, count, view.name, [](std::string_view) {});
}

}  // namespace

Result<std::string> ParametersJson(TRITONBACKEND_Request* request) {
  uint32_t count = 0;
  NEREID_KIT_TRY(TRITONBACKEND_RequestParameterCount(request, &count));
  if (count == 0) return std::string();
  rapidjson::StringBuffer text;
  // Python's reader takes doubles that JSON has no form for.
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                    rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>
      writer(text);
  writer.StartObject();
  for (uint32_t i = 0; i < count; ++i) {
    const char* key = nullptr;
    TRITONSERVER_ParameterType type = TRITONSERVER_PARAMETER_STRING;
    const void* value = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_RequestParameter(request, i, &key, &type, &value));
    writer.Key(key);
    switch (type) {
      case TRITONSERVER_PARAMETER_STRING:
        writer.String(static_cast<const char*>(value));
        break;
      case TRITONSERVER_PARAMETER_INT:
        writer.Int64(*static_cast<const int64_t*>(value));
        break;
      case TRITONSERVER_PARAMETER_BOOL:
        writer.Bool(*static_cast<const bool*>(value));
        break;
      case TRITONSERVER_PARAMETER_DOUBLE:
        writer.Double(*static_cast<const double*>(value));
        break;
      default:
        return Error::InvalidArgument(
            StrCat("Unsupported parameter type for parameter '", key, "'."));
    }
  }
  writer.EndObject();
  return std::string(text.GetString(), text.GetSize());
}

template <typename Value>
void BatchEncoder::Append(const Value& value) {
  meta_.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void BatchEncoder::AppendText(std::string_view text) {
  meta_ += text;
  meta_.resize(Padded(meta_.size()));
}

Error BatchEncoder::Find(TRITONBACKEND_Request* request, BlockPool& inputs, RequestRecord& record) {
  uint32_t count = 0;
  NEREID_KIT_TRY(TRITONBACKEND_RequestInputCount(request, &count));
  const char* begin = nullptr;
  const char* end = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    NEREID_KIT_ASSIGN(const InputView view, backend::ReadInput(request, i));
    if (view.byte_size == 0) continue;
    // Texts are checked, so the worker must not be able to change them.
    const uint32_t element = backend::ElementByteSize(view.datatype);
    if (element == 0 || view.buffer_count != 1) return {};
    NEREID_KIT_ASSIGN(const std::span<const char> bytes, backend::InputBuffer(view, 0));
    if (bytes.size() != view.byte_size ||
        reinterpret_cast<uintptr_t>(bytes.data()) % element != 0) {
      return {};
    }
    if (begin == nullptr || bytes.data() < begin) begin = bytes.data();
    if (end == nullptr || bytes.data() + bytes.size() > end) end = bytes.data() + bytes.size();
  }
  if (begin == nullptr) return {};
  BlockPool::Block block = inputs.Take({begin, static_cast<size_t>(end - begin)});
  if (!block.exists()) return {};
  record.block = block.payload_offset();
  record.data = record.block + static_cast<uint64_t>(begin - block.payload());
  received_at_ = begin;
  received_.push_back(std::move(block));
  return {};
}

Error BatchEncoder::AddInput(TRITONBACKEND_Request* request, uint32_t index,
                             const RequestRecord& record) {
  NEREID_KIT_ASSIGN(const InputView view, backend::ReadInput(request, index));
  const std::string_view name = view.name;
  uint64_t data = 0;
  if (record.block == 0) {
    data = data_size_ - record.data;
    copies_.push_back({view, data_size_});
    data_size_ += Aligned(view.byte_size);
  } else if (view.byte_size != 0) {
    NEREID_KIT_ASSIGN(const std::span<const char> bytes, backend::InputBuffer(view, 0));
    data = static_cast<uint64_t>(bytes.data() - received_at_);
  }
  Append(TensorRecord{.datatype = static_cast<uint32_t>(view.datatype),
                      .dims = static_cast<uint32_t>(view.shape.size()),
                      .name_size = static_cast<uint32_t>(name.size()),
                      .data = data,
                      .byte_size = view.byte_size});
  meta_.append(reinterpret_cast<const char*>(view.shape.data()), view.shape.size_bytes());
  AppendText(name);
  return {};
}

Error BatchEncoder::AddForm(TRITONBACKEND_Request* request, RequestRecord& record) {
  FormHeader header{};
  NEREID_KIT_TRY(TRITONBACKEND_RequestInputCount(request, &header.inputs));
  NEREID_KIT_TRY(TRITONBACKEND_RequestOutputCount(request, &header.outputs));
  record.form = static_cast<uint32_t>(meta_.size());
  if (record.block == 0) record.data = data_size_;
  Append(header);
  for (uint32_t i = 0; i < header.inputs; ++i) {
    NEREID_KIT_TRY(AddInput(request, i, record).Release());
  }
  for (uint32_t i = 0; i < header.outputs; ++i) {
    const char* name = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_RequestOutputName(request, i, &name));
    const uint64_t size = std::strlen(name);
    Append(size);
    AppendText({name, size});
  }
  record.form_size = static_cast<uint32_t>(meta_.size()) - record.form;
  return {};
}

Error BatchEncoder::AddTexts(TRITONBACKEND_Request* request, RequestRecord& record) {
  const auto add = [this](std::string_view text, uint32_t& at, uint32_t& size) {
    at = static_cast<uint32_t>(meta_.size());
    size = static_cast<uint32_t>(text.size());
    if (size != 0) AppendText(text);
  };
  const char* id = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_RequestId(request, &id));
  add(id, record.id, record.id_size);
  if (Error error(TRITONBACKEND_RequestCorrelationId(request, &record.correlation_id));
      !error.ok()) {
    const char* text = "";
    NEREID_KIT_TRY(TRITONBACKEND_RequestCorrelationIdString(request, &text));
    record.has_correlation_text = 1;
    add(text, record.correlation_text, record.correlation_text_size);
  }
  NEREID_KIT_ASSIGN(const std::string parameters, ParametersJson(request));
  add(parameters, record.parameters, record.parameters_size);
  TRITONSERVER_InferenceTrace* trace = nullptr;
  const char* context = nullptr;
  // Servers without traces return an error.
  if (Error error(TRITONBACKEND_RequestTrace(request, &trace)); !error.ok()) trace = nullptr;
  if (trace != nullptr) Error(TRITONSERVER_InferenceTraceContext(trace, &context)).Ignore();
  add(context == nullptr ? "" : context, record.trace, record.trace_size);
  return {};
}

Error BatchEncoder::Add(const Numbered& numbered, BlockPool& inputs) {
  RequestRecord record{.handle = numbered.handle};
  if (inputs.busy_bytes() != 0) {
    NEREID_KIT_TRY(Find(numbered.request, inputs, record).Release());
  }
  NEREID_KIT_TRY(AddForm(numbered.request, record).Release());
  NEREID_KIT_TRY(AddTexts(numbered.request, record).Release());
  NEREID_KIT_TRY(TRITONBACKEND_RequestFlags(numbered.request, &record.flags));
  NEREID_KIT_TRY(
      TRITONBACKEND_InferenceRequestTimeoutMicroseconds(numbered.request, &record.timeout_us));
  records_.push_back(record);
  return {};
}

Result<BatchEncoder::Encoded> BatchEncoder::Encode(const std::vector<Numbered>& requests,
                                                   BlockPool& blocks, BlockPool& inputs) {
  records_.clear();
  meta_.clear();
  copies_.clear();
  received_.clear();
  data_size_ = 0;
  for (const Numbered& numbered : requests) NEREID_KIT_TRY(Add(numbered, inputs).Release());
  const uint64_t meta = sizeof(BatchHeader) + records_.size() * sizeof(RequestRecord);
  if (meta_.size() > UINT32_MAX - meta) return Error::Unsupported("the batch is too large");
  const uint64_t data = Aligned(meta + meta_.size());
  NEREID_KIT_ASSIGN(BlockPool::Block block, blocks.Allocate(data + data_size_));
  char* const payload = block.payload();
  for (RequestRecord& record : records_) {
    for (uint32_t* offset :
         {&record.form, &record.id, &record.correlation_text, &record.parameters, &record.trace}) {
      *offset += static_cast<uint32_t>(meta);
    }
    if (record.block == 0) record.data += block.payload_offset() + data;
  }
  const BatchHeader header{.count = static_cast<uint32_t>(records_.size())};
  std::memcpy(payload, &header, sizeof(header));
  std::memcpy(payload + sizeof(header), records_.data(), records_.size() * sizeof(RequestRecord));
  std::memcpy(payload + meta, meta_.data(), meta_.size());
  for (const Copy& copy : copies_) {
    const std::span<char> to(payload + data + copy.at, copy.view.byte_size);
    NEREID_KIT_TRY(backend::CopyInput(copy.view, to).Release());
    if (copy.view.datatype == TRITONSERVER_TYPE_BYTES) {
      NEREID_KIT_TRY(CheckStrings(copy.view, to).Release());
    }
  }
  return Encoded{std::move(block), data + data_size_, std::exchange(received_, {})};
}

}  // namespace nereid::python
