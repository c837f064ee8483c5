// SPDX-License-Identifier: Apache-2.0
// Writes a batch of requests into one block of shared memory, as protocol.h says.
#pragma once

#include <string>
#include <vector>

#include "backend_kit/tensors.h"
#include "python_backend/region.h"

namespace nereid::python {

// One request of a batch and by what the worker calls it.
struct Numbered {
  TRITONBACKEND_Request* request;
  uint64_t handle;
};

// Keeps its memory from batch to batch. Confined to one thread.
class BatchEncoder {
 public:
  struct Encoded {
    BlockPool::Block block;
    uint64_t size = 0;
  };

  // All requests or none.
  backend::Result<Encoded> Encode(const std::vector<Numbered>& requests, BlockPool& blocks);

 private:
  struct Copy {
    backend::InputView view;
    uint64_t at;  // from the start of all data
  };

  backend::Error Add(const Numbered& numbered);
  backend::Error AddForm(TRITONBACKEND_Request* request, RequestRecord& record);
  backend::Error AddInput(TRITONBACKEND_Request* request, uint32_t index, uint64_t begin);
  backend::Error AddTexts(TRITONBACKEND_Request* request, RequestRecord& record);
  template <typename Value>
  void Append(const Value& value);
  void AppendText(std::string_view text);

  std::vector<RequestRecord> records_;
  std::string meta_;  // what the records point to; offsets are from its start until the end
  std::vector<Copy> copies_;
  uint64_t data_size_ = 0;
};

// The parameters of a request as JSON; empty when there are none.
backend::Result<std::string> ParametersJson(TRITONBACKEND_Request* request);

}  // namespace nereid::python
