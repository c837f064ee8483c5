// SPDX-License-Identifier: Apache-2.0
// Reads a batch and writes tensors as a worker does.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "python_backend/region.h"

namespace nereid::python {

// An input as the worker sees it.
struct SeenInput {
  std::string name;
  uint32_t datatype = 0;
  std::vector<int64_t> shape;
  std::string bytes;
  uint64_t at = 0;  // offset of the bytes in the region
};

// A request as the worker sees it.
struct SeenRequest {
  RequestRecord record;
  std::string form;
  std::string id;
  std::string correlation_text;
  std::string parameters;
  std::string trace;
  std::vector<SeenInput> inputs;
  std::vector<std::string> outputs;
};

// Trusts what it reads, as workers trust the server. Thread-compatible.
class WorkerReader {
 public:
  WorkerReader(const Region& region, uint64_t payload) : region_(region), payload_(payload) {}

  std::vector<SeenRequest> ReadBatch() const {
    const auto header = Get<BatchHeader>(payload_);
    std::vector<SeenRequest> batch;
    for (uint32_t i = 0; i < header.count; ++i) {
      batch.push_back(
          ReadRequest(payload_ + sizeof(BatchHeader) + uint64_t{i} * sizeof(RequestRecord)));
    }
    return batch;
  }

 private:
  template <typename Value>
  Value Get(uint64_t at) const {
    Value value;
    std::memcpy(&value, region_.At(at), sizeof(value));
    return value;
  }
  std::string Text(uint64_t at, uint64_t size) const { return {region_.At(at), size}; }

  SeenRequest ReadRequest(uint64_t at) const {
    SeenRequest seen{.record = Get<RequestRecord>(at)};
    const RequestRecord& record = seen.record;
    seen.form = Text(payload_ + record.form, record.form_size);
    seen.id = Text(payload_ + record.id, record.id_size);
    seen.correlation_text = Text(payload_ + record.correlation_text, record.correlation_text_size);
    seen.parameters = Text(payload_ + record.parameters, record.parameters_size);
    seen.trace = Text(payload_ + record.trace, record.trace_size);
    uint64_t next = payload_ + record.form;
    const auto form = Get<FormHeader>(next);
    next += sizeof(form);
    for (uint32_t i = 0; i < form.inputs; ++i) {
      const auto tensor = Get<TensorRecord>(next);
      next += sizeof(tensor);
      SeenInput input{.datatype = tensor.datatype, .at = record.data + tensor.data};
      for (uint32_t dim = 0; dim < tensor.dims; ++dim, next += sizeof(int64_t)) {
        input.shape.push_back(Get<int64_t>(next));
      }
      input.name = Text(next, tensor.name_size);
      next += Padded(tensor.name_size);
      input.bytes = Text(input.at, tensor.byte_size);
      seen.inputs.push_back(std::move(input));
    }
    for (uint32_t i = 0; i < form.outputs; ++i) {
      const auto size = Get<uint64_t>(next);
      seen.outputs.push_back(Text(next + sizeof(size), size));
      next += sizeof(size) + Padded(size);
    }
    return seen;
  }

  const Region& region_;
  const uint64_t payload_;
};

template <typename Value>
void AppendBytes(std::string& to, const Value& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Appends a text and zeros up to a multiple of eight.
inline void AppendPadded(std::string& to, const std::string& text) {
  to += text;
  to.append(Padded(text.size()) - text.size(), '\0');
}

// Appends a text after its length.
inline void AppendSized(std::string& to, const std::string& text) {
  AppendBytes(to, uint64_t{text.size()});
  AppendPadded(to, text);
}

// Appends a tensor whose bytes are at an offset in the region.
inline void AppendTensor(std::string& to, const std::string& name, uint32_t datatype,
                         const std::vector<int64_t>& shape, uint64_t at, uint64_t size) {
  AppendBytes(to, TensorRecord{.datatype = datatype,
                               .dims = static_cast<uint32_t>(shape.size()),
                               .name_size = static_cast<uint32_t>(name.size()),
                               .data = at,
                               .byte_size = size});
  for (const int64_t dim : shape) AppendBytes(to, dim);
  AppendPadded(to, name);
}

}  // namespace nereid::python
